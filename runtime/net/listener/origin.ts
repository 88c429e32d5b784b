/**
 * Decides whether a browser may access this listener (DNS rebinding protection), and answers its preflight requests.
 *
 * Origin: the configured values; otherwise the loopback origins for a loopback bind; otherwise no check. Host: on a
 * loopback bind, the Host header must contain a loopback name or a host that the operator lists, because a same-origin
 * GET has no Origin header. A request without an Origin header is allowed, because it does not come from a browser
 * page. This check ignores credentials. A preflight response lists the standard headers and the requested headers that
 * are allowed, but never `*`.
 * Source: docs/reference/specification/proxy-command.md (--allowed-origins); MCP 2025-11-25 transports, "Security
 * Warning"; RFC 6454 section 4; Fetch, "CORS protocol".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { isLoopbackHost, unbracket } from '../addresses.ts'
import type { Exchange } from '../pipeline.ts'

export interface OriginCheckOptions {
  /** Configured bind address: an IP address or a name. */
  readonly host: string
  /** The bound port. */
  readonly port: number
  /** True if the listener serves TLS. */
  readonly secure?: boolean | undefined
  readonly allowedOrigins: readonly string[]
  /**
   * Additional host names allowed on a loopback bind, in lower case, without port or brackets. The set may change while
   * the check is in use.
   */
  readonly allowedHosts?: ReadonlySet<string> | undefined
  /**
   * True if this address also serves pages (such as a login), whose requests are allowed. Browsers mark these requests
   * with `Sec-Fetch-Site: same-origin`, which pages cannot set.
   */
  readonly servesPages?: boolean | undefined
  /** Returns the lowercase names of additional request headers that pages may send under the current configuration. */
  readonly requestHeaders?: (() => readonly string[]) | undefined
}

export interface OriginCheck {
  /** The normalized allowlist; undefined if origins are not checked. */
  readonly origins: ReadonlySet<string> | undefined
  /** Throws ORIGIN_DENIED or HOST_DENIED, answers preflight requests, and adds CORS headers for allowed origins. */
  readonly check: (exchange: Exchange) => void
}

/** Matches an IP address in brackets, an IPv4 address or a name. Does not match lists or wildcards. */
const originHost = /^(?:\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?\.?)$/i

/** Describes the values that `parseOrigin` accepts, for use in messages. */
export const originRule = 'must be a single origin, scheme://host[:port], without wildcards'

/**
 * Normalizes an origin: lowercase scheme and host, no default port. Returns undefined for `null`, `*`, userinfo and
 * other invalid origins.
 */
export function parseOrigin(value: string): string | undefined {
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^/?#@\s]+)(?:[/?#].*)?$/i.exec(value)
  if (!match || !URL.canParse(value)) return undefined
  const url = new URL(value)
  if (!originHost.test(url.hostname) || url.username !== '' || url.password !== '') return undefined
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return `${url.protocol}//${url.host.toLowerCase()}`
  return `${url.protocol}//${url.host}`
}

/** Creates the origin check. Throws an INVALID_CONFIG error that lists all malformed entries. */
export function makeOriginCheck(options: OriginCheckOptions): OriginCheck {
  const loopback = isLoopbackHost(options.host)
  const explicit = normalise(options.allowedOrigins)
  const defaults = loopback ? ['localhost', '127.0.0.1', '[::1]'].map((name) => ownOrigin(name, options)) : []
  const list = explicit.length > 0 ? explicit : defaults
  const origins = list.length > 0 ? new Set(list) : undefined
  const hosts = loopback ? hostsOf(explicit) : undefined

  /**
   * Caches the last allowed `Host`, because most requests have the same host. Does not cache a host from
   * `allowedHosts`, because that set may change.
   */
  let allowed: string | undefined

  function check(exchange: Exchange): void {
    const { host, origin, 'sec-fetch-site': site } = exchange.req.headers
    if (hosts && (host === undefined || host !== allowed)) {
      const name = hostName(host)
      if (name !== undefined && (isLoopbackHost(name) || hosts.has(name))) allowed = host
      else if (name === undefined || options.allowedHosts?.has(name) !== true)
        throw new GatehouseError('HOST_DENIED')
    }
    if (origin === undefined || origins === undefined) return
    if (options.servesPages && site === 'same-origin') return
    // Node joins repeated Origin headers with a comma, and the result is not a valid origin.
    const parsed = parseOrigin(origin)
    if (
      parsed === undefined ||
      !origins.has(parsed) ||
      /[/?#]/.test(origin.slice(origin.indexOf('//') + 2))
    ) {
      throw new GatehouseError('ORIGIN_DENIED')
    }
    allowCors(exchange, origin, options.requestHeaders?.() ?? [])
  }
  return { origins, check }
}

function ownOrigin(name: string, { port, secure }: OriginCheckOptions): string {
  return new URL(`${secure ? 'https' : 'http'}://${name}:${port}`).origin
}

function normalise(entries: readonly string[]): string[] {
  const wrong = entries.filter((entry) => parseOrigin(entry) === undefined)
  if (wrong.length > 0) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `allowed origin ${wrong.map((entry) => JSON.stringify(entry)).join(', ')}: ${originRule}`,
    })
  }
  return entries.map((entry) => parseOrigin(entry) ?? entry)
}

function hostsOf(origins: readonly string[]): ReadonlySet<string> {
  return new Set(origins.map((origin) => unbracket(new URL(origin).hostname).toLowerCase()))
}

/** Returns the name from a `Host` header, in lower case, without port or brackets; undefined if it is malformed. */
function hostName(header: string | undefined): string | undefined {
  const name = /^(\[[0-9a-f:.]+\]|[^:@/\s]+)(?::\d{1,5})?$/i.exec(header ?? '')?.[1]
  return name === undefined ? undefined : unbracket(name).toLowerCase()
}

/** Request headers that pages from allowed origins may always send. */
const requestHeaders: readonly string[] = [
  'Authorization',
  'DPoP',
  'Content-Type',
  'Accept',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Last-Event-ID',
]
const alwaysAllowed: ReadonlySet<string> = new Set(requestHeaders.map((name) => name.toLowerCase()))
/**
 * Matches headers for mirrored tool arguments (MCP 2026-07-28). Each tool defines the part of the name after the
 * prefix.
 */
const mirroredArgument = /^mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]{1,244}$/
const maxRequestedHeaders = 100

function allowCors({ req, res }: Exchange, origin: string, further: readonly string[]): void {
  res.setHeader('Access-Control-Allow-Origin', origin)
  res.setHeader('Access-Control-Expose-Headers', 'Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce')
  res.setHeader('Vary', 'Origin')
  if (req.method !== 'OPTIONS' || req.headers['access-control-request-method'] === undefined) return
  const requested = req.headers['access-control-request-headers']
  res.writeHead(204, {
    'Access-Control-Allow-Methods': 'GET, POST, DELETE, OPTIONS',
    'Access-Control-Allow-Headers': [...requestHeaders, ...allowedHeaders(requested, further)].join(', '),
    'Access-Control-Max-Age': '7200',
    Vary: 'Origin, Access-Control-Request-Headers',
  })
  res.end()
}

/** Returns the requested header names that are allowed in addition to the standard headers, in lower case. */
function allowedHeaders(requested: string | undefined, further: readonly string[]): readonly string[] {
  if (requested === undefined) return []
  const names = requested
    .toLowerCase()
    .split(',', maxRequestedHeaders)
    .map((name) => name.trim())
  return names.filter(
    (name) => !alwaysAllowed.has(name) && (mirroredArgument.test(name) || further.includes(name)),
  )
}
