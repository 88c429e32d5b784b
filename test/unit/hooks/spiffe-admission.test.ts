/** Admission for SPIFFE trust domains and their clients: one message for each invalid field, with the runtime's rules. */
import t from 'tap'
import { parseAuthServerConfig } from '../../../runtime/config/authserver/file.ts'
import { validateResource } from '../../../hooks/index.ts'
import { formatViolations } from '../../../schemas/index.ts'
import { trustDomainIn } from '../../helpers/authserver/platforms/spiffe.ts'
import { embedded, oidcConfig, resource, virtual, world } from '../../hooks/resources.ts'
import { configMap } from '../../hooks/world.ts'

const scopes = ['tools:read']
const url = 'https://door.example.com/mcp'
type Fields = Record<string, unknown>

const configMapRef = { name: 'spire-bundle', key: 'bundle.spiffe' }
const domain = (name: string, trustDomain: string): Fields => ({ name, trustDomain })
const client = (clientId: string, path: string, more: Fields = {}): Fields => ({
  trustDomainRef: 'prod',
  principalPattern: `spiffe://prod.example.com${path}`,
  clientId,
  scopes,
  ...more,
})
const prod = [domain('prod', 'prod.example.com')]

const bundle = await trustDomainIn(t.testdir({}), 'prod.example.com')

function messagesFor(domains: readonly Fields[], clients: readonly Fields[], more: Fields = {}) {
  const shared = { inboundGrants: { spiffeClientAuth: clients }, ...more }
  const inCluster = {
    ...shared,
    spiffeTrustDomains: domains.map((one) => ({ ...one, bundleSource: { configMapRef } })),
  }
  const oidcConfigRef = { name: 'login', audience: url, resourceUrl: url }
  const door = virtual({
    incomingAuth: { type: 'oidc', oidcConfigRef },
    authServerConfig: embedded(inCluster),
  })
  const server = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded(inCluster),
  })
  const text = (object: Parameters<typeof validateResource>[0], path: string): string =>
    formatViolations(validateResource(object).violations).replaceAll(`${path}.`, '')
  const file = {
    issuer: 'https://login.example.com',
    allowedAudiences: [url],
    ...shared,
    spiffeTrustDomains: domains.map((one) => ({ ...one, bundlePath: bundle.bundlePath })),
  }
  let fileMessage = ''
  try {
    parseAuthServerConfig(JSON.stringify(file), {})
  } catch (error) {
    fileMessage = String(error)
  }
  return {
    door: text(door, 'spec.authServerConfig'),
    shared: text(server, 'spec.embeddedAuthServer'),
    file: fileMessage,
  }
}

const at = (index: number, field: string): string => `inboundGrants.spiffeClientAuth[${index}].${field}`

type Rule = readonly [
  title: string,
  domains: readonly Fields[],
  clients: readonly Fields[],
  path: string,
  message: string,
  more?: Fields,
]

const rules: readonly Rule[] = [
  [
    'a client of an unknown trust domain',
    prod,
    [client('a', '/a'), client('b', '/b', { trustDomainRef: 'other' })],
    at(1, 'trustDomainRef'),
    'must be the name of one of spiffeTrustDomains',
  ],
  [
    'a trust domain without clients',
    [...prod, domain('test', 'test.example.com')],
    [client('a', '/a')],
    'spiffeTrustDomains[1].name',
    'no trustDomainRef refers to this trust domain',
  ],
  [
    'a trust domain that is listed twice',
    [...prod, domain('copy', 'prod.example.com')],
    [client('a', '/a'), client('b', '/b', { trustDomainRef: 'copy' })],
    'spiffeTrustDomains[1].trustDomain',
    'is already used by spiffeTrustDomains[0]',
  ],
  [
    'a pattern of another trust domain',
    prod,
    [client('a', '', { principalPattern: 'spiffe://prod.example.com.evil.example/a' })],
    at(0, 'principalPattern'),
    'must begin with spiffe://prod.example.com/, the trust domain prod',
  ],
  [
    'a pattern with a relative segment',
    prod,
    [client('a', '/jobs/../a')],
    at(0, 'principalPattern'),
    'must not contain the segments . and ..',
  ],
  [
    'equal patterns',
    prod,
    [client('a', '/a'), client('b', '/a')],
    at(1, 'principalPattern'),
    'overlaps with inboundGrants.spiffeClientAuth[0]',
  ],
  [
    'a pattern that contains an earlier one',
    prod,
    [client('a', '/jobs/a'), client('b', '/jobs/*')],
    at(1, 'principalPattern'),
    'overlaps with inboundGrants.spiffeClientAuth[0]',
  ],
  [
    'a pattern within an earlier one',
    prod,
    [client('a', '/*'), client('b', '/jobs/a/*')],
    at(1, 'principalPattern'),
    'overlaps with inboundGrants.spiffeClientAuth[0]',
  ],
  [
    'a client id that is also declared',
    prod,
    [client('a', '/a')],
    at(0, 'clientId'),
    'is already used in clients',
    { clients: [{ clientId: 'a', scopes, jwksUri: 'https://ci.example.com/keys' }] },
  ],
]

for (const [title, domains, clients, path, message, more] of rules) {
  t.test(`admission and the runtime reject ${title}`, async (t) => {
    const { door, shared, file } = messagesFor(domains, clients, more)
    t.ok(door.startsWith(`${path}: `) && door.includes(message), door)
    t.notMatch(door, '\n')
    t.equal(shared, door)
    t.ok(file.includes(`${path} `) && file.includes(message), file)
  })
}

t.test('valid settings are accepted', async (t) => {
  const cases = [
    [client('a', '/jobs'), client('b', '/jobs/*'), client('c', '/jobs-b/*')],
    [client('a', '/*')],
  ]
  for (const clients of cases)
    t.same(messagesFor(prod, clients), { door: '', shared: '', file: '' }, JSON.stringify(clients))
  const more = { upstreamProviders: [] }
  t.same(messagesFor(prod, [client('a', '/a')], more), { door: '', shared: '', file: '' }, 'without a login')
})

t.test('resources must be those of the server', async (t) => {
  const clients = [client('a', '/a', { resources: ['https://other.example.com'] })]
  t.match(messagesFor(prod, clients), {
    door: `${at(0, 'resources')}[0]: must be ${url}, the resourceUrl of oidcConfigRef`,
    shared: '',
    file: 'inboundGrants.spiffeClientAuth[a].resources "https://other.example.com" is not in allowedAudiences',
  })
})

t.test('a missing bundle file prevents startup', async (t) => {
  const file = {
    issuer: 'https://login.example.com',
    allowedAudiences: [url],
    spiffeTrustDomains: [{ ...prod[0], bundlePath: '/none/bundle' }],
    inboundGrants: { spiffeClientAuth: [client('a', '/a')] },
  }
  t.throws(() => parseAuthServerConfig(JSON.stringify(file), {}), {
    message: /spiffeTrustDomains\[prod\]\.bundlePath \/none\/bundle cannot be read/,
  })
})

/** The stored MCPExternalAuthConfig after a sync with these objects. */
function synced(...objects: Parameters<typeof world>): Fields {
  const server = resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded({
      spiffeTrustDomains: [{ ...prod[0], bundleSource: { configMapRef } }],
      inboundGrants: { spiffeClientAuth: [client('a', '/a')] },
    }),
  })
  const { parent } = world(oidcConfig(), server, ...objects)
    .settle()
    .request('MCPExternalAuthConfig', 'server') as { parent: { status: Fields } }
  return parent.status
}

t.test('a missing ConfigMap or key is reported, and new keys replace no pods', async (t) => {
  const conditions = (status: Fields): string => JSON.stringify(status['conditions'])
  t.match(conditions(synced()), 'ConfigMap spire-bundle does not exist')
  const empty = configMap('spire-bundle', { other: '{}' })
  t.match(conditions(synced(empty)), 'ConfigMap spire-bundle has no key bundle.spiffe')
  const [before, after] = ['{"keys":[]}', '{"keys":[1]}'].map((text) =>
    synced(configMap('spire-bundle', { 'bundle.spiffe': text })),
  )
  t.type(before?.['configHash'], 'string')
  t.equal(before?.['configHash'], after?.['configHash'])
})
