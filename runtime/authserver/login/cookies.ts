/**
 * The three cookies that the pages use.
 *
 * The *binding* cookie is set when a login is approved and is required at its callback. A login that began in one
 * browser therefore cannot be finished in another browser. This cookie does not identify the user. The *sign-in* cookie
 * identifies the user. Every completed login sets a new cookie, so its value cannot be known in advance. The *form*
 * cookie is set when a page is sent, and ties the page's form to the browser (CSRF). A value is useless without its
 * record or MAC.
 * Source: RFC 9700 section 4.7; MCP 2025-11-25 security best practices (confused deputy).
 */
import { clearCookie, type Exchange, readCookie, setCookie } from '../../net/index.ts'
import { randomId } from '../model/identifiers.ts'
import type { AuthServerContext } from './context.ts'

type CookieContext = Pick<AuthServerContext, 'keys' | 'urls'>

/** How long a browser stays signed in to the pages. */
export const signInMs = 30 * 24 * 3_600_000

// All cookies are sent when another site links here: a provider to the callback, a client to the consent page. A form
// cookie that is not sent would be replaced, and forms in other tabs would fail. Every upstream step renews the
// binding.
const binding = { name: 'gh-as', maxAgeSec: 3600 }
const signIn = { name: 'gh-who', maxAgeSec: signInMs / 1000 }
const form = { name: 'gh-form', maxAgeSec: 600 }

/** Returns the id of this browser, or undefined when this server has not issued one. */
export function readBrowserId(exchange: Exchange, { keys, urls }: CookieContext): string | undefined {
  const value = readCookie(exchange, { ...binding, secure: urls.secure }) ?? ''
  const [id = '', mac = '', ...rest] = value.split('.')
  return rest.length === 0 && id !== '' && keys().isMac('browser', id, mac) ? id : undefined
}

/** Returns a Set-Cookie value. */
export function makeBrowserCookie(id: string, { keys, urls }: CookieContext): string {
  return setCookie({ ...binding, secure: urls.secure }, `${id}.${keys().mac('browser', id)}`)
}

/** Returns the id of the sign-in record. The value has no MAC, because only the record proves the sign-in. */
export function readSignIn(exchange: Exchange, { urls }: CookieContext): string | undefined {
  const id = readCookie(exchange, { ...signIn, secure: urls.secure })
  return id !== undefined && /^[\w-]{43}$/.test(id) ? id : undefined
}

/** Returns a Set-Cookie value. */
export function makeSignInCookie(id: string, { urls }: CookieContext): string {
  return setCookie({ ...signIn, secure: urls.secure }, id)
}

/** Returns a Set-Cookie value that removes the sign-in. */
export function makeSignOutCookie({ urls }: CookieContext): string {
  return clearCookie({ ...signIn, secure: urls.secure })
}

/** Creates a form for this browser: its Set-Cookie value, and the field that must be submitted with the form. */
export function makeForm(
  exchange: Exchange,
  subject: string,
  { keys, urls: { secure } }: CookieContext,
): { cookie: string; field: string } {
  // The value stays the same while it is valid, so that pages in several tabs work.
  const known = readCookie(exchange, { ...form, secure })
  const value = known !== undefined && /^[\w-]{22}$/.test(known) ? known : randomId(16)
  return { cookie: setCookie({ ...form, secure }, value), field: keys().mac('csrf', `${value}.${subject}`) }
}

/** True when the form for this subject was created for this browser. */
export function isOwnForm(
  exchange: Exchange,
  { subject, field }: { readonly subject: string; readonly field: string },
  { keys, urls }: CookieContext,
): boolean {
  const value = readCookie(exchange, { ...form, secure: urls.secure })
  return value !== undefined && keys().isMac('csrf', `${value}.${subject}`, field)
}
