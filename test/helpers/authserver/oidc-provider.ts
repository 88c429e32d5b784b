/**
 * A real OpenID provider (oidc-provider) in this process, on a free loopback port.
 *
 * Every login succeeds immediately as `accountId`, without a form; `walk` plays the browser. Access tokens for
 * resources are JWTs unless the resource is listed as opaque. Tests can replace the signing keys while the provider
 * runs.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { type Context, Provider } from 'oidc-provider'
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js'

export type { Context }

export interface TestProviderOptions {
  /** oidc-provider client metadata. */
  readonly clients?: readonly Readonly<Record<string, unknown>>[]
  /** Resource indicators and their scopes. */
  readonly resources?: Readonly<Record<string, { readonly scope?: string; readonly opaque?: boolean }>>
  /** Account that logs in. Default: `alice`. */
  readonly accountId?: string
  /** Account for the next login, instead of `accountId`. */
  readonly nextAccount?: () => string
  /** Claims of the account in addition to `sub`. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** Claims to add to every access token. */
  readonly tokenClaims?: (clientId: string) => Readonly<Record<string, unknown>>
  /** Signature algorithm, which determines the type of the key. Default: RS256. */
  readonly alg?: string
  /** Additional features of oidc-provider. */
  readonly features?: Readonly<Record<string, unknown>>
  /** Additional configuration of oidc-provider. */
  readonly configuration?: Readonly<Record<string, unknown>>
  /** PEM files. The provider then has an https address. With `ca`, it requests client certificates. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string }
  /** Called first with every request. Returns true if it sent the response. */
  readonly intercept?: (req: IncomingMessage, res: ServerResponse) => boolean
}

export interface TestProvider {
  readonly issuer: string
  /** The package's provider, for calls that have no shortcut here, such as `registerGrantType`. */
  readonly provider: Provider
  /** Paths of all requests, in order. */
  readonly requests: readonly string[]
  /** Returns an access token of the account for a resource, without a login. */
  accessToken(from: {
    clientId: string
    resource: string
    scope?: string
    accountId?: string
  }): Promise<string>
  /** Closes all connections, so that the next request opens a new one. */
  endConnections(): void
  close(): Promise<void>
}

export async function startOidcProvider(options: TestProviderOptions = {}): Promise<TestProvider> {
  const requests: string[] = []
  let handle: (req: IncomingMessage, res: ServerResponse) => void = () => {}
  const listener = (req: IncomingMessage, res: ServerResponse): void => {
    requests.push((req.url ?? '').split('?', 1)[0] ?? '')
    if (!options.intercept?.(req, res)) handle(req, res)
  }
  const server = options.tls
    ? createTlsServer(
        { ...options.tls, requestCert: options.tls.ca !== undefined, rejectUnauthorized: false },
        listener,
      )
    : createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const issuer = `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`
  const accountId = options.accountId ?? 'alice'
  const provider = new Provider(issuer, await configuration(options, accountId))
  const serve = provider.callback()
  handle = (req, res) => {
    if (req.url?.startsWith('/interaction/'))
      void finishInteraction(provider, options.nextAccount?.() ?? accountId, req, res)
    else void serve(req, res)
  }

  return {
    issuer,
    provider,
    requests,
    async accessToken(from) {
      const client = await provider.Client.find(from.clientId)
      const who = from.accountId ?? accountId
      const scope = from.scope ?? 'read'
      const grant = new provider.Grant({ accountId: who, clientId: from.clientId })
      grant.addResourceScope(from.resource, scope)
      const grantId = await grant.save()
      const token = new provider.AccessToken({
        client,
        accountId: who,
        grantId,
        gty: 'authorization_code',
        scope,
      })
      token.resourceServer = new provider.ResourceServer(from.resource, resourceInfo(options, from.resource))
      return token.save()
    },
    endConnections: () => server.closeAllConnections(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Returns a private signing key as a JWK with the given key id. */
async function signingKey(alg = 'RS256', kid = `test-${alg}`): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  return { ...(await exportJWK(privateKey)), alg, kid, use: 'sig' }
}

async function configuration(options: TestProviderOptions, accountId: string): Promise<object> {
  const alg = options.alg ?? 'RS256'
  const keys = [await signingKey(alg)]
  if (alg !== 'RS256') keys.push(await signingKey('RS256', 'test-id'))
  const clients = (options.clients ?? []).map((client) => ({
    id_token_signed_response_alg: 'RS256',
    ...client,
  }))
  return {
    // The package's in-memory adapter under another name. With its own name, each start would warn that it is not for
    // production.
    adapter: createMemoryAdapter(0),
    clients,
    jwks: { keys },
    cookies: { keys: ['test'] },
    claims: { openid: ['sub'], profile: ['name'], email: ['email'] },
    conformIdTokenClaims: false,
    scopes: ['openid', 'offline_access', 'profile', 'email', 'read', 'write'],
    findAccount: (_ctx: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ ...(id === accountId ? options.claims : {}), sub: id }),
    }),
    extraTokenClaims: (_ctx: unknown, token: { clientId?: string }) =>
      options.tokenClaims?.(token.clientId ?? ''),
    interactions: { url: (_ctx: unknown, interaction: { uid: string }) => `/interaction/${interaction.uid}` },
    issueRefreshToken: async () => true,
    ttl: {
      AccessToken: 3600,
      ClientCredentials: 600,
      Grant: 86_400,
      IdToken: 3600,
      Interaction: 600,
      RefreshToken: 86_400,
      Session: 86_400,
    },
    clientBasedCORS: () => false,
    renderError: (ctx: { type: string; body: unknown }, out: object) => {
      ctx.type = 'html'
      ctx.body = `<h1>The test provider refused the request</h1><pre>${JSON.stringify(out).replaceAll('<', '&lt;')}</pre>`
    },
    ...options.configuration,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: {
        enabled: true,
        // A public client may inspect only its own tokens.
        allowedPolicy: (
          _ctx: unknown,
          client: { clientAuthMethod: string; clientId: string },
          token: { clientId?: string },
        ) => client.clientAuthMethod !== 'none' || token.clientId === client.clientId,
      },
      revocation: {
        enabled: true,
        allowedPolicy: (_ctx: unknown, client: { clientId: string }, token: { clientId?: string }) =>
          token.clientId === client.clientId,
      },
      rpInitiatedLogout: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx: unknown, resource: string) => resourceInfo(options, resource),
      },
      ...options.features,
    },
  }
}

function resourceInfo(options: TestProviderOptions, resource: string): object {
  const known = options.resources?.[resource]
  if (!known) throw Object.assign(new Error('invalid_target'), { error: 'invalid_target', statusCode: 400 })
  return {
    scope: known.scope ?? 'read write',
    audience: resource,
    accessTokenFormat: known.opaque === true ? 'opaque' : 'jwt',
    ...(known.opaque === true ? {} : { jwt: { sign: { alg: options.alg ?? 'RS256' } } }),
  }
}

/** Logs the account in and grants everything that the client requested. */
async function finishInteraction(
  provider: Provider,
  accountId: string,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(req, res)
  if (prompt.name === 'login') {
    await provider.interactionFinished(req, res, { login: { accountId } })
    return
  }
  const grant = new provider.Grant({
    accountId: session?.accountId ?? accountId,
    clientId: params['client_id'] ?? '',
  })
  grant.addOIDCScope(params['scope'] ?? 'openid')
  if (params['resource'] !== undefined) grant.addResourceScope(params['resource'], params['scope'] ?? 'read')
  await provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } })
}

/**
 * Follows redirects from `start` with cookies, and returns the first URL that begins with `until` without requesting
 * it.
 */
export async function walk(start: string | URL, until: string): Promise<URL> {
  const jar = new Map<string, string>()
  let url = new URL(start)
  for (let hop = 0; hop < 20; hop++) {
    if (url.href.startsWith(until)) return url
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: cookie === '' ? {} : { cookie } })
    await response.arrayBuffer()
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';', 1)
      jar.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1))
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`${url.pathname} answered ${response.status} without a redirect`)
    url = new URL(location, url)
  }
  throw new Error('too many redirects')
}
