/**
 * The three cookies: which browser this is, who is signed in there, and which browser was shown a form.
 *
 * The *binding* cookie is set when a login is approved; the login's callback must come with it, so a login that was
 * begun in one browser cannot be finished in another. It says nothing about who is there. The *sign-in* cookie does: it
 * is made by a completed login only, again each time, so that nobody can know it beforehand. The *form* cookie is set with
 * a page and ties its form to the browser (CSRF). All values mean nothing without their record or MAC.
 * Source: RFC 9700 section 4.7; MCP 2025-11-25 security best practices (confused deputy).
 */
import { clearCookie, type Exchange, readCookie, setCookie } from '../../net/index.ts'
import type { KeyRing } from '../tokens/key-ring.ts'
import { randomId } from '../model/identifiers.ts'

/** How long a browser stays signed in on the pages here. */
export const signInMs = 30 * 24 * 3_600_000
/** The upstream steps of a login with a page between them; every upstream step renews it. */
const bindingSec = 3600
const formSec = 600

// All are sent when another site leads here: the provider's to the callback, a client's to the consent page, which a known
// user may skip. A form's value that were not sent then would be replaced, and forms in other tabs would fail.
const binding = { name: 'gh-as', maxAgeSec: bindingSec }
const signIn = { name: 'gh-who', maxAgeSec: signInMs / 1000 }
const form = { name: 'gh-form', maxAgeSec: formSec }

/** The id of this browser, if this server gave it one. */
export function readBrowser(exchange: Exchange, keys: KeyRing, secure: boolean): string | undefined {
  const [id = '', mac = '', ...rest] = (readCookie(exchange, { ...binding, secure }) ?? '').split('.')
  return rest.length === 0 && id !== '' && keys.isMac('browser', id, mac) ? id : undefined
}

export function newBrowser(): string {
  return randomId()
}

/** A Set-Cookie value. */
export function browserCookie(id: string, keys: KeyRing, secure: boolean): string {
  return setCookie({ ...binding, secure }, `${id}.${keys.mac('browser', id)}`)
}

/** The id under which it may be recorded who is signed in here. Only the record counts, so no secret has to vouch for it. */
export function readSignIn(exchange: Exchange, secure: boolean): string | undefined {
  const id = readCookie(exchange, { ...signIn, secure })
  return id !== undefined && /^[\w-]{43}$/.test(id) ? id : undefined
}

/** A Set-Cookie value. */
export function signInCookie(id: string, secure: boolean): string {
  return setCookie({ ...signIn, secure }, id)
}

/** A Set-Cookie value that takes the sign-in away. */
export function noSignInCookie(secure: boolean): string {
  return clearCookie({ ...signIn, secure })
}

/** A form for this browser: its Set-Cookie value, and the field that must come back with it. */
export function makeForm(
  exchange: Exchange,
  subject: string,
  keys: KeyRing,
  secure: boolean,
): { cookie: string; field: string } {
  // The value stays while it lives, so that pages in several tabs all work.
  const held = readCookie(exchange, { ...form, secure })
  const value = held !== undefined && /^[\w-]{22}$/.test(held) ? held : randomId(16)
  return { cookie: setCookie({ ...form, secure }, value), field: keys.mac('csrf', `${value}.${subject}`) }
}

/** True when the form was shown to this browser, for this subject. */
export function isOwnForm(
  exchange: Exchange,
  subject: string,
  field: string,
  keys: KeyRing,
  secure: boolean,
): boolean {
  const value = readCookie(exchange, { ...form, secure })
  return value !== undefined && keys.isMac('csrf', `${value}.${subject}`, field)
}
