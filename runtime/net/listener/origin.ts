/**
 * Decides whether a browser may talk to this listener (DNS rebinding defence), and answers its preflights.
 *
 * Origin: explicit values, else the loopback defaults of a loopback bind, else no check. Host: on a loopback bind it
 * must name loopback or a host the operator listed, because a same-origin GET carries no Origin. No Origin header
 * means not a browser: allowed. Looks at no credentials.
 * A preflight is told the usual headers, and of the others that it asks for those that are allowed; never `*`.
 * Source: docs/reference/specification/proxy-command.md (--allowed-origins); MCP 2025-11-25 transports, "Security Warning"; RFC 6454 section 4; Fetch,
 * "CORS protocol".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { isLoopbackHost, unbracket } from '../addresses.ts'
import type { Exchange } from '../pipeline.ts'

export interface GuardOptions {
  /** What was given as bind address: IP or name. */
  readonly host: string
  /** The port that was really bound. */
  readonly port: number
  /** The listener serves TLS. */
  readonly secure?: boolean | undefined
  readonly allowedOrigins: readonly string[]
  /**
   * Further names under which a loopback bind is reached: lower case, without port and brackets. May change while the
   * guard is in use.
   */
  readonly allowedHosts?: ReadonlySet<string> | undefined
  /** Lower-case names of further request headers that a page may send, as they are configured now. */
  readonly requestHeaders?: (() => readonly string[]) | undefined
}

export interface OriginGuard {
  /** Normalised allowlist; undefined when origins are not checked. */
  readonly origins: ReadonlySet<string> | undefined
  /** Throws ORIGIN_DENIED or HOST_DENIED, answers preflights, and adds CORS headers for allowed origins. */
  readonly check: (exchange: Exchange) => void
}

/** An IP address in brackets, an IPv4 address or a name; a list or a wildcard would be a host that nobody has. */
const originHost = /^(?:\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?\.?)$/i

/** What `parseOrigin` accepts, for messages. */
export const originRule = 'must be one origin, scheme://host[:port], without a list or a wildcard'

/** Lower-case scheme and host, default port folded; undefined for `null`, `*`, userinfo, and whatever is no origin. */
export function parseOrigin(value: string): string | undefined {
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^/?#@\s]+)(?:[/?#].*)?$/i.exec(value)
  if (!match || !URL.canParse(value)) return undefined
  const url = new URL(value)
  if (!originHost.test(url.hostname) || url.username !== '' || url.password !== '') return undefined
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return `${url.protocol}//${url.host.toLowerCase()}`
  return `${url.protocol}//${url.host}`
}

/** Builds the guard. Throws INVALID_CONFIG naming every malformed entry. */
export function makeOriginGuard(options: GuardOptions): OriginGuard {
  const loopback = isLoopbackHost(options.host)
  const explicit = normalise(options.allowedOrigins)
  const defaults = loopback ? ['localhost', '127.0.0.1', '[::1]'].map((name) => ownOrigin(name, options)) : []
  const list = explicit.length > 0 ? explicit : defaults
  const origins = list.length > 0 ? new Set(list) : undefined
  const hosts = loopback ? hostsOf(explicit) : undefined

  /** The `Host` that was allowed last, for whatever reason that cannot change: most requests carry the same. */
  let allowed: string | undefined

  function check(exchange: Exchange): void {
    const { host, origin } = exchange.req.headers
    if (hosts && (host === undefined || host !== allowed)) {
      const name = hostName(host)
      if (name !== undefined && (isLoopbackHost(name) || hosts.has(name))) allowed = host
      else if (name === undefined || options.allowedHosts?.has(name) !== true)
        throw new GatehouseError('HOST_DENIED')
    }
    if (origin === undefined || origins === undefined) return
    // Two Origin headers arrive joined by a comma, which is no origin.
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

function ownOrigin(name: string, { port, secure }: GuardOptions): string {
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

/** The name in a `Host` header, lower case, without port and brackets; undefined when it is malformed. */
function hostName(header: string | undefined): string | undefined {
  const name = /^(\[[0-9a-f:.]+\]|[^:@/\s]+)(?::\d{1,5})?$/i.exec(header ?? '')?.[1]
  return name === undefined ? undefined : unbracket(name).toLowerCase()
}

/** Request headers that a page of an allowed origin may always send. */
const requestHeaders: readonly string[] = [
  'Authorization',
  'Content-Type',
  'Accept',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Last-Event-ID',
]
const alwaysAllowed: ReadonlySet<string> = new Set(requestHeaders.map((name) => name.toLowerCase()))
/** Mirrored tool arguments (MCP 2026-07-28), whose names the tools choose. */
const mirroredArgument = /^mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]{1,244}$/
const maxAsked = 100

function allowCors({ req, res }: Exchange, origin: string, further: readonly string[]): void {
  res.setHeader('Access-Control-Allow-Origin', origin)
  res.setHeader('Access-Control-Expose-Headers', 'Mcp-Session-Id, WWW-Authenticate')
  res.setHeader('Vary', 'Origin')
  if (req.method !== 'OPTIONS' || req.headers['access-control-request-method'] === undefined) return
  const asked = req.headers['access-control-request-headers']
  res.writeHead(204, {
    'Access-Control-Allow-Methods': 'GET, POST, DELETE, OPTIONS',
    'Access-Control-Allow-Headers': [...requestHeaders, ...allowedOf(asked, further)].join(', '),
    'Access-Control-Max-Age': '7200',
    Vary: 'Origin, Access-Control-Request-Headers',
  })
  res.end()
}

/** Of the names that the browser asks for, those that are allowed here beside the usual ones; lower case. */
function allowedOf(asked: string | undefined, further: readonly string[]): readonly string[] {
  if (asked === undefined) return []
  const names = asked
    .toLowerCase()
    .split(',', maxAsked)
    .map((name) => name.trim())
  return names.filter(
    (name) => !alwaysAllowed.has(name) && (mirroredArgument.test(name) || further.includes(name)),
  )
}
