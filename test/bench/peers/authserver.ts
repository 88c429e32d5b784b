/**
 * Runs five authorization servers on one store for the benchmark (one server takes only 2 500 registrations at once),
 * each with an MCP endpoint that only checks the token. Prints their issuers as one line of JSON.
 *
 * Arguments: `memory` or the address of a Redis; the upstream provider's issuer; the secret of the declared client
 * `secret-job` and the public key (JWK) of the clients `key-job-…`. `POST /baseline` is a minimal token endpoint: it
 * reads a body, signs one ES256 JWT, and responds. `GET /memory` collects garbage first; `GET /cpu` returns the CPU
 * time in microseconds.
 */
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { SignJWT } from 'jose'
import { makeAuthServer } from '../../../runtime/authserver/server/auth-server.ts'
import { authServerDefaults } from '../../../runtime/config/authserver/settings.ts'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { Exchange, readBody, sendJson } from '../../../runtime/net/index.ts'
import { keyJobCount } from '../authserver/machine.ts'
import { makeMemoryStore, makeRedisStore, type Store } from '../../../runtime/store/index.ts'

const [kind = 'memory', upstream = '', secret = '', key = '{}'] = process.argv.slice(2)
const keyJobs = Array.from({ length: keyJobCount }, (_, index) => `key-job-${index}`)
const machine = { signingAlg: 'ES256', scopes: ['tools'], tokenMs: 900_000 } as const
const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const secrets = { signingKeys: [pem], hmacSecrets: [randomBytes(48)] }

async function baseline(exchange: Exchange): Promise<void> {
  await readBody(exchange, { maxBytes: 65_536 })
  const token = await new SignJWT({ sub: 'alice', jti: randomUUID() })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt' })
    .setExpirationTime('1h')
    .sign(pair.privateKey)
  sendJson(exchange.res, 200, { access_token: token, token_type: 'Bearer' })
}

function sendMemory({ res }: Exchange): void {
  globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  sendJson(res, 200, { heap: heapUsed + external, rss })
}

function sendCpu({ res }: Exchange): void {
  const { user, system } = process.cpuUsage()
  sendJson(res, 200, user + system)
}

async function start(store: Store): Promise<string> {
  let handle: (exchange: Exchange) => void | Promise<void> = () => {}
  const host = createServer((req, res) => void handle(new Exchange(req, res)))
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve))
  const address = host.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  const resource = `${issuer}/mcp`
  const { accessTokenMs, refreshTokenMs, refreshGraceMs, authCodeMs, grantMs } = authServerDefaults
  const server = await makeAuthServer(
    {
      issuer,
      insecureAllowHttp: false,
      allowedAudiences: [resource],
      scopesSupported: ['openid', 'profile', 'email', 'offline_access'],
      baselineClientScopes: [],
      registration: { enabled: true, confidentialClients: false },
      consent: true,
      accessTokenMs,
      refreshTokenMs,
      refreshGraceMs,
      authCodeMs,
      grantMs,
      upstreams: [
        {
          name: 'corp',
          type: 'oidc',
          issuerUrl: upstream,
          clientId: 'gatehouse',
          clientSecret: () => 'secret',
          redirectUri: `${issuer}/oauth/callback`,
          scopes: ['openid', 'offline_access'],
          additionalAuthorizationParams: {},
          subjectClaim: 'sub',
        },
      ],
      clients: [
        { ...machine, clientId: 'secret-job', resources: [resource], secrets: [() => secret] },
        ...keyJobs.map((clientId) => ({
          ...machine,
          clientId,
          resources: [resource],
          jwks: { keys: [JSON.parse(key)] },
        })),
      ],
      disableUpstreamTokenInjection: false,
      storage: { type: 'memory' },
      trustedProxies: ['127.0.0.1'],
      secrets: () => secrets,
    },
    { store, onEvent: () => {} },
  )
  const authenticator = makeAuthenticator(
    { type: 'oidc', oidc: { issuer, audience: resource, resource } },
    { keys: server.keys, isLive: (caller) => server.isLive(caller) },
  )
  handle = (exchange) => {
    const { path } = exchange
    const stage = server.routes(path)
    if (stage) return stage(exchange)
    if (path === '/baseline') return baseline(exchange)
    if (path === '/memory') return sendMemory(exchange)
    if (path === '/cpu') return sendCpu(exchange)
    if (path === '/mcp') return mcp(exchange)
    return sendJson(exchange.res, 200, {})
  }
  async function mcp(exchange: Exchange): Promise<void> {
    try {
      await authenticator.authenticate(exchange.req.headers.authorization)
      sendJson(exchange.res, 200, {})
    } catch (error) {
      sendJson(exchange.res, 401, { error: String(error) })
    }
  }
  return issuer
}

const store =
  kind === 'memory' ? makeMemoryStore() : makeRedisStore({ addr: kind, keyPrefix: `bench:${randomUUID()}:` })
// Node writes a profile only when the process exits normally.
process.once('SIGTERM', () => process.exit())
const issuers = await Promise.all(['a:', 'b:', 'c:', 'd:', 'e:'].map((name) => start(store.namespace(name))))
console.log(JSON.stringify(issuers))
