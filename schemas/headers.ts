/**
 * Lists the header names that configuration may not set, and defines valid header names and values.
 *
 * The hooks, the runtime and the generated schemas (CEL rules, patterns) all use this module, so the running server
 * accepts the same headers as admission. Names are case-insensitive.
 * Source: RFC 9110, sections 5.1, 5.5 and 7.6.1; MCP 2025-11-25 and 2026-07-28, streamable HTTP;
 * docs/reference/specification/proxy-command.md (--remote-forward-headers), docs/reference/specification/virtual-server.md
 * (passthroughHeaders).
 */

/**
 * Hop-by-hop headers. Gatehouse removes these headers in both directions, except `te: trailers`. It also removes the
 * headers that `Connection` lists.
 */
const connectionHeaders = [
  'Connection',
  'HTTP2-Settings',
  'Keep-Alive',
  'Proxy-Authenticate',
  'Proxy-Authorization',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
] as const

/** Headers that proxies use to describe the client. Gatehouse never trusts values from the client. */
const forwardingHeaders = ['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto'] as const

/** Lowercase names of hop-by-hop headers. */
export const hopByHop: ReadonlySet<string> = lowerCase(connectionHeaders)

/** Lowercase names of the headers that proxies use to describe the client. */
export const forwarded: ReadonlySet<string> = lowerCase(forwardingHeaders)

/** The purpose of a configured header. */
export type HeaderUse =
  /** Added to every request to a target or backend. */
  | 'injected'
  /** Copied from a client's request to backends. */
  | 'passedThrough'
  /** Added to the gateway's own requests to a userinfo endpoint or an embedding service. */
  | 'service'
  /** Added to requests to an OpenTelemetry collector. */
  | 'collector'

/**
 * Headers that frame, route or encode a message. Configuration can never set these headers. A trailing `*` matches a
 * family of names.
 */
const always = [
  ...connectionHeaders,
  'Accept-Encoding',
  'Content-Encoding',
  'Content-Length',
  'Expect',
  'Forwarded',
  'Host',
  'Proxy-*',
  'X-Forwarded-*',
  'X-Real-IP',
] as const

/** Names that the MCP transports set on each message. */
const ofMcp = [
  'Accept',
  'Content-Type',
  'Last-Event-ID',
  'Mcp-Method',
  'Mcp-Name',
  'Mcp-Param-*',
  'Mcp-Protocol-Version',
  'Mcp-Session-Id',
] as const

const restricted: Readonly<Record<HeaderUse, readonly string[]>> = {
  injected: [...always, ...ofMcp],
  passedThrough: [...always, ...ofMcp, 'Authorization', 'Cookie', 'DPoP'],
  service: [...always, 'Authorization', 'Content-Type'],
  collector: [...always, 'Content-Type'],
}

/**
 * Returns the names that must not be set for this use, sorted. A trailing `*` matches a family, so the list omits the
 * members of the family.
 */
export function restrictedHeaders(use: HeaderUse): readonly string[] {
  const names = restricted[use]
  const families = names.filter(isFamily)
  return names
    .filter((name) => isFamily(name) || !families.some((family) => isOf(family, name)))
    .toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
}

/** True when configuration must not set this header for this use. */
export function isRestrictedHeader(name: string, use: HeaderUse): boolean {
  return restricted[use].some((entry) =>
    isFamily(entry) ? isOf(entry, name) : entry.toLowerCase() === name.toLowerCase(),
  )
}

function isFamily(entry: string): boolean {
  return entry.endsWith('*')
}

function isOf(family: string, name: string): boolean {
  return name.toLowerCase().startsWith(family.slice(0, -1).toLowerCase())
}

function lowerCase(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => name.toLowerCase()))
}

export const maxHeaderNameLength = 255
export const maxHeaderValueLength = 8192

/** Matches a token as defined by RFC 9110. */
export const headerNamePattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
/** Matches tab, printable ASCII and Latin-1: the characters that HTTP transfers unchanged. */
export const headerValuePattern = '^[\\t\\x20-\\x7e\\x80-\\xff]*$'

const headerName = new RegExp(headerNamePattern)
const headerValue = new RegExp(headerValuePattern)

/** True for a valid RFC 9110 header name (token) of at most 255 characters. */
export function isHeaderName(name: string): boolean {
  return name.length <= maxHeaderNameLength && headerName.test(name)
}

/** True for a header value without control characters (except tab) and without characters beyond Latin-1. */
export function isHeaderValue(value: string): boolean {
  return headerValue.test(value)
}

/**
 * Returns the reason why configuration may not set a header with this name, as a sentence that quotes the name. Returns
 * undefined for an allowed name.
 */
export function headerNameViolation(name: string, use: HeaderUse): string | undefined {
  if (name === '') return 'is required'
  if (!isHeaderName(name)) {
    const shown = JSON.stringify(name.slice(0, 40))
    return `${shown} is not a valid header name: use letters, digits and -_.~!#$%&'*+^\`|, at most ${maxHeaderNameLength}`
  }
  if (isRestrictedHeader(name, use)) return `${name} is set by the gateway and cannot be configured`
  return undefined
}

/**
 * Returns the reason why a value cannot be sent, as the end of a sentence. Returns undefined for a valid value. An
 * empty value is valid.
 */
export function headerValueViolation(value: string): string | undefined {
  if (!isHeaderValue(value)) return 'must not contain control characters or characters beyond Latin-1'
  if (value.length > maxHeaderValueLength) return `must not be longer than ${maxHeaderValueLength} bytes`
  return undefined
}
