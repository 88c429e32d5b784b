/**
 * The endpoint for each path, with its methods and the format of its errors.
 *
 * Endpoints are served under the issuer's path and also at the bare path, for installations where a proxy strips the
 * issuer's path. Well-known documents are served only at the paths that follow from the issuer identifier (RFC 8414
 * section 3.1). The host serves all other paths under /.well-known, for example the protected-resource document.
 * Documents and endpoints that browser-based clients call have CORS headers without credentials. Pages and redirects
 * have no CORS headers.
 */
import type { Exchange, Log, Stage } from '../../net/index.ts'
import { errorPage } from '../login/pages.ts'
import { type AuthServerContext, canSignIn } from '../login/context.ts'
import { prefersPage, sendEmpty, sendOAuthError, sendPage, toOAuthError } from '../endpoints/responses.ts'
import { changeAccounts, showAccounts } from '../endpoints/accounts.ts'
import { authorize } from '../endpoints/authorize.ts'
import { handleCallback } from '../endpoints/callback.ts'
import { submitConfirmation, showConfirmation } from '../endpoints/confirm.ts'
import { submitConsent, showConsent } from '../endpoints/consent.ts'
import { showKeys, showOpenidMetadata, showServerMetadata } from '../endpoints/metadata.ts'
import { manageClient, registerClient } from '../endpoints/register.ts'
import { issueTokens } from '../endpoints/token.ts'
import { introspectToken, revokeToken, sendUserInfo } from '../endpoints/token-state.ts'
import { makeEvent } from '../model/events.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { paths } from '../model/urls.ts'

type Handler = (exchange: Exchange, context: AuthServerContext) => Promise<void>

interface Endpoint {
  /** True for the steps of a login, which need an upstream provider. */
  readonly forLogin?: true
  readonly methods: Readonly<Partial<Record<'GET' | 'POST' | 'PUT' | 'DELETE', Handler>>>
  /** Clients get JSON and CORS; users get pages. */
  readonly for: 'clients' | 'users'
}

function documentEndpoint(handler: Handler): Endpoint {
  return { methods: { GET: handler }, for: 'clients' }
}

const endpoints: Readonly<Record<string, Endpoint>> = {
  [paths.authorize]: { methods: { GET: authorize, POST: authorize }, for: 'users', forLogin: true },
  [paths.consent]: { methods: { GET: showConsent, POST: submitConsent }, for: 'users', forLogin: true },
  [paths.accounts]: { methods: { GET: showAccounts, POST: changeAccounts }, for: 'users', forLogin: true },
  [paths.confirm]: {
    methods: { GET: showConfirmation, POST: submitConfirmation },
    for: 'users',
    forLogin: true,
  },
  [paths.token]: { methods: { POST: issueTokens }, for: 'clients' },
  [paths.revoke]: { methods: { POST: revokeToken }, for: 'clients' },
  [paths.introspect]: { methods: { POST: introspectToken }, for: 'clients' },
  [paths.userinfo]: { methods: { GET: sendUserInfo, POST: sendUserInfo }, for: 'clients' },
  [paths.jwks]: documentEndpoint(showKeys),
}

const registration: Endpoint = { methods: { POST: registerClient }, for: 'clients', forLogin: true }
const callback: Endpoint = { methods: { GET: handleCallback }, for: 'users', forLogin: true }

/**
 * Returns the function that finds the stage for a path. The path must be passed as the client sent it, without the
 * query.
 */
export function makeRoutes(context: AuthServerContext): (path: string) => Stage<Exchange> | undefined {
  const { config, urls } = context
  const table = new Map<string, Stage<Exchange>>()
  const bases = new Set([urls.base, new URL(urls.authorize).pathname.slice(0, -paths.authorize.length), ''])
  const add = (path: string, endpoint: Endpoint): void => {
    table.set(path, (exchange) => handleRequest(exchange, endpoint, context))
  }
  for (const base of bases) {
    for (const [path, endpoint] of Object.entries(endpoints)) add(`${base}${path}`, endpoint)
    if (config.registration.enabled) add(`${base}${paths.register}`, registration)
    add(`${base}${paths.callback}`, callback)
  }
  for (const page of ['consent', 'confirm', 'accounts'] as const) {
    const endpoint = endpoints[paths[page]]
    if (endpoint) add(new URL(urls[page]).pathname, endpoint)
  }
  for (const { redirectUri } of config.upstreams) add(new URL(redirectUri).pathname, callback)
  add(`/.well-known/oauth-authorization-server${urls.base}`, documentEndpoint(showServerMetadata))
  add(`${urls.base}/.well-known/oauth-authorization-server`, documentEndpoint(showServerMetadata))
  add(`/.well-known/openid-configuration${urls.base}`, documentEndpoint(showOpenidMetadata))
  add(`${urls.base}/.well-known/openid-configuration`, documentEndpoint(showOpenidMetadata))
  const managed = [...bases].map((base) => `${base}${paths.register}/`)

  return function route(path) {
    const found = table.get(path)
    if (found || !config.registration.enabled) return found
    const prefix = managed.find((candidate) => path.startsWith(candidate))
    const clientId = prefix === undefined ? '' : path.slice(prefix.length)
    if (!/^[\w-]{1,64}$/.test(clientId)) return undefined
    const handler: Handler = (exchange) => manageClient(exchange, clientId, context)
    const methods = { GET: handler, PUT: handler, DELETE: handler }
    return (exchange) => handleRequest(exchange, { methods, for: 'clients', forLogin: true }, context)
  }
}

async function handleRequest(
  exchange: Exchange,
  endpoint: Endpoint,
  context: AuthServerContext,
): Promise<void> {
  const { req, res } = exchange
  if (endpoint.for === 'clients') {
    res.setHeader('Access-Control-Allow-Origin', '*')
    res.setHeader('Access-Control-Expose-Headers', 'WWW-Authenticate, Retry-After, DPoP-Nonce')
    if (req.method === 'OPTIONS') return sendPreflight(exchange, allowedMethods(endpoint))
  }
  const handler = handlerFor(endpoint, req.method)
  if (!handler) return sendEmpty(exchange, 405, { Allow: allowedMethods(endpoint).join(', ') })
  const source = context.addressOf(exchange)
  const emit: AuthServerContext['emit'] = (event) => context.emit({ ...event, source })
  try {
    if (endpoint.forLogin && !canSignIn(context)) throw noLoginError()
    await handler(exchange, { ...context, emit, addressOf: () => source })
  } catch (error) {
    const failure = toOAuthError(error)
    if (failure.rejection) emit(makeEvent('client_rejected', failure.rejection))
    logFailure(exchange.path, failure, context.log)
    if (endpoint.for === 'users' && prefersPage(exchange))
      sendPage(exchange, errorPage(failure.message), failure)
    else sendOAuthError(exchange, failure)
  }
}

function noLoginError(): OAuthError {
  const text =
    'users cannot sign in here, because this server has no upstream provider; request a token at the token endpoint'
  return new OAuthError('access_denied', text)
}

function allowedMethods(endpoint: Endpoint): readonly string[] {
  const methods = Object.keys(endpoint.methods)
  return [
    ...methods,
    ...(methods.includes('GET') && endpoint.for === 'clients' ? ['HEAD'] : []),
    ...(endpoint.for === 'clients' ? ['OPTIONS'] : []),
  ]
}

function handlerFor(endpoint: Endpoint, method: string | undefined): Handler | undefined {
  switch (method) {
    case 'GET':
    case 'POST':
    case 'PUT':
    case 'DELETE':
      return endpoint.methods[method]
    case 'HEAD':
      // Node sends no body for HEAD. Pages do not support HEAD, because following a link must not consume a login.
      return endpoint.for === 'clients' ? endpoint.methods.GET : undefined
    default:
      return undefined
  }
}

function sendPreflight(exchange: Exchange, allow: readonly string[]): void {
  sendEmpty(exchange, 204, {
    Allow: allow.join(', '),
    'Access-Control-Allow-Methods': allow.join(', '),
    'Access-Control-Allow-Headers': 'Authorization, Content-Type, DPoP, MCP-Protocol-Version',
    'Access-Control-Max-Age': '86400',
  })
}

function logFailure(path: string, failure: OAuthError, log: Log): void {
  const { status, error: reason, cause } = failure
  if (status >= 500)
    log.error('a request to the authorization server failed', { path, err: cause ?? failure })
  else log.debug('request rejected', { path, reason })
}
