/**
 * Builds the headers for the client from the target's headers. Drops hop-by-hop headers and challenges that would make
 * the client bypass the proxy, and sets the client's own session id. The names of the target's headers are already in
 * lower case.
 */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { hopByHop } from '../../../schemas/index.ts'
import { connectionHeaderNames } from '../../net/index.ts'

export interface ResponseRules {
  /** The client's session id, which replaces the target's session id. */
  readonly sessionId: string | undefined
  /** True when the proxy owns the credential, so that clients must not see the target's challenge. */
  readonly hideChallenge: boolean
}

/** Returns lines (name, value, …) for `writeHead`. Repeated headers stay repeated. */
export function responseHeaders(
  headers: IncomingHttpHeaders,
  res: ServerResponse,
  rules: ResponseRules,
): string[] {
  const lines: string[] = []
  const cors = res.hasHeader('access-control-allow-origin')
  const named = connectionHeaderNames(headers.connection)
  for (const name of Object.keys(headers)) {
    // Keep `Trailer`: it lists the trailers, which are forwarded as well.
    if (hopByHop.has(name) && name !== 'trailer') continue
    if (named.length > 0 && named.includes(name)) continue
    if (name === 'www-authenticate' && rules.hideChallenge) continue
    if (cors && (name === 'vary' || name.startsWith('access-control-'))) continue
    const value = headers[name]
    if (name === 'mcp-session-id' && rules.sessionId !== undefined) lines.push(name, rules.sessionId)
    else if (typeof value === 'string') lines.push(name, value)
    else if (value) for (const one of value) lines.push(name, one)
  }
  if (cors) lines.push('vary', headers.vary === undefined ? 'Origin' : `${headers.vary}, Origin`)
  return lines
}

/** Returns the first value of a header. */
export function firstValue(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
