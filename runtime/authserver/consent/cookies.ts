/**
 * The three cookies: which browser this is, who is signed in there, and which browser was shown a form.
 *
 * The *binding* cookie is set when a login is approved; the login's callback must come with it, so a login that was
 * begun in one browser cannot be finished in another. It says nothing about who is there. The *sign-in* cookie does: it
 * is made by a completed login only, again each time, so that nobody can know it beforehand. The *form* cookie is set with
 * a page and ties its form to the browser (CSRF). All values mean nothing without their record or MAC. Over https they
 * carry the `__Host-` prefix, so no other host can plant them.
 * Source: RFC 6265bis section 4.1.3; RFC 9700 section 4.7; MCP 2025-11-25 security best practices (confused deputy).
 */
import type { Exchange } from '../../net/index.ts'
import type { KeyRing } from '../tokens/key-ring.ts'
import { randomId } from '../tokens/opaque.ts'

/** How long a browser stays signed in on the pages here. */
export const signInMs = 30 * 24 * 3_600_000
/** The upstream steps of a login with a page between them; every upstream step renews it. */
const bindingSec = 3600
const formSec = 600

interface CookieKind {
  readonly name: string
  readonly sameSite: 'Lax' | 'Strict'
  readonly maxAgeSec: number
}

// Lax: the callback arrives by a link from the provider's site.
const binding: CookieKind = { name: 'gh-as', sameSite: 'Lax', maxAgeSec: bindingSec }
// Lax: a client's site leads to the consent page, which a known user may skip.
const signIn: CookieKind = { name: 'gh-who', sameSite: 'Lax', maxAgeSec: signInMs / 1000 }
// Lax: other sites lead to the page, and a value that were not sent then would be written over in other tabs.
const form: CookieKind = { name: 'gh-form', sameSite: 'Lax', maxAgeSec: formSec }

function fullName(kind: CookieKind, secure: boolean): string {
  return secure ? `__Host-${kind.name}` : kind.name
}

function write(kind: CookieKind, value: string, secure: boolean, maxAgeSec = kind.maxAgeSec): string {
  const flags = secure ? '; Secure' : ''
  const site = `; HttpOnly; SameSite=${kind.sameSite}; Max-Age=${maxAgeSec}`
  return `${fullName(kind, secure)}=${value}; Path=/${site}${flags}`
}

/** The value of one cookie; undefined when it is absent or sent twice. */
function read(exchange: Exchange, kind: CookieKind, secure: boolean): string | undefined {
  const wanted = `${fullName(kind, secure)}=`
  const found = (exchange.req.headers.cookie ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(wanted))
  return found.length === 1 ? found[0]?.slice(wanted.length) : undefined
}

/** The id of this browser, if this server gave it one. */
export function readBrowser(exchange: Exchange, keys: KeyRing, secure: boolean): string | undefined {
  const [id = '', mac = '', ...rest] = (read(exchange, binding, secure) ?? '').split('.')
  return rest.length === 0 && id !== '' && keys.isMac('browser', id, mac) ? id : undefined
}

export function newBrowser(): string {
  return randomId()
}

/** A Set-Cookie value. */
export function browserCookie(id: string, keys: KeyRing, secure: boolean): string {
  return write(binding, `${id}.${keys.mac('browser', id)}`, secure)
}

/** The id under which it may be recorded who is signed in here. Only the record counts, so no secret has to vouch for it. */
export function readSignIn(exchange: Exchange, secure: boolean): string | undefined {
  const id = read(exchange, signIn, secure)
  return id !== undefined && /^[\w-]{43}$/.test(id) ? id : undefined
}

/** A Set-Cookie value. */
export function signInCookie(id: string, secure: boolean): string {
  return write(signIn, id, secure)
}

/** A Set-Cookie value that takes the sign-in away. */
export function noSignInCookie(secure: boolean): string {
  return write(signIn, '', secure, 0)
}

/** A form for this browser: its Set-Cookie value, and the field that must come back with it. */
export function makeForm(
  exchange: Exchange,
  subject: string,
  keys: KeyRing,
  secure: boolean,
): { cookie: string; field: string } {
  // The value stays while it lives, so that pages in several tabs all work.
  const held = read(exchange, form, secure)
  const value = held !== undefined && /^[\w-]{22}$/.test(held) ? held : randomId(16)
  return { cookie: write(form, value, secure), field: keys.mac('csrf', `${value}.${subject}`) }
}

/** True when the form was shown to this browser, for this subject. */
export function isOwnForm(
  exchange: Exchange,
  subject: string,
  field: string,
  keys: KeyRing,
  secure: boolean,
): boolean {
  const value = read(exchange, form, secure)
  return value !== undefined && keys.isMac('csrf', `${value}.${subject}`, field)
}
