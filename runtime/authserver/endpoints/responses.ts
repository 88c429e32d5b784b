/**
 * Everything this server sends: JSON, OAuth errors, redirects and pages, each with its fixed headers.
 *
 * Answers that hold or lead to credentials are never stored by anyone; pages and redirects can be neither framed nor
 * leak their address. Redirects are 303, so that a POST body is never sent on (RFC 9700 section 4.12).
 * Source: RFC 6749 section 5; RFC 9700 sections 4.2, 4.12, 4.16; RFC 9207.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type Exchange, sendBody } from '../../net/index.ts'
import { OAuthError } from '../model/oauth-error.ts'

type Headers = Readonly<Record<string, string | string[]>>

const noStore = { 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const

/** Headers of everything that a browser shows or follows. */
const pageHeaders = {
  ...noStore,
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
} as const

function send(exchange: Exchange, status: number, type: string, body: string, headers: Headers): void {
  sendBody(exchange.res, status, type, body, headers)
}

/** Metadata that anyone may read and keep for an hour. */
export function sendDocument(exchange: Exchange, document: unknown): void {
  send(exchange, 200, 'application/json', JSON.stringify(document), {
    'Cache-Control': 'public, max-age=3600',
  })
}

/** JSON that concerns one client. */
export function sendPrivate(exchange: Exchange, status: number, body: unknown, headers: Headers = {}): void {
  send(exchange, status, 'application/json', JSON.stringify(body), { ...noStore, ...headers })
}

export function sendEmpty(exchange: Exchange, status: number, headers: Headers = {}): void {
  const { res } = exchange
  if (res.headersSent) return
  res.writeHead(status, { ...noStore, ...(status === 204 ? {} : { 'Content-Length': 0 }), ...headers })
  res.end()
}

export function sendPage(exchange: Exchange, status: number, html: string, headers: Headers = {}): void {
  send(exchange, status, 'text/html; charset=utf-8', html, { ...pageHeaders, ...headers })
}

export function sendRedirect(exchange: Exchange, location: string, headers: Headers = {}): void {
  sendEmpty(exchange, 303, { ...pageHeaders, ...headers, Location: location })
}

/** What any thrown error means to an OAuth client. The cause is for the log only. */
export function toOAuthError(failure: unknown): OAuthError {
  if (failure instanceof OAuthError) return failure
  if (failure instanceof GatehouseError) {
    if (failure.code === 'REQUEST_TOO_LARGE') {
      return new OAuthError('invalid_request', 'the request body is too large', {
        status: 413,
        cause: failure,
      })
    }
    if (failure.code === 'UNSUPPORTED_MEDIA_TYPE' || failure.code === 'NOT_IMPLEMENTED') {
      const { message, status, headers } = failure
      return new OAuthError('invalid_request', message, { status, headers, cause: failure })
    }
    if (failure.code === 'BAD_REQUEST') {
      return new OAuthError('invalid_request', 'the request body did not arrive completely', {
        cause: failure,
      })
    }
    if (failure.status === 503) {
      return new OAuthError(
        'temporarily_unavailable',
        'the server cannot answer right now; try again shortly',
        {
          headers: { 'Retry-After': failure.headers['retry-after'] ?? '5' },
          cause: failure,
        },
      )
    }
  }
  return new OAuthError('server_error', 'the request could not be processed', { cause: failure })
}

/** RFC 6749 section 5.2. */
export function sendOAuthError(exchange: Exchange, failure: OAuthError): void {
  sendPrivate(
    exchange,
    failure.status,
    { error: failure.error, error_description: failure.message },
    failure.headers,
  )
}

/** Browsers name HTML; clients that follow links do not. */
export function prefersPage(exchange: Exchange): boolean {
  return /\btext\/html\b/i.test(exchange.req.headers.accept ?? '')
}
