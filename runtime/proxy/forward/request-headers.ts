/**
 * Builds the headers for the target.
 *
 * Drops hop-by-hop headers, client-side routing headers, `Origin` and `Expect`. Fixed headers replace client headers of
 * the same name, and the outgoing credential sets its own headers. All other headers pass through unchanged.
 * Source: docs/reference/specification/proxy-command.md (--remote-forward-headers), RFC 9110 section 7.6.1.
 */
import { forwarded, hopByHop } from '../../../schemas/index.ts'
import { connectionHeaderNames } from '../../net/index.ts'
import { headerName } from '../../mcp/index.ts'
import type { TargetAddress } from '../../config/index.ts'
import { type ProxyExchange, callerDigest, callerHeader } from '../model/exchange.ts'

export interface HeaderRules {
  /** Lowercase names of client headers that are not copied. */
  readonly drop: ReadonlySet<string>
  /** Header lines (name, value, …) sent with every request. */
  readonly add: readonly string[]
  /** Lowercase names of the fixed headers. */
  readonly injected: ReadonlySet<string>
  /** Adds a header that identifies the caller to the target. */
  readonly identifyCallers: boolean
  readonly target: TargetAddress
}

export interface HeaderOptions {
  readonly target: TargetAddress
  /** Fixed, validated headers, which override the credential's headers. */
  readonly inject: readonly { readonly name: string; readonly value: string }[]
  /** Lowercase names of the headers that the credential may set. Client headers with these names are dropped. */
  readonly credentialNames: readonly string[]
  /** False to drop the client's `Authorization`, which was meant for this proxy. */
  readonly passAuthorization: boolean
  /** Lowercase names of additional client headers to drop. */
  readonly strip: readonly string[]
  readonly identifyCallers: boolean
}

/** Precomputes the rules that apply to every request. */
export function makeHeaderRules(options: HeaderOptions): HeaderRules {
  const drop = new Set([
    ...hopByHop,
    ...forwarded,
    'host',
    'content-length',
    'expect',
    'origin',
    headerName.sessionId,
    callerHeader,
  ])
  const add: string[] = ['Host', options.target.authority]
  for (const { name, value } of options.inject) {
    drop.add(name.toLowerCase())
    add.push(name, value)
  }
  for (const name of options.credentialNames) drop.add(name)
  if (!options.passAuthorization) for (const name of ['authorization', 'dpop']) drop.add(name)
  for (const name of options.strip) drop.add(name)
  const injected = new Set(options.inject.map(({ name }) => name.toLowerCase()))
  return { drop, add, injected, identifyCallers: options.identifyCallers, target: options.target }
}

/** Returns the header lines (name, value, …) for one request. `sessionId` is the target's session id. */
export function requestHeaders(
  rules: HeaderRules,
  exchange: ProxyExchange,
  sessionId: string | undefined,
): string[] {
  const { req } = exchange
  const { rawHeaders } = req
  const { drop, target } = rules
  const lines = rules.add.slice()
  const named = connectionHeaderNames(req.headers.connection)
  const plain = isReadHere(exchange)
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? ''
    const name = raw.toLowerCase()
    if (drop.has(name)) continue
    if (named.length > 0 && named.includes(name)) continue
    if (plain && name === 'accept-encoding') continue
    if (name === headerName.lastEventId && isFromLostSession(exchange, rawHeaders[i + 1])) continue
    lines.push(raw, rawHeaders[i + 1] ?? '')
  }
  if (sessionId !== undefined) lines.push('Mcp-Session-Id', sessionId)
  if (plain) lines.push('Accept-Encoding', 'identity')
  if (rules.identifyCallers && exchange.caller) lines.push(callerHeader, callerDigest(exchange.caller.key))
  if (wantsTrailers(req.headers['te'])) lines.push('TE', 'trailers')
  lines.push('X-Forwarded-For', req.socket.remoteAddress ?? 'unknown')
  // A remote target that receives the internal host or "http" would redirect to that host or scheme.
  if (target.loopback) lines.push('X-Forwarded-Host', req.headers.host ?? '', 'X-Forwarded-Proto', 'http')
  else lines.push('X-Forwarded-Proto', target.protocol === 'https:' ? 'https' : 'http')
  return lines
}

/** True when the proxy inspects the events of the response, which therefore must not be compressed. */
function isReadHere({ asksForStream, upgrade, session }: ProxyExchange): boolean {
  return upgrade === undefined && (asksForStream || session?.eventIds !== undefined)
}

/** True for an event id from before the session was reopened, from which the target cannot resume. */
function isFromLostSession({ session }: ProxyExchange, id: string | undefined): boolean {
  return session?.eventIds !== undefined && !session.eventIds.has(id ?? '')
}

function wantsTrailers(te: string | string[] | undefined): boolean {
  return typeof te === 'string' && /(?:^|,)\s*trailers\b/i.test(te)
}
