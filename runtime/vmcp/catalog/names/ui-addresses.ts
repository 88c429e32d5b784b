/**
 * Addresses of the pages that MCP Apps render. Backends choose their `ui://` addresses independently of one another, so
 * with several backends, clients see the address `ui://<backend>/<rest>`.
 * Source: MCP Apps; docs/guides/apps.md.
 */
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import { isSkillAddress, skillUri } from './skill-addresses.ts'

const scheme = 'ui://'

export function isUiAddress(uri: string): boolean {
  return uri.startsWith(scheme)
}

/** Returns the address that clients see, for an address that a backend uses. */
export function clientAddress(backend: string, uri: string): string {
  return isUiAddress(uri) ? `${scheme}${backend}/${uri.slice(scheme.length)}` : uri
}

/** Returns the URI that an entry's backend uses. `uri` is the client's URI, which may match a template. */
export function backendUri(
  { key, original, backend }: Pick<CatalogEntry, 'key' | 'original' | 'backend'>,
  uri: string,
): string {
  if (key === original) return uri
  if (isSkillAddress(uri)) return skillUri(backend, uri)
  const prefix = `${scheme}${backend}/`
  return uri.startsWith(prefix) ? scheme + uri.slice(prefix.length) : uri
}

/**
 * Returns the backend whose name a client address contains. Returns undefined if `backends` does not contain the name.
 */
export function pageOwner(uri: string, backends: ReadonlySet<string>): string | undefined {
  const end = uri.indexOf('/', scheme.length)
  const name = isUiAddress(uri) && end !== -1 ? uri.slice(scheme.length, end) : undefined
  return name !== undefined && backends.has(name) ? name : undefined
}

/** Returns the backend's form of a client address that no list contains. */
export function unlistedUri(backend: string, uri: string): string {
  return backendUri({ key: uri, original: '', backend }, uri)
}
