/**
 * Security headers for console responses, and host and origin checks.
 * Source: Content Security Policy Level 3; Fetch Metadata; OWASP, Cross-Site Request Forgery Prevention.
 */
import { timingSafeEqual } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Exchange, Listener } from '../../net/index.ts'
import type { Visitor } from '../access/visitor.ts'

const csrfHeader = 'x-gatehouse-csrf'

const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  // Pages of apps. They have an opaque origin, and the frame cannot leave the console.
  "frame-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types gh-worker',
].join('; ')

export const responseHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': contentSecurityPolicy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cache-Control': 'no-store',
}

export function setSecurityHeaders({ res }: Exchange): void {
  for (const [name, value] of Object.entries(responseHeaders)) res.setHeader(name, value)
}

/** Returns the console's origins: its public URL, or the names of this machine if there is no public URL. */
export function originsOf(publicUrl: string | undefined, listener: Listener): ReadonlySet<string> {
  if (publicUrl !== undefined) return new Set([new URL(publicUrl).origin])
  const { protocol, port } = new URL(listener.url)
  const names = ['localhost', '127.0.0.1', '[::1]']
  return new Set(names.map((name) => new URL(`${protocol}//${name}:${port}`).origin))
}

/** Prevents DNS rebinding and requests from other pages. Throws HOST_DENIED or ORIGIN_DENIED. */
export function checkOrigin({ req }: Exchange, origins: ReadonlySet<string>): void {
  const host = req.headers.host?.toLowerCase()
  const hosts = [...origins].map((origin) => new URL(origin).host)
  if (host === undefined || !hosts.includes(host))
    throw new GatehouseError('HOST_DENIED', {
      detail: `Host not allowed: open the console at ${[...origins][0]}`,
    })
  const { origin } = req.headers
  if (origin !== undefined && !origins.has(origin)) throw new GatehouseError('ORIGIN_DENIED')
}

/** Throws ORIGIN_DENIED for an API request from another site. */
export function checkFetchSite({ req }: Exchange): void {
  const site = req.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new GatehouseError('ORIGIN_DENIED')
}

/** Throws CSRF_REFUSED unless a write comes from the console page of this visitor. */
export function checkWrite({ req }: Exchange, visitor: Visitor): void {
  const value = req.headers[csrfHeader]
  const sent = Buffer.from(typeof value === 'string' ? value : '')
  const expected = Buffer.from(visitor.csrf)
  if (req.headers.origin === undefined || sent.length !== expected.length || !timingSafeEqual(sent, expected))
    throw new GatehouseError('CSRF_REFUSED')
}
