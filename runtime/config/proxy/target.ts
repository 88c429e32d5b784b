/**
 * The MCP server behind a proxy, from `--target-uri`.
 *
 * On the command line, the target has no path: the proxy forwards the client's path unchanged. In a file, the target
 * may have a path, which replaces the client's path. The target's query precedes the client's query. The proxy drops
 * the fragment, and rejects a user name or password, which would appear in logs and process lists.
 * Source: docs/reference/specification/proxy-command.md (--target-uri); reference behavior of remote servers.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { isLoopbackHost } from '../../net/index.ts'

/** Matches user information, even if empty, in every form that the URL parser accepts. */
const hasUserInfo = /^([a-z][a-z\d+.-]*:)?[\\/]*[^\\/?#]*@/i

export interface TargetAddress {
  /** Origin (`scheme://authority`), for the dispatcher. */
  readonly origin: string
  /** Value of the Host header. */
  readonly authority: string
  readonly protocol: 'http:' | 'https:'
  /** Query string for every request, without the question mark. */
  readonly query: string
  /** True when the host is a loopback name or address. */
  readonly loopback: boolean
  /** Path of the endpoint, which replaces the client's path. Without a path, the proxy forwards the client's path. */
  readonly path?: string | undefined
  /** Transport of the target; only `sse` has more than one path. Defaults to streamable-http. */
  readonly transport?: 'streamable-http' | 'sse' | undefined
}

/** Parses a target URI; `withPath` allows a path. Throws INVALID_CONFIG with the violated rule. */
export function parseTarget(
  uri: string,
  { withPath = false }: { readonly withPath?: boolean } = {},
): TargetAddress {
  if (!URL.canParse(uri)) throw invalidTarget(uri, 'must be an absolute http or https URL')
  const url = new URL(uri)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw invalidTarget(uri, 'must start with http:// or https://')
  }
  if (url.username !== '' || url.password !== '' || hasUserInfo.test(uri)) {
    throw invalidTarget(
      uri,
      'must not contain a user name or password: send the credential as a header (--remote-forward-headers-secret, ' +
        'or --remote-auth-bearer-token-file for a bearer token)',
    )
  }
  if (url.hostname === '') throw invalidTarget(uri, 'must contain a host')
  if (url.pathname !== '/' && !withPath) {
    throw invalidTarget(
      uri,
      `must not have a path, because clients send the path (use ${url.origin} here and configure ${url.pathname} in the client)`,
    )
  }
  return {
    origin: url.origin,
    authority: url.host,
    protocol: url.protocol,
    query: url.search.slice(1),
    loopback: isLoopbackHost(url.hostname),
    ...(url.pathname === '/' ? {} : { path: url.pathname }),
  }
}

function invalidTarget(uri: string, rule: string): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', {
    detail: `invalid target URI ${JSON.stringify(shownUri(uri))}: ${rule}`,
  })
}

/** Returns a URI without its user information, query and fragment, which may contain credentials. */
export function shownUri(uri: string): string {
  return uri.replace(hasUserInfo, '$1//').replace(/[?#].*$/s, '')
}
