/**
 * A setup for `gatehouse doctor`: a real MCP server (SDK) that requires tokens, a real OpenID provider (oidc-provider),
 * and one configurable fault.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import type { LookupAll } from '../../../runtime/net/index.ts'
import { startFixture } from '../mcp/fixture-server/index.ts'
import {
  startOidcProvider,
  type TestProvider,
  type TestProviderOptions,
} from '../authserver/oidc-provider.ts'

type Json = Record<string, unknown>

export interface Place {
  /** `http://127.0.0.1:port` of the MCP server. */
  readonly origin: string
  readonly issuer: string
}

export interface Bend {
  /** Called first with every request to the MCP server. Returns true if it sent the response. */
  readonly server?: (req: IncomingMessage, res: ServerResponse, place: Place) => boolean
  /** Called first with every request to the provider. Returns true if it sent the response. */
  readonly idp?: (req: IncomingMessage, res: ServerResponse) => boolean
  /** WWW-Authenticate header. Undefined omits the header. */
  readonly challenge?: (place: Place) => string | undefined
  /** The protected-resource document. */
  readonly resource?: (document: Json, place: Place) => Json
  /** The provider's metadata. */
  readonly metadata?: (document: Json, place: Place) => Json
  readonly clients?: readonly Readonly<Record<string, unknown>>[]
  readonly features?: Readonly<Record<string, unknown>>
  readonly era?: 'session' | 'stateless' | 'both'
  /** Accepts any token. */
  readonly anyToken?: boolean
  /** Verifies tokens correctly: signature, issuer, audience, and this scope. */
  readonly verify?: { readonly scope: string }
  /** Additional configuration and scopes of the provider. */
  readonly provider?: Pick<TestProviderOptions, 'configuration' | 'tokenClaims'>
  /** Requires no token. */
  readonly open?: boolean
}

export interface Stage extends Place {
  readonly url: string
  readonly idp: TestProvider
  /** A token that the MCP server accepts. */
  readonly token: string
  close(): Promise<void>
}

const wellKnown = '/.well-known/oauth-protected-resource/mcp'

export async function startStage(bend: Bend = {}): Promise<Stage> {
  let place: Place = { origin: '', issuer: '' }
  let metadata: Json | undefined
  let token = ''
  const resources: Record<string, { scope: string }> = {}
  const idp = await startOidcProvider({
    resources,
    clients: bend.clients ?? [],
    features: { registrationManagement: { enabled: true }, ...bend.features },
    ...(bend.provider?.tokenClaims && { tokenClaims: bend.provider.tokenClaims }),
    configuration: {
      ...bend.provider?.configuration,
      // The package's own page, without the warning that it is not for production.
      renderError(ctx: { type: string; body: string }, out: object) {
        ctx.type = 'text'
        ctx.body = JSON.stringify(out)
      },
    },
    intercept(req, res) {
      if (bend.idp?.(req, res)) return true
      if (metadata === undefined || bend.metadata === undefined) return false
      if (!/^\/\.well-known\/o(?:penid-configuration|auth-authorization-server)/.test(req.url ?? ''))
        return false
      sendJson(res, bend.metadata({ ...metadata }, place))
      return true
    },
  })
  const fixture = await startFixture({
    era: bend.era ?? 'session',
    before(req, res) {
      if (bend.server?.(req, res, place)) return true
      if (req.url === wellKnown) {
        const document = {
          resource: `${place.origin}/mcp`,
          authorization_servers: [idp.issuer],
          scopes_supported: ['read'],
        }
        sendJson(res, bend.resource?.(document, place) ?? document)
        return true
      }
      if (!(req.url ?? '').startsWith('/mcp')) {
        res.writeHead(404).end()
        return true
      }
      const { authorization } = req.headers
      if (bend.open === true || authorization === `Bearer ${token}`) return false
      if (bend.anyToken === true && authorization !== undefined) return false
      if (bend.verify !== undefined && authorization !== undefined) {
        const { scope } = bend.verify
        return refusalOf(authorization.slice(7), idp.issuer, `${place.origin}/mcp`, scope).then((error) => {
          if (error !== undefined) refuse(res, error, scope)
          return error !== undefined
        })
      }
      const challenge = bend.challenge
        ? bend.challenge(place)
        : `Bearer resource_metadata="${place.origin}${wellKnown}"`
      res.writeHead(401, challenge === undefined ? {} : { 'www-authenticate': challenge }).end()
      return true
    },
  })
  const origin = new URL(fixture.url).origin
  place = { origin, issuer: idp.issuer }
  resources[`${origin}/mcp`] = { scope: 'read' }
  const response = await fetch(`${idp.issuer}/.well-known/openid-configuration`)
  const document: unknown = response.ok ? await response.json() : {}
  metadata = typeof document === 'object' && document !== null ? { ...document } : {}
  const [client] = bend.clients ?? []
  token =
    client === undefined
      ? 'opaque-token-of-the-stage'
      : await idp.accessToken({ clientId: String(client['client_id']), resource: `${origin}/mcp` })
  return {
    ...place,
    url: fixture.url,
    idp,
    token,
    async close() {
      await Promise.all([fixture.close(), idp.close()])
    },
  }
}

type Refusal = 'invalid_token' | 'insufficient_scope'

/** Undefined uses a valid token. */
async function refusalOf(
  token: string,
  issuer: string,
  audience: string,
  scope: string,
): Promise<Refusal | undefined> {
  try {
    const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
    const { payload } = await jwtVerify(token, keys, { issuer, audience })
    return String(payload['scope']).split(' ').includes(scope) ? undefined : 'insufficient_scope'
  } catch {
    return 'invalid_token'
  }
}

function refuse(res: ServerResponse, error: Refusal, scope: string): void {
  const status = error === 'invalid_token' ? 401 : 403
  res.writeHead(status, { 'www-authenticate': `Bearer error="${error}", scope="${scope}"` }).end()
}

export function sendJson(res: ServerResponse, body: unknown, status = 200): boolean {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  return true
}

export function sendText(res: ServerResponse, status: number, body = '', type = 'text/plain'): boolean {
  res.writeHead(status, { 'content-type': type }).end(body)
  return true
}

export interface Bare {
  readonly port: number
  close(): Promise<void>
}

/** Starts a server on 127.0.0.1 that does only what the listener does, with TLS if a certificate is given. */
export async function startBare(
  listener: (req: IncomingMessage, res: ServerResponse) => void,
  tls?: { readonly cert: string; readonly key: string },
): Promise<Bare> {
  const server = tls ? createTlsServer(tls, listener) : createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Returns a resolver that resolves only these names. */
export function resolverOf(names: Readonly<Record<string, string>>): LookupAll {
  return (hostname, _options, callback) => {
    const address = names[hostname]
    if (address === undefined) callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), [])
    else callback(null, [{ address, family: address.includes(':') ? 6 : 4 }])
  }
}
