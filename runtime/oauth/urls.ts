/**
 * OAuth's URL rules: the allowed endpoints, the well-known documents of an issuer or resource, and whether a resource
 * document covers a target.
 *
 * Source: RFC 8414 section 3.1, OpenID Connect Discovery section 4, RFC 9728 section 3.1, RFC 8707 section 2, MCP
 * 2025-11-25 authorization ("Authorization Server Metadata Discovery").
 */
import { isLoopbackHost } from '../net/index.ts'

/**
 * Returns the reason why a configured or advertised endpoint is not allowed, or undefined when it is allowed.
 * `allowHttp` lifts the https rule.
 */
export function endpointViolation(value: string, allowHttp = false): string | undefined {
  if (!URL.canParse(value)) return 'must be an absolute URL'
  const url = new URL(value)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must be an http or https URL'
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
  if (url.hash !== '' || value.includes('#')) return 'must not have a fragment'
  if (url.protocol === 'http:' && !allowHttp && !isLoopbackHost(url.hostname)) {
    return 'must be https (http is allowed for loopback hosts)'
  }
  return undefined
}

/** Returns the URLs of the documents to try, in the order that MCP requires. `issuer` is an absolute URL. */
export function serverMetadataUrls(issuer: string): readonly string[] {
  const { origin, path } = split(issuer)
  if (path === '') {
    return [`${origin}/.well-known/oauth-authorization-server`, `${origin}/.well-known/openid-configuration`]
  }
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
}

/**
 * Returns the path of the resource's own document, without the query. The well-known part is inserted between the host
 * and the path.
 */
export function resourceMetadataPath(resource: string): string {
  const { pathname } = new URL(resource)
  return `/.well-known/oauth-protected-resource${pathname === '/' ? '' : pathname}`
}

/** Returns the URL of the resource's own document. */
export function resourceMetadataUrl(resource: string): string {
  const url = new URL(resource)
  return `${url.origin}${resourceMetadataPath(resource)}${url.search}`
}

/**
 * Returns the metadata URLs to try when no challenge contains a URL: first the URL with the target's path, then the
 * root URL.
 */
export function resourceMetadataUrls(target: string): readonly string[] {
  const url = new URL(target)
  const own = resourceMetadataUrl(target)
  const root = `${url.origin}/.well-known/oauth-protected-resource`
  return own === root ? [root] : [own, root]
}

/**
 * Returns the canonical form of a resource indicator: scheme and host in lower case, without a default port or
 * fragment. A bare origin has no trailing slash, as MCP requires.
 */
export function canonicalResource(value: string): string {
  const url = new URL(value)
  url.hash = ''
  return url.pathname === '/' && url.search === '' ? url.origin : url.href
}

/**
 * True when a document for `resource` covers `target`: the origins are the same, and the target's path is under the
 * resource's path.
 */
export function resourceCovers(resource: string, target: string): boolean {
  if (!URL.canParse(resource)) return false
  const own = new URL(resource)
  const wanted = new URL(target)
  if (own.origin !== wanted.origin || own.origin === 'null') return false
  const base = own.pathname.endsWith('/') ? own.pathname : `${own.pathname}/`
  return wanted.pathname === own.pathname || `${wanted.pathname}/`.startsWith(base)
}

function split(issuer: string): { origin: string; path: string } {
  const url = new URL(issuer)
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') }
}
