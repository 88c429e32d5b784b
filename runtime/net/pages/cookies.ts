/**
 * Cookies of pages: for this host only, and never readable by scripts.
 *
 * Over https they carry the `__Host-` prefix, so that no other host or path can set them. Lax, not Strict: users come
 * back by a redirect of an identity provider, or by a link.
 * Source: RFC 6265bis sections 4.1.2 and 4.1.3.
 */
import type { Exchange } from '../pipeline.ts'

export interface Cookie {
  readonly name: string
  /** False over plain HTTP, where browsers refuse the prefix. */
  readonly secure: boolean
  /** Undefined: until the browser ends. */
  readonly maxAgeSec?: number
}

/** The value that the browser sent; undefined when it is absent or sent twice, for then somebody else set one of them. */
export function readCookie({ req }: Exchange, cookie: Cookie): string | undefined {
  const wanted = `${fullName(cookie)}=`
  const found = (req.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(wanted))
  return found.length === 1 ? found[0]?.slice(wanted.length) : undefined
}

/** A Set-Cookie value. */
export function setCookie(cookie: Cookie, value: string): string {
  const { secure, maxAgeSec } = cookie
  const age = maxAgeSec === undefined ? '' : `; Max-Age=${maxAgeSec}`
  return `${fullName(cookie)}=${value}; Path=/; HttpOnly; SameSite=Lax${age}${secure ? '; Secure' : ''}`
}

/** A Set-Cookie value that takes the cookie away. */
export function clearCookie(cookie: Cookie): string {
  return setCookie({ ...cookie, maxAgeSec: 0 }, '')
}

function fullName({ name, secure }: Cookie): string {
  return secure ? `__Host-${name}` : name
}
