/**
 * `gatehouse doctor URL` in staged failures: a real MCP server and a real OpenID provider with one thing bent at a time.
 * In each the doctor must name the right check, hop and code, and the fix.
 */
import t from 'tap'
import { type ExamineOptions, examineRemote, type Finding } from '../../../runtime/doctor/index.ts'
import {
  type Bend,
  type Place,
  sendJson,
  sendText,
  type Stage,
  startStage,
} from '../../helpers/doctor/staged.ts'

t.setTimeout(180_000)

interface Case {
  readonly name: string
  readonly bend: Bend
  readonly code: string
  readonly hop: string
  readonly fix: RegExp
  readonly result?: 'failed' | 'warning'
  /** Replaces the path of the URL. */
  readonly path?: string
  readonly options?: (stage: Stage) => Partial<ExamineOptions>
}

const redirectUri = 'http://localhost:8666/callback'
const client = {
  client_id: 'known-client',
  token_endpoint_auth_method: 'none',
  redirect_uris: [redirectUri],
  application_type: 'native',
}
const withToken = ({ token }: Stage) => ({ token })
const isMcp = (req: { url?: string | undefined }) => req.url === '/mcp'
const isMetadata = (req: { url?: string | undefined }) => (req.url ?? '').startsWith('/.well-known/o')

const endpoint: readonly Case[] = [
  {
    name: 'a redirect to another path',
    bend: {
      server: (req, res) => isMcp(req) && !!res.writeHead(308, { location: '/v2/mcp?key=secret' }).end(),
    },
    code: 'endpoint.redirect',
    hop: 'MCP endpoint',
    fix: /Use http:\/\/127\.0\.0\.1:\d+\/v2\/mcp: /,
  },
  {
    name: 'the wrong path',
    bend: {},
    path: '/wrong',
    code: 'endpoint.not-found',
    hop: 'MCP endpoint',
    fix: /Try http:\/\/127\.0\.0\.1:\d+\/mcp\./,
  },
  {
    name: 'a web page in place of the server',
    bend: { server: (req, res) => isMcp(req) && sendText(res, 200, '<html>app</html>', 'text/html') },
    code: 'endpoint.html',
    hop: 'MCP endpoint',
    fix: /route the path to the server/,
  },
  {
    name: 'a proxy that cannot reach its upstream',
    bend: { server: (req, res) => isMcp(req) && sendText(res, 502, 'Bad Gateway') },
    code: 'endpoint.upstream',
    hop: 'MCP endpoint',
    fix: /upstream address/,
  },
  {
    name: 'a firewall',
    bend: { server: (req, res) => isMcp(req) && sendText(res, 403, 'denied') },
    code: 'endpoint.forbidden',
    hop: 'MCP endpoint',
    fix: /firewall/,
  },
  {
    name: 'only GET is allowed',
    bend: { server: (req, res) => isMcp(req) && sendText(res, 405) },
    code: 'endpoint.method',
    hop: 'MCP endpoint',
    fix: /allow POST/,
  },
  {
    name: 'a connection that is closed',
    bend: { server: (req) => isMcp(req) && !!req.socket.destroy() },
    code: 'endpoint.unreachable',
    hop: 'MCP endpoint',
    fix: /logs of the server/,
  },
  {
    name: 'an endless response',
    bend: {
      server(req, res) {
        if (!isMcp(req)) return false
        res.writeHead(200, { 'content-type': 'application/json' })
        res.end(Buffer.alloc(400_000, 'x'))
        return true
      },
    },
    code: 'endpoint.too-large',
    hop: 'MCP endpoint',
    fix: /correct the path/,
  },
  {
    name: 'a clock that is two hours ahead',
    bend: {
      server(_req, res) {
        res.setHeader('date', new Date(Date.now() + 7_200_000).toUTCString())
        return false
      },
    },
    code: 'clock.skew',
    hop: 'MCP endpoint',
    fix: /NTP/,
  },
  {
    name: 'a server that no browser may call',
    bend: {},
    options: () => ({ origin: 'https://app.example.com' }),
    code: 'cors.refused',
    hop: 'MCP endpoint',
    fix: /Allow the origin/,
  },
  {
    name: 'a star that is to stand for Authorization',
    bend: {
      server(req, res) {
        res.setHeader('access-control-allow-origin', '*')
        res.setHeader('access-control-allow-headers', '*')
        return req.method === 'OPTIONS' && sendText(res, 204)
      },
    },
    options: () => ({ origin: 'https://app.example.com' }),
    code: 'cors.headers',
    hop: 'MCP endpoint',
    fix: /does not stand for authorization/,
  },
  {
    name: 'headers that scripts may not read',
    bend: {
      server(req, res) {
        res.setHeader('access-control-allow-origin', 'https://app.example.com')
        res.setHeader('access-control-allow-headers', 'authorization, *')
        return req.method === 'OPTIONS' && sendText(res, 204)
      },
    },
    options: () => ({ origin: 'https://app.example.com' }),
    result: 'warning',
    code: 'cors.exposed',
    hop: 'MCP endpoint',
    fix: /Expose both/,
  },
  {
    name: 'a 401 without a challenge',
    bend: { challenge: () => undefined },
    code: 'challenge.missing',
    hop: 'MCP endpoint',
    fix: /Send the header with every 401/,
  },
  {
    name: 'a challenge that a gateway renames',
    bend: {
      server: (req, res) =>
        isMcp(req) && !!res.writeHead(401, { 'x-amzn-remapped-www-authenticate': 'Bearer' }).end(),
    },
    code: 'challenge.renamed',
    hop: 'MCP endpoint',
    fix: /AWS API Gateway/,
  },
  {
    name: 'another login in front',
    bend: { challenge: () => 'Basic realm="staging"' },
    code: 'challenge.scheme',
    hop: 'MCP endpoint',
    fix: /exempt its path/,
  },
  {
    name: 'a challenge that names no document',
    bend: { challenge: () => 'Bearer realm="x"' },
    result: 'warning',
    code: 'challenge.no-metadata',
    hop: 'MCP endpoint',
    fix: /Name the protected-resource document/,
  },
  {
    name: 'a login that is asked for on tools/list only',
    bend: {
      open: true,
      server(req, res) {
        if (!isMcp(req) || req.headers['mcp-session-id'] === undefined || req.method !== 'POST') return false
        res.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
        return true
      },
    },
    result: 'warning',
    code: 'challenge.late',
    hop: 'MCP endpoint',
    fix: /Protect initialize/,
  },
]

const metadata: readonly Case[] = [
  {
    name: 'no protected-resource document',
    bend: {
      challenge: () => 'Bearer',
      server: (req, res) => isMetadata(req) && sendText(res, 404),
    },
    code: 'resource-document.missing',
    hop: 'resource metadata',
    fix: /Serve \/\.well-known\/oauth-protected-resource/,
  },
  {
    name: 'a login in front of the well-known documents',
    bend: { server: (req, res) => isMetadata(req) && sendText(res, 401) },
    code: 'resource-document.login',
    hop: 'resource metadata',
    fix: /Exempt \/\.well-known\//,
  },
  {
    name: 'a catch-all page for the well-known documents',
    bend: { server: (req, res) => isMetadata(req) && sendText(res, 200, '<html>', 'text/html') },
    code: 'resource-document.html',
    hop: 'resource metadata',
    fix: /catch-all page/,
  },
  {
    name: 'a document that is no JSON',
    bend: { server: (req, res) => isMetadata(req) && sendText(res, 200, '{"resource":', 'application/json') },
    code: 'resource-document.malformed',
    hop: 'resource metadata',
    fix: /a JSON object with resource/,
  },
  {
    name: 'a challenge that names the wrong place',
    bend: { challenge: ({ origin }) => `Bearer resource_metadata="${origin}/elsewhere"` },
    code: 'resource-document.challenge-url',
    hop: 'resource metadata',
    fix: /Set resource_metadata to http:\/\/127\.0\.0\.1:\d+\/\.well-known\/oauth-protected-resource\/mcp/,
  },
  {
    name: 'no authorization server',
    bend: { resource: ({ resource }) => ({ resource }) },
    code: 'resource-document.no-servers',
    hop: 'resource metadata',
    fix: /authorization_servers/,
  },
  {
    name: 'a server that names itself by http behind TLS',
    bend: { resource: (document) => ({ ...document, resource: 'https://127.0.0.1/mcp' }) },
    code: 'resource.scheme',
    hop: 'resource metadata',
    fix: /resourceUrl/,
  },
  {
    name: 'a server that names itself by its internal host',
    bend: { resource: (document) => ({ ...document, resource: 'http://mcp.internal:8080/mcp' }) },
    code: 'resource.host',
    hop: 'resource metadata',
    fix: /internal host/,
  },
  {
    name: 'a document for another path',
    bend: { resource: (document, { origin }) => ({ ...document, resource: `${origin}/other` }) },
    code: 'resource.path',
    hop: 'resource metadata',
    fix: /path included/,
  },
  {
    name: 'a document for the whole host',
    bend: { resource: (document, { origin }) => ({ ...document, resource: origin }) },
    result: 'warning',
    code: 'resource.parent',
    hop: 'resource metadata',
    fix: /Set resource to http:\/\/127\.0\.0\.1:\d+\/mcp/,
  },
]

function withMetadata(
  change: (document: Record<string, unknown>, place: Place) => Record<string, unknown>,
): Bend {
  return { metadata: change }
}

function without(name: string): Bend {
  return withMetadata((document) =>
    Object.fromEntries(Object.entries(document).filter(([key]) => key !== name)),
  )
}

const authorizationServer: readonly Case[] = [
  {
    name: 'an authorization server that is down',
    bend: { resource: (document) => ({ ...document, authorization_servers: ['http://127.0.0.1:1'] }) },
    code: 'issuer-host.connect',
    hop: 'authorization server',
    fix: /Start the authorization server/,
  },
  {
    name: 'no metadata of the authorization server',
    bend: { idp: (req, res) => isMetadata(req) && sendText(res, 404) },
    code: 'issuer-document.missing',
    hop: 'authorization server',
    fix: /oauth-authorization-server/,
  },
  {
    name: 'an issuer with a path that has no metadata',
    bend: {
      resource: (document, { issuer }) => ({ ...document, authorization_servers: [`${issuer}/tenant`] }),
      idp: (req, res) => (req.url ?? '').includes('/tenant') && sendText(res, 404),
    },
    code: 'issuer-document.root',
    hop: 'authorization server',
    fix: /Correct the path/,
  },
  {
    name: 'metadata of another issuer',
    bend: withMetadata((document) => ({ ...document, issuer: 'https://idp.example.com' })),
    code: 'issuer.mismatch',
    hop: 'authorization server',
    fix: /Write https:\/\/idp\.example\.com into authorization_servers/,
  },
  {
    name: 'an Okta server behind a name of its own',
    bend: withMetadata((document) => ({ ...document, issuer: 'https://dev-1.okta.com/oauth2/default' })),
    code: 'issuer.mismatch',
    hop: 'authorization server',
    fix: /custom authorization server: the root of the domain is the org server/,
  },
  {
    name: 'an issuer with a slash too many',
    bend: withMetadata((document, { issuer }) => ({ ...document, issuer: `${issuer}/` })),
    result: 'warning',
    code: 'issuer.slash',
    hop: 'authorization server',
    fix: /byte by byte/,
  },
  {
    name: 'a provider whose clock is an hour behind',
    bend: {
      idp(_req, res) {
        res.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString())
        return false
      },
    },
    code: 'issuer-clock.skew',
    hop: 'authorization server',
    fix: /fresh tokens/,
  },
  {
    name: 'no token endpoint',
    bend: without('token_endpoint'),
    code: 'endpoints.missing',
    hop: 'authorization server',
    fix: /authorization code flow/,
  },
  {
    name: 'a Keycloak realm whose host is not fixed',
    bend: {
      resource: (document, { issuer }) => ({ ...document, authorization_servers: [`${issuer}/realms/team`] }),
      idp(req, res) {
        if (!(req.url ?? '').includes('/.well-known/')) return false
        return sendJson(res, { issuer: 'http://keycloak:8080/realms/team' })
      },
    },
    code: 'issuer.mismatch',
    hop: 'authorization server',
    fix: /--hostname/,
  },
]

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
    name: 'PKCE of the method plain alone',
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
    fix: /register one by hand/,
  },
  {
    name: 'no registration at a provider that is named',
    bend: { features: { registration: { enabled: false }, registrationManagement: { enabled: false } } },
    options: () => ({ provider: 'entra' }),
    code: 'registration.none',
    hop: 'login',
    fix: /App registrations.*http:\/\/localhost/,
  },
  {
    name: 'registration that wants a token',
    bend: { features: { registration: { enabled: true, initialAccessToken: 'needed' } } },
    options: () => ({ register: true }),
    code: 'registration.token',
    hop: 'login',
    fix: /initial access token/,
  },
  {
    name: 'registration that refuses the redirect URI',
    bend: {
      idp: (req, res) => req.url === '/reg' && sendJson(res, { error: 'invalid_redirect_uri' }, 400),
    },
    options: () => ({ register: true }),
    code: 'registration.redirect',
    hop: 'login',
    fix: /any port/,
  },
  {
    name: 'client authentication that nobody has',
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
    fix: /method none/,
  },
  {
    name: 'scopes that the provider does not know',
    bend: { resource: (document) => ({ ...document, scopes_supported: ['read', 'sudo'] }) },
    result: 'warning',
    code: 'scopes.unknown',
    hop: 'login',
    fix: /define the missing ones/,
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
    fix: /take it down at once/,
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
    fix: /delete the stored registration/,
  },
  {
    name: 'a resource that the provider does not know',
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
    fix: /Sign in again/,
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
    name: 'a token that the server refuses',
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
    fix: /refuses the token/,
  },
  {
    name: 'a revision that nobody speaks',
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
          // The handshake and the list found the session; of the rest every other request does not.
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
    name: 'a proxy that holds an event stream back',
    bend: {
      server: (req) => isMcp(req) && req.method === 'GET' && req.headers['mcp-session-id'] !== undefined,
    },
    options: (stage) => ({ ...withToken(stage), timeoutMs: 3000 }),
    code: 'stream.buffered',
    hop: 'stream',
    fix: /proxy_buffering off/,
  },
  {
    name: 'a proxy that read the whole stream before it passed it on',
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
    fix: /response buffering off/,
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
    fix: /idle time-out/,
  },
]

for (const [group, cases] of Object.entries({ endpoint, metadata, authorizationServer, login, session })) {
  await t.test(group, async (t) => {
    for (const { name, bend, code, hop, fix, result = 'failed', path, options } of cases) {
      await t.test(name, async (t) => {
        const stage = await startStage(bend)
        t.teardown(() => stage.close())
        const target = new URL(path ?? '/mcp', stage.url)
        const { findings } = await examineRemote({ target, ...options?.(stage) })
        const found = findings.find((finding) => finding.result === result)
        t.match(found, { code, hop, fix: { text: fix } }, shown(findings))
        t.ok((found?.expected?.length ?? 0) > 5, 'says what was expected')
        if (result === 'warning') t.equal(firstFailure(findings), undefined, 'nothing fails')
      })
    }
  })
}

function firstFailure(findings: readonly Finding[]): string | undefined {
  return findings.find(({ result }) => result === 'failed' || result === 'unknown')?.code
}

function shown(findings: readonly Finding[]): string {
  return findings
    .filter(({ result }) => result !== 'ok' && result !== 'skipped')
    .map(({ code, observed }) => `${code}: ${observed}`)
    .join(' | ')
}

await t.test('all well: a server with a login, a token and a registered client', async (t) => {
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

await t.test('all well: both eras, and the stateless one alone', async (t) => {
  for (const era of ['both', 'stateless'] as const) {
    const stage = await startStage({ era })
    t.teardown(() => stage.close())
    const { findings } = await examineRemote({ target: new URL(stage.url), token: stage.token })
    t.equal(firstFailure(findings), undefined, shown(findings))
    t.match(findings.find(({ id }) => id === 'initialize')?.observed, /2026-07-28/)
    t.match(findings.find(({ id }) => id === 'stream')?.result, 'ok')
  }
})

await t.test('all well: a quiet stream that stays open while it is watched', async (t) => {
  const stage = await startStage()
  t.teardown(() => stage.close())
  const target = new URL(stage.url)
  const { findings } = await examineRemote({ target, token: stage.token, watchMs: 200 })
  t.match(
    findings.find(({ id }) => id === 'stream'),
    { result: 'ok', observed: 'a quiet stream stayed open for 0.2 s' },
  )
})

await t.test('no token goes anywhere but to the origin of the URL', async (t) => {
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
