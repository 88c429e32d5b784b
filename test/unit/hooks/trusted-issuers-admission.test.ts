/** Admission for trusted issuers: one message for each invalid field, with the runtime's rules. */
import t from 'tap'
import { parseAuthServerConfig } from '../../../runtime/config/authserver/file.ts'
import { validateResource } from '../../../hooks/index.ts'
import { type Fields, fileMessage, messagesFor, url } from '../../helpers/hooks/trust-messages.ts'
import { embedded, resource } from '../../hooks/resources.ts'

const scopes = ['tools:read']

interface Case {
  readonly issuer?: Fields
  readonly binding?: Fields
  readonly policy?: Fields
  readonly more?: Fields
}

function settings({ issuer = {}, binding = { subject: 'job' }, policy = {}, more = {} }: Case): Fields {
  return {
    trustedIssuers: [{ name: 'ci', issuerUrl: 'https://ci.example.com', ...issuer }],
    inboundGrants: {
      jwtBearer: {
        issuerPolicies: [{ issuerRef: 'ci', subjectBindings: [{ scopes, ...binding }], ...policy }],
      },
    },
    ...more,
  }
}

const policyAt = 'inboundGrants.jwtBearer.issuerPolicies[0]'
const bindingAt = `${policyAt}.subjectBindings[0]`
const lasting = 'because the name of a project can be reassigned'

/** A client with an identity at the issuer `ci`. */
const client = (federated: Fields, clientId = 'a'): Fields => ({
  clientId,
  scopes,
  federated: { issuerRef: 'ci', ...federated },
})

const rules: readonly (readonly [title: string, given: Case, path: string, message: string])[] = [
  [
    'an issuerRef without an issuer',
    { policy: { issuerRef: 'other' }, more: { trustedIssuers: [] } },
    `${policyAt}.issuerRef`,
    'must be the name of one of trustedIssuers',
  ],
  [
    'an issuer without a reference',
    {
      more: {
        inboundGrants: {},
        clients: [{ clientId: 'a', jwksUri: 'https://ci.example.com/keys', scopes }],
      },
    },
    'trustedIssuers[0].name',
    'no issuerRef refers to this issuer',
  ],
  [
    'the issuer of the server itself',
    { issuer: { issuerUrl: 'https://login.example.com' } },
    'trustedIssuers[0].issuerUrl',
    'must not be the issuer of this server',
  ],
  [
    'an issuer with a fragment',
    { issuer: { issuerUrl: 'https://ci.example.com/#a' } },
    'trustedIssuers[0].issuerUrl',
    'must not have a query or a fragment',
  ],
  [
    'an issuer with credentials',
    { issuer: { issuerUrl: 'https://user:pass@ci.example.com' } },
    'trustedIssuers[0].issuerUrl',
    'must not contain credentials',
  ],
  [
    'two bindings for one subject',
    {
      policy: {
        subjectBindings: [
          { subject: 'a', scopes },
          { subject: 'a', scopes: ['b'] },
        ],
      },
    },
    `${policyAt}.subjectBindings[1]`,
    'has the same selector as subjectBindings[0]',
  ],
  [
    'a subject that is not a ServiceAccount',
    { issuer: { preset: 'kubernetes' }, binding: { subject: 'jobs:nightly' } },
    `${bindingAt}.subject`,
    'must have the form system:serviceaccount:<namespace>:<name>',
  ],
  [
    'a GitHub subject',
    { issuer: { preset: 'github' }, binding: { subject: 'repo:a/b:ref:refs/heads/main' } },
    `${bindingAt}.subject`,
    `is not allowed for github; a matcher must compare repository_id or repository_owner_id, ${lasting}`,
  ],
  [
    'a GitHub matcher without an id',
    { issuer: { preset: 'github' }, binding: { matcher: "claims.repository == 'a/b'" } },
    `${bindingAt}.matcher`,
    `must compare repository_id or repository_owner_id, ${lasting}`,
  ],
  [
    'a GitLab matcher without an id',
    { issuer: { preset: 'gitlab' }, binding: { matcher: "claims.project_path == 'a/b'" } },
    `${bindingAt}.matcher`,
    `must compare project_id or namespace_id, ${lasting}`,
  ],
  [
    'identity assertions of a platform',
    {
      issuer: { preset: 'gitlab' },
      binding: { matcher: "claims.project_id == '7'" },
      policy: { acceptedAssertionTypes: ['jwt_bearer', 'id_jag'] },
      more: { cimd: { enabled: true } },
    },
    `${policyAt}.acceptedAssertionTypes`,
    'id_jag is not allowed for the preset gitlab',
  ],
  [
    'identity assertions that no client can present',
    { policy: { acceptedAssertionTypes: ['id_jag'] }, more: { cimd: { enabled: false } } },
    `${policyAt}.acceptedAssertionTypes`,
    'id_jag requires clients, or cimd.enabled for clients with a metadata document',
  ],
  [
    'a client of an unknown issuer',
    { more: { clients: [client({ issuerRef: 'other', subject: 'job' })] } },
    'clients[0].federated.issuerRef',
    'must be the name of one of trustedIssuers',
  ],
  [
    'two clients with one subject',
    { more: { clients: [client({ subject: 'job' }), client({ subject: 'job' }, 'b')] } },
    'clients[1].federated.subject',
    'is already used by clients[0]',
  ],
  [
    'a client with a GitHub subject',
    {
      issuer: { preset: 'github' },
      binding: { matcher: "claims.repository_id == '1'" },
      more: { clients: [client({ subject: 'repo:a/b:ref:refs/heads/main' })] },
    },
    'clients[0].federated.subject',
    `is not allowed for github; a matcher must compare repository_id or repository_owner_id, ${lasting}`,
  ],
  [
    'a client with a subject that is not a ServiceAccount',
    {
      issuer: { preset: 'kubernetes' },
      binding: { subject: 'system:serviceaccount:jobs:nightly' },
      more: { clients: [client({ subject: 'nightly' })] },
    },
    'clients[0].federated.subject',
    'must have the form system:serviceaccount:<namespace>:<name>',
  ],
  [
    'a client with a matcher that does not compile',
    { more: { clients: [client({ matcher: 'claims.' })] } },
    'clients[0].federated.matcher',
    'not a CEL expression',
  ],
  [
    'a matcher that does not compile',
    { binding: { matcher: 'claims.' } },
    `${bindingAt}.matcher`,
    'not a CEL expression',
  ],
  [
    'a matcher that may take too long',
    { binding: { matcher: 'claims.a.all(x, claims.b.all(y, x == y))' } },
    `${bindingAt}.matcher`,
    'too expensive',
  ],
]

for (const [title, given, path, message] of rules) {
  t.test(`admission and the runtime reject ${title}`, async (t) => {
    const { door, shared, file } = messagesFor(settings(given))
    t.ok(door.startsWith(`${path}: `) && door.includes(message), door)
    t.notMatch(door, '\n')
    t.equal(shared, door)
    t.ok(file.includes(`${path} `) && file.includes(message), file)
    t.notMatch(door + file, /user:pass/)
  })
}

t.test('two issuers cannot have the same URL', async (t) => {
  const issuer = { issuerUrl: 'https://ci.example.com' }
  const trustedIssuers = [
    { name: 'ci', ...issuer },
    { name: 'copy', ...issuer },
  ]
  const { shared, file } = messagesFor(settings({ more: { trustedIssuers } }))
  t.match(shared, 'trustedIssuers[1].issuerUrl: is already used by trustedIssuers[0]')
  t.match(file, 'trustedIssuers[1].issuerUrl is already used by trustedIssuers[0]')
})

t.test('resources and audiences must fit the server', async (t) => {
  const foreign = settings({ binding: { subject: 'a', allowedResources: ['https://other.example.com'] } })
  t.match(messagesFor(foreign), {
    door: `${bindingAt}.allowedResources[0]: must be ${url}, the resourceUrl of oidcConfigRef`,
    shared: '',
    file: `${bindingAt}.allowedResources "https://other.example.com" is not in allowedAudiences`,
  })
  const audience = settings({ policy: { acceptedAudiences: [url] } })
  t.match(messagesFor(audience), {
    door: `${policyAt}.acceptedAudiences[0]: must not be a resource of this server`,
    shared: '',
    file: `${policyAt}.acceptedAudiences "${url}" must not be one of allowedAudiences`,
  })
})

t.test('valid settings for each platform are accepted', async (t) => {
  const cases: readonly Case[] = [
    {},
    { more: { upstreamProviders: [] } },
    { issuer: { preset: 'kubernetes' }, binding: { subject: 'system:serviceaccount:jobs:nightly.v2' } },
    { issuer: { preset: 'kubernetes' }, binding: { matcher: "claims.sub.startsWith('system:')" } },
    { issuer: { preset: 'github' }, binding: { matcher: "claims.repository_owner_id == '1'" } },
    { issuer: { preset: 'gitlab' }, binding: { matcher: "claims.namespace_id == '1'" } },
    { more: { inboundGrants: undefined, clients: [client({ subject: 'job' })] } },
    { more: { clients: [client({ subject: 'job' }), client({ subject: 'other' }, 'b')] } },
    {
      policy: { acceptedAssertionTypes: ['id_jag'], subjectBindings: undefined },
      more: { cimd: { enabled: true } },
    },
    {
      policy: { acceptedAssertionTypes: ['jwt_bearer', 'id_jag'] },
      more: { clients: [{ clientId: 'a', jwksUri: 'https://ci.example.com/keys', scopes }] },
    },
  ]
  for (const given of cases)
    t.same(messagesFor(settings(given)), { door: '', shared: '', file: '' }, JSON.stringify(given))
})

t.test('the defaults depend on the platform', async (t) => {
  for (const [preset, maxAgeMs] of [
    [undefined, 300_000],
    ['kubernetes', 3_600_000],
  ] as const) {
    const binding = { subject: 'system:serviceaccount:jobs:nightly' }
    const values = settings({ issuer: { preset }, binding })
    const file = { issuer: 'https://login.example.com', allowedAudiences: [url], ...values }
    const clients = [client({ subject: binding.subject })]
    const parsed = parseAuthServerConfig(JSON.stringify({ ...file, clients }), {})
    t.match(parsed.assertionPolicies, [{ maxAgeMs, replay: 'once', bindings: [{ resources: [url] }] }])
    t.match(parsed.clients, [{ federated: { maxAgeMs, replay: 'once', issuer: { name: 'ci' } } }])
  }
})

t.test('admission warns that a pod presents the same token again', async (t) => {
  const subject = 'system:serviceaccount:jobs:nightly'
  const warningsFor = (policy: Fields): string => {
    const values = settings({ issuer: { preset: 'kubernetes' }, binding: { subject }, policy })
    const server = { type: 'embeddedAuthServer', embeddedAuthServer: embedded(values) }
    return validateResource(resource('MCPExternalAuthConfig', 'server', server)).warnings.join('\n')
  }
  t.match(warningsFor({}), `${policyAt}: with replay set to once, a pod gets no further token`)
  t.notMatch(warningsFor({ replay: 'untilExpiry' }), 'with replay set to once')
  const warningsForClient = (federated: Fields): string => {
    const more = { inboundGrants: undefined, clients: [client({ subject, ...federated })] }
    const values = settings({ issuer: { preset: 'kubernetes' }, more })
    const server = { type: 'embeddedAuthServer', embeddedAuthServer: embedded(values) }
    return validateResource(resource('MCPExternalAuthConfig', 'server', server)).warnings.join('\n')
  }
  t.match(warningsForClient({}), 'clients[0].federated: with replay set to once, a pod gets no further token')
  t.notMatch(warningsForClient({ replay: 'untilExpiry' }), 'with replay set to once')
})

t.test('a missing file of an issuer prevents startup', async (t) => {
  const issuer = {
    jwksUrl: 'https://ci.example.com/keys',
    caBundlePath: '/none/ca',
    jwksAuthTokenPath: '/none/token',
  }
  const message = fileMessage(settings({ issuer }))
  t.match(message, 'trustedIssuers[ci].caBundlePath /none/ca cannot be read')
  t.match(message, 'trustedIssuers[ci].jwksAuthTokenPath /none/token cannot be read')
  const { jwksUrl: _, ...discovered } = issuer
  t.match(fileMessage(settings({ issuer: discovered })), 'jwksAuthTokenPath needs jwksUrl')
})
