/**
 * Routes that the proxy handles itself and never forwards. These routes require no origin check, authentication or
 * body.
 *
 * All other paths below `/.well-known/` return 404, because a client must not discover the target's authorization
 * server through the proxy. The exception is a target that authenticates the proxy's clients.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type EmbeddedAuthServer, secretNotes } from '../../incoming/index.ts'
import { sendJson, sendText } from '../../net/index.ts'
import type { ProxyExchange } from '../model/exchange.ts'

type Route = (exchange: ProxyExchange) => ((x: ProxyExchange) => void | Promise<void>) | undefined

/** Returns the reason why this proxy cannot serve; undefined when it can. */
type NotReady = () => Promise<string | undefined>

interface RouteOptions {
  readonly authServer?: Pick<EmbeddedAuthServer, 'routes' | 'secretUses'> | undefined
  readonly targetRequiresLogin?: boolean | undefined
}

/** `protectedResource` serves this proxy's RFC 9728 document; undefined when the endpoint is not protected. */
export function makeRoutes(
  protectedResource: Route | undefined,
  notReady: NotReady,
  { authServer, targetRequiresLogin = false }: RouteOptions = {},
): Route {
  const notes = (): readonly string[] => (authServer ? secretNotes(authServer.secretUses()) : [])
  const ready = (exchange: ProxyExchange): Promise<void> => readiness(exchange, notReady, notes)
  return function route(exchange) {
    const { path } = exchange
    const issuing = authServer?.routes(path)
    if (issuing) return issuing
    // Checking a single character rules out most requests.
    const second = path.charCodeAt(1)
    if (second === 0x68 && path === '/health') return health
    if (second === 0x72 && path === '/readyz') return ready
    if (second === 0x6d && path === '/metrics') return metrics
    if (second === 0x2e && (path.startsWith('/.well-known/') || path === '/.well-known')) {
      return protectedResource?.(exchange) ?? (targetRequiresLogin ? undefined : nothingKnown)
    }
    return undefined
  }
}

function nothingKnown({ res }: ProxyExchange): void {
  sendJson(res, 404, { error: 'not_found' })
}

function beginProbe(exchange: ProxyExchange): void {
  const { req } = exchange
  exchange.probe = true
  if (req.method === 'GET' || req.method === 'HEAD') return
  throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, HEAD' } })
}

/** Reports that this process is alive, regardless of the target's state. */
function health(exchange: ProxyExchange): void {
  beginProbe(exchange)
  sendJson(
    exchange.res,
    200,
    { status: 'healthy', timestamp: new Date().toISOString(), transport: 'streamable-http' },
    noStore,
  )
}

/** Reports whether requests can be served, for load balancers. */
async function readiness(
  exchange: ProxyExchange,
  notReady: NotReady,
  notesOf: () => readonly string[],
): Promise<void> {
  beginProbe(exchange)
  const reason = await notReady()
  const notes = notesOf()
  if (reason === undefined)
    sendJson(exchange.res, 200, { status: 'ready', ...(notes.length > 0 ? { notes } : {}) }, noStore)
  else sendJson(exchange.res, 503, { status: 'not_ready', reason }, noStore)
}

function metrics({ res }: ProxyExchange): void {
  sendText(res, 404, 'metrics are not served on this port\n')
}

const noStore = { 'Cache-Control': 'no-store' }
