/**
 * Which redirects of the target the proxy follows itself: same authority, no step down from https. Everything else is
 * the client's to check and passes unchanged.
 */
import type { TargetAddress } from './target.ts'

export const maxRedirects = 10

/** Path and query to go to, or undefined when the redirect is not followed. */
export function redirectPath(
  target: TargetAddress,
  from: string,
  status: number,
  location: string | undefined,
): string | undefined {
  if (status !== 301 && status !== 302 && status !== 307 && status !== 308) return undefined
  if (location === undefined || location === '') return undefined
  const base = new URL(from, target.origin)
  if (!URL.canParse(location, base.href)) return undefined
  const to = new URL(location, base.href)
  if (to.host !== base.host) return undefined
  // The dispatcher speaks to one origin; an upgrade from http to https on the same authority is another one.
  if (to.protocol !== target.protocol) return undefined
  return `${to.pathname}${to.search}`
}
