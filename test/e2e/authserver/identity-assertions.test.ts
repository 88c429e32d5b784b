/**
 * Tests both ends of cross-application access. A virtual server at which a user signed in, or a proxy with the user's ID
 * token, obtains an identity assertion (ID-JAG) from the identity provider and redeems it at the authorization server of
 * another virtual server.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { login, redeem, registerClient, tokensOf } from '../../helpers/authserver/authserver.ts'
import { newSecret } from '../../helpers/authserver/declared-client.ts'
import {
  authServerFile,
  type Backend,
  type Gateway,
  makeKeys,
  oidcOf,
  startBackend,
  startGateway,
} from '../../helpers/authserver/hosted.ts'
import { startOidcProvider, type TestProvider, walk } from '../../helpers/authserver/oidc-provider.ts'
import { identityAssertion, type Platform, startPlatform } from '../../helpers/authserver/platform.ts'
import { freePort } from '../../helpers/gatehouse.ts'
import { type Certificates, makeCertificates, missingRedisTls } from '../../helpers/redis.ts'
import { proves } from '../../helpers/proves.ts'

proves('3.config.outgoingAuth.xaa')
t.setTimeout(240_000)

const scopes = ['tools:read']
const clientSecret = 'upstream-secret-of-the-gateway'
const idJag = 'urn:ietf:params:oauth:token-type:id-jag'

interface IdentityProvider {
  /** Issues the ID tokens. */
  readonly provider: TestProvider
  /** Signs the identity assertions. */
  readonly platform: Platform
}

/** An OpenID provider whose token endpoint also exchanges ID tokens for identity assertions. */
async function startIdentityProvider(
  t: Test,
  front: string,
  { certFile, keyFile, caFile }: Certificates,
): Promise<IdentityProvider> {
  // The cookie browser and jose fetch in this process.
  const anchors = getCACertificates('default')
  setDefaultCACertificates([...anchors, readFileSync(caFile, 'utf8')])
  t.teardown(() => setDefaultCACertificates(anchors))
  const platform = await startPlatform(t)
  const provider = await startOidcProvider({
    tls: { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') },
    clients: [
      {
        client_id: 'gatehouse',
        client_secret: clientSecret,
        redirect_uris: [`${front}/mcp/oauth/callback`],
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ],
    intercept(req, res) {
      if (req.url !== '/exchange') return false
      void exchange(req, res)
      return true
    },
  })
  t.teardown(() => provider.close())
  const { issuer } = provider
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))

  async function exchange(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let body = ''
    for await (const part of req) body += String(part)
    const form = new URLSearchParams(body)
    const subject = form.get('subject_token') ?? ''
    const { payload } = await jwtVerify(subject, keys, { issuer, audience: 'gatehouse' })
    const resource = form.get('resource') ?? ''
    const claims = { sub: payload.sub, resource, scope: form.get('scope') ?? undefined }
    const target = { issuer: form.get('audience') ?? '', now: Date.now }
    const assertion = await identityAssertion(platform, target, 'front', claims)
    const answer = { access_token: assertion, issued_token_type: idJag, token_type: 'N_A', expires_in: 60 }
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }
  return { provider, platform }
}

interface Server {
  readonly origin: string
  readonly dir: string
  readonly port: number
}

async function reserve(dir: string): Promise<Server> {
  const port = await freePort()
  return { origin: `http://127.0.0.1:${port}`, dir, port }
}

async function serve(
  t: Test,
  { dir, port }: Server,
  { file, authServer, env = {} }: { file: object; authServer?: string; env?: NodeJS.ProcessEnv },
): Promise<Gateway> {
  if (authServer !== undefined) writeFileSync(join(dir, 'authserver-config.yaml'), authServer)
  writeFileSync(
    join(dir, 'vmcp.yaml'),
    JSON.stringify({ name: 'team', groupRef: 'team', aggregation: {}, ...file }),
  )
  return startGateway(t, {
    dir,
    args: ['vmcp', 'serve', '-c', join(dir, 'vmcp.yaml'), '--port', String(port)],
    ready: /virtual MCP server listening/,
    env,
  })
}

const backendAt = (name: string, url: string) => ({ name, url, transport: 'streamable-http' })

/** Without a token, the server must add its own. */
async function call(
  { origin }: Pick<Server, 'origin'>,
  token: string | undefined,
  name: string,
): Promise<string> {
  const client = new Client({ name: 'app', version: '1' })
  const requestInit = token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { requestInit }))
  try {
    return JSON.stringify(await client.callTool({ name, arguments: {} }))
  } finally {
    await client.close()
  }
}

interface Inner {
  readonly gateway: Gateway
  /** Secret of the client `front`. */
  readonly secret: string
}

/** Serves the tool of a backend to the user alice through the client `front`, and to no other caller. */
async function serveInner(
  t: Test,
  inner: Server,
  { platform, backend, dpop }: { platform: Platform; backend: Backend; dpop?: object },
): Promise<Inner> {
  const secret = newSecret()
  writeFileSync(join(inner.dir, 'secret'), secret)
  const user = `${platform.issuer}#alice`
  const policies = [
    `permit(principal == Client::"${user}", action, resource) when { principal.kind == "user" && principal.clientId == "front" };`,
  ]
  const gateway = await serve(t, inner, {
    file: {
      incomingAuth: {
        type: 'oidc',
        oidc: oidcOf(inner.origin),
        authz: { type: 'cedar', policies },
        ...(dpop && { dpop }),
      },
      outgoingAuth: { source: 'inline' },
      backends: [backendAt('who', backend.url)],
    },
    authServer: authServerFile({
      origin: inner.origin,
      providers: {},
      keys: makeKeys(inner.dir),
      more: {
        ...(dpop && { dpop }),
        clients: [{ clientId: 'front', scopes, clientSecretFiles: [join(inner.dir, 'secret')] }],
        trustedIssuers: [{ name: 'corp', issuerUrl: platform.issuer }],
        inboundGrants: {
          jwtBearer: { issuerPolicies: [{ issuerRef: 'corp', acceptedAssertionTypes: ['id_jag'] }] },
        },
      },
    }),
  })
  return { gateway, secret }
}

t.test(
  'a user reaches a tool of another server with an identity assertion',
  { skip: missingRedisTls },
  async (t) => {
    const dir = t.testdir({ front: {}, inner: {} })
    const certificates = makeCertificates()
    t.teardown(() => certificates.remove())
    const [front, inner] = [await reserve(join(dir, 'front')), await reserve(join(dir, 'inner'))]
    const [{ provider, platform }, backend] = [
      await startIdentityProvider(t, front.origin, certificates),
      await startBackend(t),
    ]
    const { secret, gateway: innerGateway } = await serveInner(t, inner, { platform, backend })
    const xaa = {
      idpTokenUrl: `${provider.issuer}/exchange`,
      idpClientId: 'gatehouse',
      idpClientSecret: clientSecret,
      targetTokenUrl: `${inner.origin}/oauth/token`,
      targetClientId: 'front',
      targetClientSecret: secret,
      targetAudience: inner.origin,
      targetResource: `${inner.origin}/mcp`,
      scopes,
      subjectProviderName: 'corp',
    }
    const gateway = await serve(t, front, {
      env: { NODE_EXTRA_CA_CERTS: certificates.caFile },
      file: {
        incomingAuth: { type: 'oidc', oidc: oidcOf(front.origin) },
        outgoingAuth: { source: 'inline', backends: { inner: { type: 'xaa', xaa } } },
        operational: { failureHandling: { partialFailureMode: 'best_effort' } },
        backends: [backendAt('inner', `${inner.origin}/mcp`)],
      },
      authServer: authServerFile({
        origin: front.origin,
        providers: { corp: provider },
        keys: makeKeys(front.dir),
      }),
    })
    const rig = { issuer: front.origin }
    const signedIn = await login(rig, { client_id: await registerClient(rig), scope: 'openid' })
    const { access_token: token } = await tokensOf(await redeem(rig, signedIn))
    t.match(await call(front, token, 'inner_who_whoami'), 'authorization: none')
    t.match(innerGateway.running().output(), /token_issued/)
    for (const { running } of [gateway, innerGateway]) t.notMatch(running().output(), /eyJ/)
  },
)

/** Signs alice in at the identity provider, and returns her ID token for the client `gatehouse`. */
async function signIn({ issuer }: TestProvider, redirectUri: string): Promise<string> {
  const verifier = randomBytes(32).toString('base64url')
  const request = new URLSearchParams({
    client_id: 'gatehouse',
    response_type: 'code',
    scope: 'openid',
    redirect_uri: redirectUri,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const code =
    (await walk(`${issuer}/auth?${request.toString()}`, redirectUri)).searchParams.get('code') ?? ''
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`gatehouse:${clientSecret}`).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }),
  })
  return String(((await response.json()) as Record<string, unknown>)['id_token'])
}

const bound = { mode: 'required', requireNonce: true }

for (const dpop of [undefined, bound]) {
  t.test(
    `proxy with the grant id-jag: the user reaches a tool ${dpop ? 'with a token that is bound to a key' : 'without a sign-in'}`,
    { skip: missingRedisTls },
    async (t) => {
      const dir = t.testdir({ inner: {} })
      const certificates = makeCertificates()
      t.teardown(() => certificates.remove())
      const inner = await reserve(join(dir, 'inner'))
      const [{ provider, platform }, backend] = [
        await startIdentityProvider(t, 'http://127.0.0.1:1', certificates),
        await startBackend(t),
      ]
      const { gateway: innerGateway, secret } = await serveInner(t, inner, {
        platform,
        backend,
        ...(dpop && { dpop }),
      })
      const file = (name: string, text: string): string => {
        writeFileSync(join(dir, name), text)
        return join(dir, name)
      }
      const idToken = await signIn(provider, 'http://127.0.0.1:1/mcp/oauth/callback')
      const port = await freePort()
      const flags = {
        'target-uri': inner.origin,
        host: '127.0.0.1',
        port: String(port),
        'remote-auth-grant': 'id-jag',
        'remote-auth-client-id': 'front',
        'remote-auth-client-secret-file': file('front-secret', secret),
        'remote-auth-scopes': scopes.join(','),
        'remote-auth-idp-token-url': `${provider.issuer}/exchange`,
        'remote-auth-idp-client-id': 'gatehouse',
        'remote-auth-idp-client-secret-file': file('idp-secret', clientSecret),
        'remote-auth-id-token-file': file('id-token', idToken),
      }
      const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
      const gateway = await startGateway(t, {
        dir,
        args: ['proxy', '--remote-auth', ...args, 'user-tools'],
        ready: /[Pp]roxy started/,
        env: { NODE_EXTRA_CA_CERTS: certificates.caFile },
      })
      const proxy = { origin: `http://127.0.0.1:${port}` }
      t.match(await call(proxy, undefined, 'who_whoami'), 'authorization: none')
      t.match(innerGateway.running().output(), /token_issued/)
      for (const { running } of [gateway, innerGateway]) t.notMatch(running().output(), /eyJ/)
      await t.rejects(call(inner, undefined, 'who_whoami'), /authorization header required/)
    },
  )
}

/** The server trusts the access tokens of the identity provider, so only the type tells the assertion apart. */
for (const host of ['vmcp', 'proxy'] as const) {
  t.test(`${host}: rejects an identity assertion as an access token`, async (t) => {
    const server = await reserve(t.testdir({}))
    const { origin, dir, port } = server
    const [idp, backend] = [await startPlatform(t), await startBackend(t)]
    const oidc = {
      ...oidcOf(origin),
      issuer: idp.issuer,
      jwksUrl: `${idp.issuer}/keys`,
      jwksAllowPrivateIp: true,
    }
    if (host === 'vmcp') {
      await serve(t, server, {
        file: {
          incomingAuth: { type: 'oidc', oidc },
          outgoingAuth: { source: 'inline' },
          backends: [backendAt('who', backend.url)],
        },
      })
    } else {
      const targetUri = new URL(backend.url).origin
      const file = { name: 'guarded', targetUri, transport: 'streamable-http', host: '127.0.0.1', port, oidc }
      writeFileSync(join(dir, 'proxy.yaml'), JSON.stringify(file))
      const args = ['proxy', '--config', join(dir, 'proxy.yaml'), 'guarded']
      await startGateway(t, { dir, args, ready: /[Pp]roxy started/ })
    }
    const status = async (typ: string): Promise<number> => {
      const at = { issuer: `${origin}/mcp`, now: Date.now }
      const token = await identityAssertion(idp, at, 'front', { scope: 'tools:read' }, { typ })
      const response = await fetch(`${origin}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: {
            protocolVersion: '2025-11-25',
            capabilities: {},
            clientInfo: { name: 'a', version: '1' },
          },
        }),
      })
      await response.arrayBuffer()
      return response.status
    }
    t.equal(await status('oauth-id-jag+jwt'), 401)
    t.equal(await status('at+jwt'), 200, 'the same claims in an access token')
  })
}
