/**
 * A platform that issues tokens for workloads, an authorization server that accepts them as the grant (jwt-bearer), and
 * an MCP server that requires the authorization server's tokens.
 */
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { jwtVerify, type JWTPayload, SignJWT } from 'jose'
import { type Loopback, type PeerResponse, startLoopback } from '../loopback.ts'
import { startUpstream, type Upstream } from './rig.ts'

const platform = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Returns a token that the platform issued for a workload. */
export function workloadToken(
  audience: string | string[],
  claims: JWTPayload = {},
  typ?: string,
): Promise<string> {
  return new SignJWT({ jti: randomUUID(), ...claims })
    .setProtectedHeader({ alg: 'ES256', ...(typ === undefined ? {} : { typ }) })
    .setIssuer('https://platform.example')
    .setSubject('system:serviceaccount:apps:job')
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(platform.privateKey)
}

export interface PlatformWorld {
  readonly issuer: string
  readonly target: Upstream
  /** URL of the MCP endpoint. */
  readonly server: string
  /** Forms of the token requests, in order. */
  readonly forms: readonly URLSearchParams[]
  /** Authorization headers of the token requests, in order. */
  readonly authorizations: readonly (string | undefined)[]
  /** The next token requests get this response. Undefined: the assertion is verified. */
  response: PeerResponse | undefined
  /** The MCP server accepts only the newest token, unless this is set. */
  rejectedToken: string | undefined
}

/** `named` is the issuer that the MCP server names; default: the authorization server. */
export async function startPlatformWorld(t: Test, named?: string): Promise<PlatformWorld> {
  const idp: Loopback = await startLoopback((seen) => {
    if (seen.path === '/token') return respondToTokenRequest(seen.form)
    if (!seen.path.startsWith('/.well-known/')) return { status: 404 }
    return { body: { issuer: idp.url, token_endpoint: `${idp.url}/token` } }
  })
  const target = await startUpstream((seen, res) => {
    const token = seen.headers.authorization?.slice('Bearer '.length)
    if (seen.url.startsWith('/.well-known/oauth-protected-resource')) {
      res.setHeader('Content-Type', 'application/json')
      const servers = { authorization_servers: [named ?? idp.url], scopes_supported: ['openid', 'read'] }
      res.end(JSON.stringify({ resource: `http://${seen.headers.host}/mcp`, ...servers }))
    } else if (token === undefined || token === world.rejectedToken) {
      res.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
    } else res.end(`hello ${token}`)
  })
  t.teardown(() => Promise.all([idp.close(), target.close()]))
  const world: PlatformWorld = {
    issuer: idp.url,
    target,
    server: `${target.url}/mcp`,
    get forms() {
      return tokenRequests().map(({ form }) => form)
    },
    get authorizations() {
      return tokenRequests().map(({ headers }) => headers.authorization)
    },
    response: undefined,
    rejectedToken: undefined,
  }
  return world

  function tokenRequests() {
    return idp.seen.filter(({ path }) => path === '/token')
  }

  async function respondToTokenRequest(form: URLSearchParams): Promise<PeerResponse> {
    if (world.response !== undefined) return world.response
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return { status: 400, body: { error: 'unsupported_grant_type' } }
    try {
      const options = { audience: [idp.url, `${idp.url}/token`], issuer: 'https://platform.example' }
      const { payload } = await jwtVerify(form.get('assertion') ?? '', platform.publicKey, options)
      return { body: { access_token: `at-${payload.jti}`, token_type: 'Bearer', expires_in: 600 } }
    } catch {
      return { status: 400, body: { error: 'invalid_grant', error_description: form.get('assertion') } }
    }
  }
}
