/** Admission and `gatehouse validate` for declared clients: one message for each invalid field. */
import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { formatViolations } from '../../../schemas/index.ts'
import { embedded, resource, virtual } from '../../hooks/resources.ts'
import type { Stored } from '../../hooks/world.ts'
import { ecKey } from '../../helpers/hooks/client-cases.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'

const scopes = ['tools:read']
const clientSecretRefs = [{ name: 'job', key: 'secret' }]
const keyed = (more: object = {}) => ({ clientId: 'ci', jwks: { keys: [ecKey] }, scopes, ...more })
const keyedByUrl = (jwksUri: string) => ({ clientId: 'ci', jwksUri, scopes })

const url = 'https://door.example.com/mcp'
const door = (clients: readonly object[], more: object = {}): Stored =>
  virtual({
    incomingAuth: { type: 'oidc', oidcConfigRef: { name: 'login', audience: url, resourceUrl: url } },
    authServerConfig: embedded({ clients, ...more }),
  })
const shared = (clients: readonly object[], more: object = {}): Stored =>
  resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded({ clients, ...more }),
  })

/** Both kinds have the same rules. Returns the message with the path of the settings as `…`. */
function messagesFor(clients: readonly object[], more: object = {}): readonly [door: string, shared: string] {
  const inDoor = formatViolations(validateResource(door(clients, more)).violations)
  const inShared = formatViolations(validateResource(shared(clients, more)).violations)
  return [
    inDoor.replaceAll('spec.authServerConfig', '…'),
    inShared.replaceAll('spec.embeddedAuthServer', '…'),
  ]
}

const privateKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
const isPrivate = 'must not be set, because it is part of a private key; only public keys are allowed'
const oneCredential = 'exactly one of clientSecretRefs, jwks, jwksUri and federated must be set'

type Rule = readonly [title: string, clients: readonly object[], message: string, server?: object]

const rules: readonly Rule[] = [
  [
    'a client id that is used twice',
    [keyed(), keyedByUrl('https://ci.example.com/jwks')],
    '….clients[1]: repeats the clientId of item 0; every clientId must be unique',
  ],
  [
    'a secret without https',
    [{ clientId: 'ci', clientSecretRefs, scopes }],
    '….issuer: clients with clientSecretRefs need an https issuer, because their secrets are sent to it',
    { issuer: 'http://auth.ns.svc', insecureAllowHTTP: true },
  ],
  ['a client without credentials', [{ clientId: 'ci', scopes }], `….clients[0]: ${oneCredential}`],
  ['a secret next to keys', [keyed({ clientSecretRefs })], `….clients[0]: ${oneCredential}`],
  [
    'a Secret in another namespace',
    [{ clientId: 'ci', clientSecretRefs: [{ ...clientSecretRefs[0], namespace: 'other' }], scopes }],
    '….clients[0].clientSecretRefs[0].namespace: unknown field; allowed here: name, key',
  ],
  [
    'a private EC key',
    [keyed({ jwks: { keys: [ecKey, { ...ecKey, d: 'c2VjcmV0' }] } })],
    `….clients[0].jwks.keys[1].d: ${isPrivate}`,
  ],
  [
    'a private RSA key',
    [keyed({ signingAlg: 'RS256', jwks: { keys: [privateKey] } })],
    ['d', 'dp', 'dq', 'p', 'q', 'qi']
      .map((name) => `….clients[0].jwks.keys[0].${name}: ${isPrivate}`)
      .join('\n'),
  ],
  [
    'a symmetric key',
    [keyed({ jwks: { keys: [{ kty: 'oct', k: 'c2VjcmV0' }] } })],
    '….clients[0].jwks.keys[0].kty: expected one of "EC", "RSA" or "OKP", found a string of 3 characters',
  ],
  [
    'a key that does not fit signingAlg',
    [keyed({ signingAlg: 'EdDSA' })],
    '….clients[0].jwks.keys[0]: must be an Ed25519 key, because signingAlg is EdDSA',
  ],
  [
    'a key URL with credentials',
    [keyedByUrl('https://user:pass@ci.example.com/jwks')],
    '….clients[0].jwksUri: must not contain credentials',
  ],
  [
    'a key URL with a fragment',
    [keyedByUrl('https://ci.example.com/jwks#a')],
    '….clients[0].jwksUri: must not have a fragment',
  ],
  [
    'a scope that needs a user',
    [keyed({ scopes: ['tools:read', 'openid'] })],
    '….clients[0].scopes: must not contain openid, profile, email or offline_access, which need a user',
  ],
  ['a long lifespan', [keyed({ tokenLifespan: '2h' })], '….clients[0].tokenLifespan: must be from 1m to 1h'],
  [
    'subjectClients without the grant',
    [keyed({ subjectClients: ['*'] })],
    '….inboundGrants: clients with subjectClients need inboundGrants.tokenExchange',
  ],
  [
    'the grant without subjectClients',
    [keyed()],
    '….inboundGrants: inboundGrants.tokenExchange needs a client with subjectClients, or issuerPolicies',
    { inboundGrants: { tokenExchange: {} } },
  ],
  [
    'token exchange without users',
    [keyed({ subjectClients: ['*'] })],
    "….upstreamProviders: upstreamProviders needs at least one provider when inboundGrants.tokenExchange is set without issuerPolicies, because only users' tokens can be exchanged",
    { inboundGrants: { tokenExchange: {} }, upstreamProviders: [] },
  ],
  [
    'a certificate-bound client of a server that binds no tokens',
    [keyed({ tlsClientCertificateBoundAccessTokens: true })],
    '….tlsClientCertificateBoundAccessTokens: clients with tlsClientCertificateBoundAccessTokens need the same field of the server',
  ],
  [
    'a list of clients next to all clients',
    [keyed({ subjectClients: ['*', 'app'] })],
    '….clients[0].subjectClients: * must be the only entry',
    { inboundGrants: { tokenExchange: {} } },
  ],
  [
    'a long delegation lifespan',
    [keyed({ subjectClients: ['*'] })],
    '….inboundGrants.tokenExchange.delegationLifespan: must be from 1m to 1h',
    { inboundGrants: { tokenExchange: { delegationLifespan: '2h' } } },
  ],
  [
    'neither clients nor upstreams',
    [],
    '….upstreamProviders: upstreamProviders needs at least one provider unless clients, inboundGrants.jwtBearer or inboundGrants.spiffeClientAuth is set',
    { upstreamProviders: [] },
  ],
  [
    'a primary upstream without upstreams',
    [keyed()],
    '….primaryUpstreamProvider: primaryUpstreamProvider must be the name of one of upstreamProviders',
    { upstreamProviders: [], primaryUpstreamProvider: 'corp' },
  ],
]

for (const [title, clients, message, more] of rules) {
  t.test(`admission rejects ${title}`, async (t) => {
    const [inDoor, inShared] = messagesFor(clients, more)
    t.equal(inDoor, message)
    t.equal(inShared, message)
    t.notMatch(inDoor + inShared, /c2VjcmV0/, 'the key is not repeated')
  })
}

t.test('admission rejects a key URL at an address that no server uses', async (t) => {
  for (const message of messagesFor([keyedByUrl('https://169.254.169.254/jwks')]))
    t.match(message, /^….clients\[0\]\.jwksUri: /)
})

t.test('admission rejects a resource that the virtual server does not have', async (t) => {
  const foreign = keyed({ resources: [url, 'https://other.example.com'] })
  t.equal(
    formatViolations(validateResource(door([foreign])).violations),
    `spec.authServerConfig.clients[0].resources[1]: must be ${url}, the resourceUrl of oidcConfigRef; this server issues no other tokens`,
  )
  const oidcConfigRefs = [
    { name: 'login', audience: url, resourceUrl: url },
    { name: 'partner', audience: 'x' },
  ]
  const several = virtual({
    incomingAuth: { type: 'oidc', oidcConfigRefs },
    authServerConfig: embedded({ clients: [foreign] }),
  })
  t.match(
    formatViolations(validateResource(several).violations),
    /^spec\.authServerConfig\.clients\[0\]\.resources\[1\]: must be /,
  )
  t.strictSame(validateResource(shared([foreign])).violations, [], 'the servers that use it are unknown')
})

t.test('admission accepts clients with any credential, with and without upstreams', async (t) => {
  const clients = [
    { clientId: 'secret', clientSecretRefs, scopes },
    keyed({ resources: [url] }),
    { ...keyedByUrl('https://ci.example.com/jwks'), clientId: 'url', signingAlg: 'RS256' },
  ]
  for (const more of [{}, { upstreamProviders: [] }, { upstreamProviders: undefined }]) {
    t.strictSame(messagesFor(clients, more), ['', ''])
  }
})

t.test('gatehouse validate reports the same messages', async (t) => {
  const clients = [
    keyed({ jwks: { keys: [{ ...ecKey, d: 'c2VjcmV0' }] } }),
    keyed({ resources: ['https://b.example'] }),
  ]
  const manifest = door(clients)
  const dir = t.testdir({ 'door.json': JSON.stringify(manifest) })
  const { code, stdout, stderr } = await runGatehouse(['validate', '-f', dir])
  t.equal(code, 1)
  const output = stdout + stderr
  for (const { path, message } of validateResource(manifest).violations) {
    t.match(output, path)
    t.match(output, message)
  }
  t.notMatch(output, /c2VjcmV0/)
})

await t.test('a virtual server must accept the tokens that its authorization server issues', async (t) => {
  const messages = (issued: object | undefined, accepted: object | undefined) =>
    formatViolations(
      validateResource(
        virtual({
          incomingAuth: {
            type: 'oidc',
            oidcConfigRef: { name: 'login', audience: url, resourceUrl: url },
            dpop: accepted,
          },
          authServerConfig: embedded({ dpop: issued }),
        }),
      ).violations,
    )
  const field = 'spec.incomingAuth.dpop.mode'
  const [optional, required] = [{ mode: 'optional' }, { mode: 'required' }]
  t.match(messages(optional, undefined), `${field}: must not be off`)
  t.match(messages(required, { mode: 'off' }), `${field}: must not be off`)
  t.match(messages(undefined, required), `${field}: must not be required`)
  t.equal(messages(undefined, optional), '')
  t.equal(messages(optional, required), '')
  t.equal(messages(undefined, undefined), '')
})
