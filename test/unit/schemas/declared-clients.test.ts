/** Clients in the file of an authorization server: every field, bound, default and rule. */
import t from 'tap'
import { formatViolations, validateRuntime } from '../../../schemas/index.ts'
import { type Doc, type Json, withValue } from './tables/table.ts'

const client = { clientId: 'ci', clientSecretFiles: ['/run/ci/0'], scopes: ['tools:read'] }
const file: Doc = {
  issuer: 'https://auth.example.com',
  allowedAudiences: ['https://mcp.example.com'],
  clients: [client],
}
const keyed: Doc = {
  ...file,
  clients: [{ clientId: 'ci', jwks: { keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'eA' }] }, scopes: ['a'] }],
}

function pathsFor(path: string, value: Json, doc = file): readonly string[] {
  return validateRuntime('authserver', withValue(doc, path, value)).violations.map((found) => found.path)
}

function messageFor(path: string, value: Json, doc = file): string {
  return formatViolations(validateRuntime('authserver', withValue(doc, path, value)).violations)
}

t.test('a file with clients needs no upstreams', async (t) => {
  const { config, violations } = validateRuntime('authserver', file)
  t.strictSame(violations, [])
  t.match(config, { upstreamProviders: [], clients: [{ signingAlg: 'ES256', tokenLifespan: '15m' }] })
  t.strictSame(validateRuntime('authserver', keyed).violations, [])
  for (const clients of [undefined, []]) {
    t.equal(
      formatViolations(validateRuntime('authserver', { ...file, clients }).violations),
      'upstreamProviders: upstreamProviders needs at least one provider unless clients, inboundGrants.jwtBearer or inboundGrants.spiffeClientAuth is set',
    )
  }
})

t.test('token exchange: the runtime file has the same rules', async (t) => {
  const upstreamProviders = [
    { name: 'corp', type: 'oidc', oidcConfig: { issuerUrl: 'https://id.example.com', clientId: 'x' } },
  ]
  const exchanging: Doc = {
    ...file,
    upstreamProviders,
    inboundGrants: { tokenExchange: {} },
    clients: [{ ...client, subjectClients: ['https://app.example.com/client.json'] }],
  }
  const { config, violations } = validateRuntime('authserver', exchanging)
  t.strictSame(violations, [])
  t.match(config, { inboundGrants: { tokenExchange: { delegationLifespan: '15m', maxDelegationDepth: 5 } } })
  t.equal(
    messageFor('inboundGrants', {}, exchanging),
    'inboundGrants: clients with subjectClients need inboundGrants.tokenExchange',
  )
  t.strictSame(pathsFor('clients', [client], exchanging), ['inboundGrants'])
  t.strictSame(pathsFor('upstreamProviders', [], exchanging), ['upstreamProviders'])
  t.equal(
    messageFor('clients[0].subjectClients', ['*', 'x'], exchanging),
    'clients[0].subjectClients: * must be the only entry',
  )
})

t.test('clientSecretFiles: one or two absolute paths', async (t) => {
  const at = 'clients[0].clientSecretFiles'
  t.strictSame(pathsFor(at, ['/run/ci/0', '/run/ci/1']), [])
  t.strictSame(pathsFor(at, []), [at])
  t.strictSame(pathsFor(at, ['/a', '/b', '/c']), [at])
  for (const path of ['ci/0', '', '/run/../0', 1])
    t.strictSame(pathsFor(at, [path]), [`${at}[0]`], String(path))
  t.match(
    messageFor('clients[0].clientSecretRefs', [{ name: 'a', key: 'b' }]),
    /clientSecretRefs: unknown field; did you mean "clientSecretFiles"/,
  )
})

t.test('a client has exactly one kind of credential', async (t) => {
  const message = 'clients[0]: exactly one of clientSecretFiles, jwks, jwksUri and federated must be set'
  const jwksUri = 'https://ci.example.com/jwks'
  t.equal(messageFor('clients[0].jwksUri', jwksUri), message)
  t.equal(messageFor('clients[0].jwksUri', jwksUri, keyed), message)
  t.equal(messageFor('clients', [{ clientId: 'ci', scopes: ['a'] }]), message)
  t.equal(messageFor('clients', [{ clientId: 'ci', scopes: ['a'], jwksUri }]), '')
  t.equal(messageFor('clients[0].clientSecretFiles', ['/run/ci/0'], keyed), message)
  const credentials = {
    clientSecretFiles: ['/run/ci/0'],
    jwks: { keys: [{ kty: 'EC' }] },
    jwksUri,
    federated: { issuerRef: 'ci', subject: 'job' },
  }
  const names = Object.keys(credentials)
  for (let set = 0; set < 16; set++) {
    const chosen = Object.entries(credentials).filter((_, index) => (set >> index) % 2 === 1)
    const given = { clientId: 'ci', scopes: ['a'], ...Object.fromEntries(chosen) }
    const expected = chosen.length === 1 ? '' : message
    t.equal(messageFor('clients', [given]), expected, `${chosen.length} of ${names.length}, set ${set}`)
  }
})

t.test('client ids are unique, and every field has its bounds', async (t) => {
  t.match(messageFor('clients', [client, client]), /^clients\[1\]: /)
  const many = (count: number) => Array.from({ length: count }, (_, i) => ({ ...client, clientId: `c${i}` }))
  t.strictSame(pathsFor('clients', many(50)), [])
  t.strictSame(pathsFor('clients', many(51)), ['clients'])
  const wrong: readonly (readonly [field: string, value: Json, at?: string])[] = [
    ['clientId', 'client:ci'],
    ['clientId', 'x'.repeat(129)],
    ['signingAlg', 'HS256'],
    ['scopes', []],
    ['scopes', ['openid']],
    ['scopes', ['a b'], 'scopes[0]'],
    ['resources', []],
    ['resources', ['mcp'], 'resources[0]'],
    ['tokenLifespan', '59s'],
    ['tokenLifespan', '61m'],
  ]
  for (const [field, value, at = field] of wrong)
    t.strictSame(
      pathsFor(`clients[0].${field}`, value),
      [`clients[0].${at}`],
      `${field} ${JSON.stringify(value)}`,
    )
  t.strictSame(pathsFor('clients[0].jwks.keys[0].kty', 'oct', keyed), ['clients[0].jwks.keys[0].kty'])
})

t.test('secrets need an https issuer, even with insecureAllowHTTP', async (t) => {
  const insecure = { issuer: 'http://auth.ns.svc', insecureAllowHTTP: true }
  t.equal(
    formatViolations(validateRuntime('authserver', { ...file, ...insecure }).violations),
    'issuer: clients with clientSecretFiles need an https issuer, because their secrets are sent to it',
  )
  t.strictSame(validateRuntime('authserver', { ...keyed, ...insecure }).violations, [])
  for (const issuer of ['http://localhost:8080', 'http://127.0.0.1', 'http://[::1]:80'])
    t.strictSame(pathsFor('issuer', issuer), [], issuer)
})
