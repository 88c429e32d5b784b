/**
 * The MCP server behind a proxy, as `--target-uri` names it.
 *
 * On the command line a target has no path of its own: the proxy forwards the client's path byte for byte. In a file
 * the target may have a path, which then replaces the client's. Its query, if any, precedes the client's query. The
 * fragment is dropped. A user name or password is rejected, because it would appear in logs and process lists.
 * Source: docs/reference/specification/proxy-command.md (--target-uri); reference behaviour of remote servers.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { isLoopbackHost } from '../../net/index.ts'

/** Matches user information, even empty, in every form that the URL parser accepts. */
const hasUserInfo = /^([a-z][a-z\d+.-]*:)?[\\/]*[^\\/?#]*@/i

export interface TargetAddress {
  /** `scheme://authority`, for the dispatcher. */
  readonly origin: string
  /** Host header. */
  readonly authority: string
  readonly protocol: 'http:' | 'https:'
  /** Query that every request carries, without question mark. */
  readonly query: string
  /** The host is a loopback name or address. */
  readonly loopback: boolean
  /** Path of the endpoint, which takes the place of the client's; absent: the client's path is forwarded. */
  readonly path?: string | undefined
  /** Transport of the target; only `sse` has more than one path. Default streamable-http. */
  readonly transport?: 'streamable-http' | 'sse' | undefined
}

/** Reads a target URI; `withPath` allows one. Throws INVALID_CONFIG with the rule that was broken. */
export function parseTarget(
  uri: string,
  { withPath = false }: { readonly withPath?: boolean } = {},
): TargetAddress {
  if (!URL.canParse(uri)) throw refused(uri, 'must be an absolute http or https URL')
  const url = new URL(uri)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refused(uri, 'must start with http:// or https://')
  }
  if (url.username !== '' || url.password !== '' || hasUserInfo.test(uri)) {
    throw refused(
      uri,
      'must not contain a user name or password: send the credential as a header (--remote-forward-headers-secret, ' +
        'or --remote-auth-bearer-token-file for a bearer token)',
    )
  }
  if (url.hostname === '') throw refused(uri, 'must name a host')
  if (url.pathname !== '/' && !withPath) {
    throw refused(
      uri,
      `must not have a path: clients send it (give ${url.origin} here, and ${url.pathname} to the client)`,
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

function refused(uri: string, rule: string): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', {
    detail: `invalid target URI ${JSON.stringify(shownUri(uri))}: ${rule}`,
  })
}

/** A URI without userinfo, query and fragment, which may hold credentials. */
export function shownUri(uri: string): string {
  return uri.replace(hasUserInfo, '$1//').replace(/[?#].*$/s, '')
}
