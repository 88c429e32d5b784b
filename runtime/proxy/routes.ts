/**
 * The paths that the proxy answers itself, without origin check, authentication or body, and never forwards.
 *
 * Everything below `/.well-known/` that is not this proxy's own is 404: a client must not discover the target's
 * authorization server through the proxy.
 */
import { GatehouseError } from '../../schemas/index.ts'
import { sendJson, sendText } from '../net/index.ts'
import type { ProxyExchange } from './exchange.ts'

export interface RouteOptions {
  /** Serves this proxy's RFC 9728 document when the path is one of its forms; false when it is not. */
  readonly protectedResource: ((exchange: ProxyExchange) => boolean) | undefined
}

export function makeRoutes(
  options: RouteOptions,
): (exchange: ProxyExchange) => ((x: ProxyExchange) => void) | undefined {
  function wellKnown(exchange: ProxyExchange): void {
    if (options.protectedResource?.(exchange) === true) return
    sendJson(exchange.res, 404, { error: 'not_found' })
  }

  return function route({ path }) {
    // Most requests are decided by one character.
    const second = path.charCodeAt(1)
    if (second === 0x68 && path === '/health') return health
    if (second === 0x6d && path === '/metrics') return metrics
    if (second === 0x2e && (path.startsWith('/.well-known/') || path === '/.well-known')) return wellKnown
    return undefined
  }
}

function health({ req, res }: ProxyExchange): void {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, HEAD' } })
  }
  sendJson(
    res,
    200,
    { status: 'healthy', timestamp: new Date().toISOString(), transport: 'streamable-http' },
    noStore,
  )
}

function metrics({ res }: ProxyExchange): void {
  sendText(res, 404, 'metrics are not served on this port\n')
}

const noStore = { 'Cache-Control': 'no-store' }
