/**
 * The MCP server behind the proxy, and how a request's path and query map to it.
 *
 * A target has no path of its own: the client's path is forwarded byte for byte. Its query, if any, goes before the
 * client's. Userinfo and fragment are dropped.
 * Source: spec document 1 (--target-uri).
 */
import { GatehouseError } from '../../schemas/index.ts'
import { isLoopbackHost } from '../net/index.ts'

export interface Target {
  /** `scheme://authority`, for the dispatcher. */
  readonly origin: string
  /** Host header. */
  readonly authority: string
  readonly protocol: 'http:' | 'https:'
  /** Query that every request carries, without question mark. */
  readonly query: string
  /** The host is a loopback name or address. */
  readonly loopback: boolean
}

/** Reads `--target-uri`. Throws INVALID_CONFIG with the rule that was broken. */
export function parseTarget(uri: string): Target {
  if (!URL.canParse(uri)) throw refused(uri, 'must be an absolute http or https URL')
  const url = new URL(uri)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw refused(uri, 'must start with http:// or https://')
  if (url.hostname === '') throw refused(uri, 'must name a host')
  if (url.pathname !== '/') {
    throw refused(
      uri,
      `must not have a path: clients send it (use ${url.origin} and connect to …${url.pathname})`,
    )
  }
  return {
    origin: url.origin,
    authority: url.host,
    protocol: url.protocol,
    query: url.search.slice(1),
    loopback: isLoopbackHost(url.hostname),
  }
}

function refused(uri: string, rule: string): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', {
    detail: `invalid target URI ${JSON.stringify(shown(uri))}: ${rule}`,
  })
}

/** Without userinfo and query, which may hold credentials. */
function shown(uri: string): string {
  return uri.replace(/\/\/[^/?#]*@/, '//').replace(/[?#].*$/s, '')
}

/** The request target for the upstream: path as sent, both queries joined. */
export function targetPath(target: Target, path: string, query: string): string {
  if (target.query === '') return query === '' ? path : `${path}?${query}`
  return query === '' ? `${path}?${target.query}` : `${path}?${target.query}&${query}`
}
