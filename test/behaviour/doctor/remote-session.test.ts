/**
 * `gatehouse doctor URL` with staged failures: a real MCP server and a real OpenID provider with one broken part at a
 * time. In each case the doctor must report the right check, hop, code and fix. This file covers the login, the session
 * and healthy servers.
 */
import t from 'tap'
import {
  type Case,
  client,
  firstFailure,
  isMcp,
  redirectUri,
  runCases,
  shown,
  withMetadata,
  without,
  withToken,
} from '../../helpers/doctor/cases.ts'
import { sendJson, startStage } from '../../helpers/doctor/staged.ts'
import { examineRemote } from '../../../runtime/tools/doctor/remote/examine.ts'

t.setTimeout(180_000)

const login: readonly Case[] = [
  {
    name: 'no authorization code flow',
    bend: withMetadata((document) => ({ ...document, grant_types_supported: ['client_credentials'] })),
    code: 'flow.no-code',
    hop: 'login',
    fix: /Enable the authorization code flow/,
  },
  {
    name: 'PKCE that is not announced',
    bend: without('code_challenge_methods_supported'),
    code: 'pkce.absent',
    hop: 'login',
    fix: /authServerConfig/,
  },
  {
    name: 'PKCE with the method plain only',
    bend: withMetadata((document) => ({ ...document, code_challenge_methods_supported: ['plain'] })),
    code: 'pkce.plain',
    hop: 'login',
    fix: /Enable S256/,
  },
  {
    name: 'no registration',
    bend: { features: { registration: { enabled: false }, registrationManagement: { enabled: false } } },
    code: 'registration.none',
    hop: 'login',
    fix: /register a client manually/,
  },
  {
    name: 'no registration at a known provider',
    bend: { features: { registration: { enabled: false }, registrationManagement: { enabled: false } } },
    options: () => ({ provider: 'entra' }),
    code: 'registration.none',
    hop: 'login',
    fix: /App registrations.*http:\/\/localhost/,
  },
  {
    name: 'registration that requires a token',
    bend: { features: { registration: { enabled: true, initialAccessToken: 'needed' } } },
    options: () => ({ register: true }),
    code: 'registration.token',
    hop: 'login',
    fix: /initial access token/,
  },
  {
    name: 'registration that rejects the redirect URI',
    bend: {
      idp: (req, res) => req.url === '/reg' && sendJson(res, { error: 'invalid_redirect_uri' }, 400),
    },
    options: () => ({ register: true }),
    code: 'registration.redirect',
    hop: 'login',
    fix: /any port/,
  },
  {
    name: 'unsupported client authentication methods',
    bend: withMetadata((document) => ({
      ...document,
      token_endpoint_auth_methods_supported: ['tls_client_auth'],
    })),
    code: 'token-auth.unsupported',
    hop: 'login',
    fix: /Allow one of these methods/,
  },
  {
    name: 'no public clients',
    bend: withMetadata((document) => ({
      ...document,
      token_endpoint_auth_methods_supported: ['client_secret_basic'],
    })),
    result: 'warning',
    code: 'token-auth.no-public',
    hop: 'login',
    fix: /method “none”/,
  },
  {
    name: 'unknown scopes',
    bend: { resource: (document) => ({ ...document, scopes_supported: ['read', 'sudo'] }) },
    result: 'warning',
    code: 'scopes.unknown',
    hop: 'login',
    fix: /define the missing scopes/,
  },
  {
    name: 'no refresh tokens',
    bend: withMetadata((document) => ({ ...document, grant_types_supported: ['authorization_code'] })),
    result: 'warning',
    code: 'refresh.none',
    hop: 'login',
    fix: /refresh_token grant/,
  },
  {
    name: 'an empty key set',
    bend: { idp: (req, res) => req.url === '/jwks' && sendJson(res, { keys: [] }) },
    code: 'keys.empty',
    hop: 'login',
    fix: /Create a signing key/,
  },
  {
    name: 'a private key in the key set',
    bend: {
      idp: (req, res) =>
        req.url === '/jwks' && sendJson(res, { keys: [{ kty: 'RSA', n: 'a', e: 'b', d: 'c' }] }),
    },
    code: 'keys.private',
    hop: 'login',
    fix: /remove it immediately/,
  },
  {
    name: 'a redirect URI that is not registered',
    bend: { clients: [{ ...client, redirect_uris: ['http://localhost:1/other'] }] },
    options: () => ({ clientId: 'known-client' }),
    code: 'client.redirect',
    hop: 'login',
    fix: /Register exactly the redirect URI/,
  },
  {
    name: 'a client that the provider has forgotten',
    bend: {},
    options: () => ({ clientId: 'forgotten-client' }),
    code: 'client.unknown',
    hop: 'login',
    fix: /delete the registration that the MCP client has stored/,
  },
  {
    name: 'an unknown resource',
    bend: {
      clients: [client],
      idp(req, res) {
        if (!(req.url ?? '').startsWith('/auth?')) return false
        res.writeHead(303, { location: `${redirectUri}?error=invalid_target&state=x` }).end()
        return true
      },
    },
    options: () => ({ clientId: 'known-client' }),
    code: 'client.target',
    hop: 'login',
    fix: /define it there/,
  },
]

const jwt = (claims: object): string =>
  ['{"alg":"RS256"}', JSON.stringify(claims), 'signature']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.')
const nowSec = (): number => Math.floor(Date.now() / 1000)

const session: readonly Case[] = [
  {
    name: 'a token that has expired',
    bend: {},
    options: () => ({ token: jwt({ exp: nowSec() - 600 }) }),
    code: 'token.expired',
    hop: 'token',
    fix: /Log in again/,
  },
  {
    name: 'a token of another issuer',
    bend: {},
    options: () => ({ token: jwt({ exp: nowSec() + 600, iss: 'https://other.example.com' }) }),
    code: 'token.issuer',
    hop: 'token',
    fix: /another authorization server/,
  },
  {
    name: 'an encrypted token',
    bend: {},
    options: () => ({ token: 'a.b.c.d.e' }),
    code: 'token.encrypted',
    hop: 'token',
    fix: /JWE/,
  },
  {
    name: 'a token for somebody else',
    bend: { anyToken: true },
    options: ({ issuer }) => ({ token: jwt({ exp: nowSec() + 600, iss: issuer, aud: 'account' }) }),
    result: 'warning',
    code: 'token.audience',
    hop: 'token',
    fix: /resource \(or audience\)/,
  },
  {
    name: 'a token that the server rejects',
    bend: {
      server(req, res) {
        if (!isMcp(req) || req.headers.authorization === undefined) return false
        res.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end()
        return true
      },
    },
    options: () => ({ token: 'opaque-and-wrong' }),
    code: 'initialize.token',
    hop: 'session',
    fix: /rejected the token/,
  },
  {
    name: 'an unsupported revision',
    bend: {
      server(req, res) {
        if (!isMcp(req) || req.headers.authorization === undefined) return false
        return sendJson(res, { jsonrpc: '2.0', id: 1, result: { protocolVersion: '1999-01-01' } })
      },
    },
    options: withToken,
    code: 'initialize.version',
    hop: 'session',
    fix: /Upgrade the MCP server/,
  },
  {
    name: 'requests that reach another replica',
    bend: {
      server: (() => {
        let pings = 0
        return (req, res) => {
          if (req.method !== 'POST' || req.headers['mcp-session-id'] === undefined) return false
          // The handshake and the list find the session. After that, every second request does not.
          pings += 1
          return pings > 3 && pings % 2 === 0 ? sendJson(res, { error: 'no session' }, 404) : false
        }
      })(),
    },
    options: withToken,
    code: 'session.affinity',
    hop: 'session',
    fix: /sessionStorage/,
  },
  {
    name: 'a proxy that delays an event stream',
    bend: {
      server: (req) => isMcp(req) && req.method === 'GET' && req.headers['mcp-session-id'] !== undefined,
    },
    options: (stage) => ({ ...withToken(stage), timeoutMs: 3000 }),
    code: 'stream.buffered',
    hop: 'stream',
    fix: /proxy_buffering off/,
  },
  {
    name: 'a proxy that buffers the whole stream',
    bend: {
      server(req, res) {
        if (!isMcp(req) || req.method !== 'GET') return false
        res
          .writeHead(200, { 'content-type': 'text/event-stream', 'content-length': '14' })
          .end(': keep-alive\n\n')
        return true
      },
    },
    options: withToken,
    code: 'stream.length',
    hop: 'stream',
    fix: /disable its response buffering/,
  },
  {
    name: 'compression of event streams',
    bend: {
      server(req, res) {
        if (!isMcp(req) || req.method !== 'GET') return false
        res.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }).flushHeaders()
        return true
      },
    },
    options: withToken,
    result: 'warning',
    code: 'stream.compressed',
    hop: 'stream',
    fix: /compression/,
  },
  {
    name: 'a proxy that cuts quiet streams',
    bend: {
      server(req, res) {
        if (!isMcp(req) || req.method !== 'GET') return false
        res.writeHead(200, { 'content-type': 'text/event-stream' }).end(': hello\n\n')
        return true
      },
    },
    options: (stage) => ({ ...withToken(stage), watchMs: 60_000 }),
    code: 'stream.cut',
    hop: 'stream',
    fix: /idle timeout/,
  },
]

await runCases(t, 'login', login)
await runCases(t, 'session', session)

await t.test('healthy: a server with a login, a token and a registered client', async (t) => {
  const stage = await startStage({ clients: [client] })
  t.teardown(() => stage.close())
  const { findings } = await examineRemote({
    target: new URL(stage.url),
    token: stage.token,
    clientId: 'known-client',
    register: true,
  })
  t.equal(firstFailure(findings), undefined, shown(findings))
  const ok = new Set(findings.filter(({ result }) => result === 'ok').map(({ id }) => id))
  for (const id of [
    'challenge',
    'issuer',
    'pkce',
    'register',
    'client',
    'token',
    'initialize',
    'tools',
    'stream',
  ])
    t.ok(ok.has(id), id)
  t.match(findings.find(({ id }) => id === 'register')?.observed, /registered and deleted/)
})

await t.test('healthy: both eras, and the stateless era alone', async (t) => {
  for (const era of ['both', 'stateless'] as const) {
    const stage = await startStage({ era })
    t.teardown(() => stage.close())
    const { findings } = await examineRemote({ target: new URL(stage.url), token: stage.token })
    t.equal(firstFailure(findings), undefined, shown(findings))
    t.match(findings.find(({ id }) => id === 'initialize')?.observed, /2026-07-28/)
    t.match(findings.find(({ id }) => id === 'stream')?.result, 'ok')
  }
})

await t.test('healthy: a quiet stream that stays open while it is watched', async (t) => {
  const stage = await startStage()
  t.teardown(() => stage.close())
  const target = new URL(stage.url)
  const { findings } = await examineRemote({ target, token: stage.token, watchMs: 200 })
  t.match(
    findings.find(({ id }) => id === 'stream'),
    { result: 'ok', observed: 'an idle stream stayed open for 0.2 s' },
  )
})

await t.test('a token is sent only to the origin of the URL', async (t) => {
  const seen: (string | undefined)[] = []
  const stage = await startStage({
    idp(req) {
      seen.push(req.headers.authorization)
      return false
    },
  })
  t.teardown(() => stage.close())
  const { findings } = await examineRemote({ target: new URL(stage.url), token: stage.token })
  t.equal(firstFailure(findings), undefined, shown(findings))
  t.ok(seen.length > 0)
  t.same(
    seen.filter((value) => value !== undefined),
    [],
  )
  t.notMatch(JSON.stringify(findings), stage.token)
})
