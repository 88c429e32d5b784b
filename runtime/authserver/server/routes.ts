/**
 * Which path is answered by what, with which methods, and how errors look there.
 *
 * Endpoints answer below the issuer's path and, for installations whose proxy takes that path off, at the bare path.
 * Well-known documents answer only where the issuer's identifier puts them (RFC 8414 section 3.1); everything else
 * below /.well-known stays with the host, for instance the protected-resource document.
 * Documents and endpoints that clients in browsers call carry CORS headers without credentials; pages and redirects
 * never do.
 */
import type { Exchange, Stage } from '../../net/index.ts'
import { errorPage } from '../login/pages.ts'
import type { AuthServerContext } from '../login/context.ts'
import { prefersPage, sendEmpty, sendOAuthError, sendPage, toOAuthError } from '../endpoints/responses.ts'
import { changeAccounts, showAccounts } from '../endpoints/accounts.ts'
import { authorize } from '../endpoints/authorize.ts'
import { callback } from '../endpoints/callback.ts'
import { submitConfirmation, showConfirmation } from '../endpoints/confirm.ts'
import { submitConsent, showConsent } from '../endpoints/consent.ts'
import { showKeys, showOpenidMetadata, showServerMetadata } from '../endpoints/metadata.ts'
import { manage, register } from '../endpoints/register.ts'
import { token } from '../endpoints/token.ts'
import { introspect, revoke, userinfo } from '../endpoints/token-state.ts'
import { paths } from '../model/urls.ts'

type Handler = (exchange: Exchange, context: AuthServerContext) => Promise<void>

interface Endpoint {
  readonly methods: Readonly<Partial<Record<'GET' | 'POST' | 'PUT' | 'DELETE', Handler>>>
  /** Clients get JSON and CORS; users get pages. */
  readonly for: 'clients' | 'users'
}

const document = (handler: Handler): Endpoint => ({ methods: { GET: handler }, for: 'clients' })

const endpoints: Readonly<Record<string, Endpoint>> = {
  [paths.authorize]: { methods: { GET: authorize, POST: authorize }, for: 'users' },
  [paths.consent]: { methods: { GET: showConsent, POST: submitConsent }, for: 'users' },
  [paths.accounts]: { methods: { GET: showAccounts, POST: changeAccounts }, for: 'users' },
  [paths.confirm]: { methods: { GET: showConfirmation, POST: submitConfirmation }, for: 'users' },
  [paths.token]: { methods: { POST: token }, for: 'clients' },
  [paths.revoke]: { methods: { POST: revoke }, for: 'clients' },
  [paths.introspect]: { methods: { POST: introspect }, for: 'clients' },
  [paths.userinfo]: { methods: { GET: userinfo, POST: userinfo }, for: 'clients' },
  [paths.jwks]: document(showKeys),
}

const registration: Endpoint = { methods: { POST: register }, for: 'clients' }
const returning: Endpoint = { methods: { GET: callback }, for: 'users' }

/** Builds the lookup: path as sent, without query, to the stage that handles it. */
export function makeRoutes(context: AuthServerContext): (path: string) => Stage<Exchange> | undefined {
  const { config, urls } = context
  const table = new Map<string, Stage<Exchange>>()
  const bases = new Set([urls.base, new URL(urls.authorize).pathname.slice(0, -paths.authorize.length), ''])
  const add = (path: string, endpoint: Endpoint): void => {
    table.set(path, (exchange) => response(exchange, endpoint, context))
  }
  for (const base of bases) {
    for (const [path, endpoint] of Object.entries(endpoints)) add(`${base}${path}`, endpoint)
    if (config.registration.enabled) add(`${base}${paths.register}`, registration)
    add(`${base}${paths.callback}`, returning)
  }
  for (const page of ['consent', 'confirm', 'accounts'] as const) {
    const endpoint = endpoints[paths[page]]
    if (endpoint) add(new URL(urls[page]).pathname, endpoint)
  }
  for (const { redirectUri } of config.upstreams) add(new URL(redirectUri).pathname, returning)
  add(`/.well-known/oauth-authorization-server${urls.base}`, document(showServerMetadata))
  add(`${urls.base}/.well-known/oauth-authorization-server`, document(showServerMetadata))
  add(`/.well-known/openid-configuration${urls.base}`, document(showOpenidMetadata))
  add(`${urls.base}/.well-known/openid-configuration`, document(showOpenidMetadata))
  const managed = [...bases].map((base) => `${base}${paths.register}/`)

  return function route(path) {
    const found = table.get(path)
    if (found || !config.registration.enabled) return found
    const prefix = managed.find((candidate) => path.startsWith(candidate))
    const clientId = prefix === undefined ? '' : path.slice(prefix.length)
    if (!/^[\w-]{1,64}$/.test(clientId)) return undefined
    const handler: Handler = (exchange) => manage(exchange, clientId, context)
    const methods = { GET: handler, PUT: handler, DELETE: handler }
    return (exchange) => response(exchange, { methods, for: 'clients' }, context)
  }
}

async function response(exchange: Exchange, endpoint: Endpoint, context: AuthServerContext): Promise<void> {
  const { req, res } = exchange
  if (endpoint.for === 'clients') {
    res.setHeader('Access-Control-Allow-Origin', '*')
    res.setHeader('Access-Control-Expose-Headers', 'WWW-Authenticate, Retry-After')
    if (req.method === 'OPTIONS') return preflight(exchange, allowed(endpoint))
  }
  const handler = handlerFor(endpoint, req.method)
  if (!handler) return sendEmpty(exchange, 405, { Allow: allowed(endpoint).join(', ') })
  const source = context.addressOf(exchange)
  const emit: AuthServerContext['emit'] = (event) => context.emit({ ...event, source })
  try {
    await handler(exchange, { ...context, emit, addressOf: () => source })
  } catch (error) {
    refuse(exchange, endpoint, error, context)
  }
}

function allowed(endpoint: Endpoint): readonly string[] {
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
      // Node sends no body for HEAD. Following a link must not consume a login, so pages have none.
      return endpoint.for === 'clients' ? endpoint.methods.GET : undefined
    default:
      return undefined
  }
}

function preflight(exchange: Exchange, allow: readonly string[]): void {
  sendEmpty(exchange, 204, {
    Allow: allow.join(', '),
    'Access-Control-Allow-Methods': allow.join(', '),
    'Access-Control-Allow-Headers': 'Authorization, Content-Type, MCP-Protocol-Version',
    'Access-Control-Max-Age': '86400',
  })
}

/** Browsers get a sentence, clients JSON. Causes go to the log only. */
function refuse(exchange: Exchange, endpoint: Endpoint, error: unknown, context: AuthServerContext): void {
  const failure = toOAuthError(error)
  if (failure.status >= 500) {
    context.log.error('a request to the authorization server failed', {
      path: exchange.path,
      err: failure.cause ?? failure,
    })
  } else context.log.debug('a request was refused', { path: exchange.path, reason: failure.error })
  if (endpoint.for === 'users' && prefersPage(exchange)) {
    const page = errorPage(failure.message)
    sendPage(exchange, failure.status, page.html, { ...page.headers, ...failure.headers })
  } else sendOAuthError(exchange, failure)
}
