/**
 * Every header rule in one table: which headers belong to one hop, which describe the route, which must not be set by
 * configuration, and which may occur once only. Names are lower case.
 * Source: RFC 9110 sections 5.3 and 7.6.1; spec document 1 (--remote-forward-headers), spec document 3
 * (passthroughHeaders).
 */

/** Headers of one connection; removed in both directions, with those that `Connection` names. `te: trailers` stays. */
export const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Headers by which proxies describe the client's side; a client's own are never trusted. */
export const forwarded: ReadonlySet<string> = new Set([
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
])

/** Names that configuration may not inject into requests to a target or backend. */
export const restrictedForInjection: ReadonlySet<string> = new Set([
  ...hopByHop,
  ...forwarded,
  'accept',
  'content-encoding',
  'content-length',
  'content-type',
  'host',
  'mcp-protocol-version',
  'mcp-session-id',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-real-ip',
])

/** Names that a virtual server may not pass through from its clients to backends. */
export const restrictedForPassthrough: ReadonlySet<string> = new Set([
  ...hopByHop,
  ...forwarded,
  'authorization',
  'content-length',
  'cookie',
  'host',
  'mcp-session-id',
  'x-real-ip',
])

/** Request headers whose repetition makes two readers disagree; a repeated one is refused. */
export const singletons: ReadonlySet<string> = new Set([
  'authorization',
  'content-type',
  'host',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
])

/** True when a passthrough allowlist must not name this header; covers the whole `x-forwarded-` family. */
export function isRestrictedForPassthrough(name: string): boolean {
  const lower = name.toLowerCase()
  return restrictedForPassthrough.has(lower) || lower.startsWith('x-forwarded-')
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** True for a header name by RFC 9110 (token), at most 256 bytes. */
export function isHeaderName(name: string): boolean {
  return name.length <= 256 && token.test(name)
}

/** True for a header value without control characters (tab allowed) or characters beyond one byte. */
export function isHeaderValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

/** The lower-case names that a `Connection` header lists, without the framing options. */
export function namedByConnection(value: string | undefined): readonly string[] {
  if (value === undefined || value === 'keep-alive' || value === 'close') return []
  return value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'close' && name !== 'keep-alive')
}

/** The first singleton that occurs twice in a raw header list, or undefined. */
export function repeatedSingleton(rawHeaders: readonly string[]): string | undefined {
  let seen: string[] | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? ''
    // Cheap filter: none of the singletons has another length.
    const length = raw.length
    if (length !== 4 && length !== 12 && length !== 13 && length !== 14 && length !== 20) continue
    const name = raw.toLowerCase()
    if (!singletons.has(name)) continue
    if (seen?.includes(name)) return name
    if (seen) seen.push(name)
    else seen = [name]
  }
  return undefined
}
