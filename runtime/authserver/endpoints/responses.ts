/**
 * Sends JSON, OAuth errors, redirects and pages, each with its fixed headers.
 *
 * Responses that contain credentials, or links to them, must not be cached. Pages and redirects cannot be framed and do
 * not leak their address. Redirects use status 303, so that a POST body is never forwarded (RFC 9700 section 4.12).
 * Source: RFC 6749 section 5; RFC 9700 sections 4.2, 4.12, 4.16; RFC 9207.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type Exchange, type HtmlPage, sendBody } from '../../net/index.ts'
import type { AuthServerContext } from '../login/context.ts'
import { makeBrowserCookie, makeSignInCookie } from '../login/cookies.ts'
import type { LoginRedirect } from '../login/login-flow.ts'
import { OAuthError } from '../model/oauth-error.ts'

type Headers = Readonly<Record<string, string | string[]>>

const noStore = { 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const

/** Headers of every response that a browser shows or follows. */
const pageHeaders = {
  ...noStore,
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
} as const

/** Sends public metadata, which may be cached for an hour. */
export function sendDocument({ res }: Exchange, document: unknown): void {
  const headers = { 'Cache-Control': 'public, max-age=3600' }
  sendBody(res, 200, 'application/json', JSON.stringify(document), headers)
}

/** Sends JSON that only one client may receive, so it must not be cached. */
export function sendPrivate(
  { res }: Exchange,
  body: unknown,
  { status = 200, headers = {} }: { readonly status?: number; readonly headers?: Headers } = {},
): void {
  sendBody(res, status, 'application/json', JSON.stringify(body), { ...noStore, ...headers })
}

export function sendEmpty({ res }: Exchange, status: number, headers: Headers = {}): void {
  if (res.headersSent) return
  res.writeHead(status, { ...noStore, ...(status === 204 ? {} : { 'Content-Length': 0 }), ...headers })
  res.end()
}

export function sendPage(
  { res }: Exchange,
  { html, headers: ownHeaders }: HtmlPage,
  { status = 200, headers = {} }: { readonly status?: number; readonly headers?: Headers } = {},
): void {
  sendBody(res, status, 'text/html; charset=utf-8', html, { ...pageHeaders, ...ownHeaders, ...headers })
}

export function sendRedirect(exchange: Exchange, location: string, headers: Headers = {}): void {
  sendEmpty(exchange, 303, { ...pageHeaders, ...headers, Location: location })
}

/** Redirects the browser to the next step of its login, and sets its cookies. */
export function sendLoginRedirect(
  exchange: Exchange,
  { location, signIn, browserId }: LoginRedirect & { readonly browserId: string },
  context: AuthServerContext,
): void {
  const cookies = [
    makeBrowserCookie(browserId, context),
    ...(signIn === undefined ? [] : [makeSignInCookie(signIn, context)]),
  ]
  sendRedirect(exchange, location, { 'Set-Cookie': cookies })
}

/** Converts any thrown value to an error for an OAuth client. The cause is for the log only. */
export function toOAuthError(failure: unknown): OAuthError {
  if (failure instanceof OAuthError) return failure
  const cause = failure
  if (!(failure instanceof GatehouseError)) return internalError(cause)
  const { code, message, status, headers } = failure
  if (code === 'REQUEST_TOO_LARGE')
    return new OAuthError('invalid_request', 'the request body is too large', { status: 413, cause })
  if (code === 'UNSUPPORTED_MEDIA_TYPE' || code === 'NOT_IMPLEMENTED')
    return new OAuthError('invalid_request', message, { status, headers, cause })
  if (code === 'BAD_REQUEST')
    return new OAuthError('invalid_request', 'the request body is incomplete', { cause })
  if (status !== 503) return internalError(cause)
  const text = 'the server is temporarily unavailable; try again shortly'
  const retryAfter = { 'Retry-After': headers['retry-after'] ?? '5' }
  return new OAuthError('temporarily_unavailable', text, { headers: retryAfter, cause })
}

function internalError(cause: unknown): OAuthError {
  return new OAuthError('server_error', 'the request could not be processed', { cause })
}

/** RFC 6749 section 5.2. */
export function sendOAuthError(exchange: Exchange, { error, message, status, headers }: OAuthError): void {
  sendPrivate(exchange, { error, error_description: message }, { status, headers })
}

/** True for a browser. Clients that follow links do not list HTML in their Accept header. */
export function prefersPage(exchange: Exchange): boolean {
  return /\btext\/html\b/i.test(exchange.req.headers.accept ?? '')
}
