/**
 * Cookies for pages: limited to this host and not readable by scripts.
 *
 * Over https, cookies have the `__Host-` prefix, which prevents other hosts and paths from setting them. The cookies
 * are Lax instead of Strict, because users return through a redirect from an identity provider or through a link.
 * Source: RFC 6265bis sections 4.1.2 and 4.1.3.
 */
import type { Exchange } from '../pipeline.ts'

export interface Cookie {
  readonly name: string
  /** False over plain HTTP, where browsers reject the prefix. */
  readonly secure: boolean
  /** Lifetime; undefined for a session cookie. */
  readonly maxAgeSec?: number
}

/**
 * Returns the cookie's value; undefined if the cookie is absent or was sent twice, because another party may have set
 * one of the two.
 */
export function readCookie({ req }: Exchange, cookie: Cookie): string | undefined {
  const wanted = `${fullName(cookie)}=`
  const found = (req.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(wanted))
  return found.length === 1 ? found[0]?.slice(wanted.length) : undefined
}

/** Returns a Set-Cookie value. */
export function setCookie(cookie: Cookie, value: string): string {
  const { secure, maxAgeSec } = cookie
  const age = maxAgeSec === undefined ? '' : `; Max-Age=${maxAgeSec}`
  return `${fullName(cookie)}=${value}; Path=/; HttpOnly; SameSite=Lax${age}${secure ? '; Secure' : ''}`
}

/** Returns a Set-Cookie value that removes the cookie. */
export function clearCookie(cookie: Cookie): string {
  return setCookie({ ...cookie, maxAgeSec: 0 }, '')
}

function fullName({ name, secure }: Cookie): string {
  return secure ? `__Host-${name}` : name
}
