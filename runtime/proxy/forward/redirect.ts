/**
 * Decides which of the target's redirects the proxy follows: those with the same authority and no downgrade from https.
 * Redirects of MCP requests to an absolute address are rejected, because a client that follows such a redirect would
 * bypass this proxy. All other redirects pass through unchanged.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { headerName } from '../../mcp/index.ts'
import type { ProxyExchange } from '../model/exchange.ts'
import type { TargetAddress } from '../../config/index.ts'

export const maxRedirects = 10

/** Returns the path and query to request next, or undefined when the redirect is not followed. */
export function redirectPath(
  target: TargetAddress,
  from: string,
  status: number,
  location: string | undefined,
): string | undefined {
  if (status !== 301 && status !== 302 && status !== 307 && status !== 308) return undefined
  if (location === undefined || location === '') return undefined
  const base = new URL(from, target.origin)
  if (!URL.canParse(location, base.href)) return undefined
  const to = new URL(location, base.href)
  if (to.host !== base.host) return undefined
  // The dispatcher is bound to one origin, and an upgrade from http to https changes the origin.
  if (to.protocol !== target.protocol) return undefined
  return `${to.pathname}${to.search}`
}

/**
 * True for requests to the MCP endpoint, which may have any path when the target has none configured. Clients also send
 * `MCP-Protocol-Version` in requests for metadata documents, so this header does not distinguish them.
 */
export function isMcpRequest(target: TargetAddress, exchange: ProxyExchange): boolean {
  const { headers } = exchange.req
  return (
    target.path !== undefined ||
    exchange.path === '/mcp' ||
    exchange.asksForStream ||
    headers[headerName.sessionId] !== undefined ||
    exchange.message !== undefined
  )
}

/** Checks both schemes, because clients may use either, and `http:host` is only relative to an http base. */
const proxyBases = ['http://proxy.invalid', 'https://proxy.invalid']

/** True when a client that follows this `Location` would send its next request to another address. */
export function leavesProxy(location: string | undefined): boolean {
  return proxyBases.some((base) => URL.parse(location ?? '', base)?.origin !== base)
}

/**
 * Returns the error for a rejected redirect. The error contains only the origin, because paths and queries may contain
 * credentials.
 */
export function redirectRefused({ origin }: TargetAddress, status: number, location = ''): GatehouseError {
  const to = URL.parse(location, origin)
  const where = to && to.origin !== 'null' ? to.origin : (to?.protocol ?? 'an invalid address')
  const next =
    where === origin ? 'it cannot be followed' : 'set --target-uri to that address if the MCP server is there'
  return new GatehouseError('BACKEND_PROTOCOL', {
    detail: `the target redirects to ${where} (status ${status}), which would bypass this proxy; ${next}`,
  })
}
