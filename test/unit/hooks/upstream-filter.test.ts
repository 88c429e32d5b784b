/** authServerUpstreamFilter: admission, the condition, and the file of the server. */
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { formatViolations } from '../../../schemas/index.ts'
import { embedded, oidcConfig, virtual, world } from '../../hooks/resources.ts'
import { condition, fileOf } from './kinds/proxies/proxy-response.ts'

const url = 'https://door.example.com'
const rule = { groups: ['sales'], upstreamProviders: ['crm'] }
const upstreamProviders = ['corp', 'crm'].map((name) => ({
  name,
  type: 'oidc',
  oidcConfig: { issuerUrl: `https://${name}.example.com`, clientId: 'door' },
}))

const door = (authServerUpstreamFilter: object, more: object = {}) =>
  virtual({
    incomingAuth: { type: 'oidc', oidcConfigRef: { name: 'login', audience: url, resourceUrl: url } },
    authServerConfig: embedded({ upstreamProviders }),
    authServerUpstreamFilter,
    ...more,
  })

const at = 'spec.authServerUpstreamFilter'
for (const [title, filter, message] of [
  ['a valid filter', { claim: 'teams', rules: [rule], defaultUpstreams: ['corp', 'crm'] }, ''],
  [
    'an unknown provider in a rule',
    { rules: [rule, { ...rule, upstreamProviders: ['crm', 'hub'] }] },
    `${at}.rules[1].upstreamProviders[1]: must be the name of one of upstreamProviders, found "hub"`,
  ],
  [
    'an unknown default',
    { rules: [rule], defaultUpstreams: ['hub'] },
    `${at}.defaultUpstreams[0]: must be the name of one of upstreamProviders, found "hub"`,
  ],
  ['no rules', { defaultUpstreams: ['crm'] }, `${at}.rules: is required`],
  ['an empty list of rules', { rules: [] }, `${at}.rules: `],
  ['a rule without groups', { rules: [{ ...rule, groups: [] }] }, `${at}.rules[0].groups: `],
  ['an empty group', { rules: [{ ...rule, groups: [''] }] }, `${at}.rules[0].groups[0]: `],
  [
    'a rule without providers',
    { rules: [{ ...rule, upstreamProviders: [] }] },
    `${at}.rules[0].upstreamProviders: `,
  ],
  ['an empty claim', { claim: '', rules: [rule] }, `${at}.claim: `],
] as const)
  t.test(`admission: ${title}`, async (t) => {
    const found = formatViolations(validateResource(door(filter)).violations)
    if (message === '') t.equal(found, '')
    else t.ok(found.startsWith(message), found)
  })

const plain = {
  authorizationEndpoint: 'https://corp.example.com/authorize',
  tokenEndpoint: 'https://corp.example.com/token',
  clientId: 'door',
}
for (const [identity, message] of [
  [{}, `${at}.claim: cannot be read, because upstream corp has neither userInfo nor identityFromToken`],
  [{ userInfo: { endpointUrl: 'https://corp.example.com/me' } }, ''],
  [{ identityFromToken: { subjectPath: 'sub' } }, ''],
] as const)
  t.test(
    `admission: a first provider of type oauth2 with ${Object.keys(identity)[0] ?? 'no identity'}`,
    async (t) => {
      const first = { name: 'corp', type: 'oauth2', oauth2Config: { ...plain, ...identity } }
      const authServerConfig = embedded({ upstreamProviders: [first, upstreamProviders[1]] })
      t.equal(
        formatViolations(validateResource(door({ rules: [rule] }, { authServerConfig })).violations),
        message,
      )
    },
  )

t.test('admission: a filter without an authorization server', async (t) => {
  const { violations } = validateResource(
    door({ rules: [rule] }, { authServerConfig: undefined, incomingAuth: { type: 'anonymous' } }),
  )
  t.equal(formatViolations(violations), `${at}: requires spec.authServerConfig`)
})

t.test('sync: the file contains the filter', async (t) => {
  const w = world(oidcConfig(), door({ rules: [rule] })).ready()
  t.match(condition(w, 'VirtualMCPServer', 'door', 'AuthServerConfigValidated'), { status: 'True' })
  t.match(fileOf(w, 'door-vmcp-config', 'authserver-config.yaml'), {
    upstreamFilter: { claim: 'groups', rules: [rule] },
  })
})

t.test('sync: a stored filter with an unknown provider sets the condition', async (t) => {
  const w = world(oidcConfig(), door({ rules: [{ ...rule, upstreamProviders: ['hub'] }] })).ready()
  t.match(condition(w, 'VirtualMCPServer', 'door', 'AuthServerConfigValidated'), {
    status: 'False',
    reason: 'AuthServerConfigInvalid',
    message: /found "hub"/,
  })
})
