/**
 * The certificate with which a client authenticated its TLS connection (mutual TLS).
 *
 * A certificate counts only if this process terminated the TLS connection. Headers in which a proxy reports a
 * certificate are not read, because any sender could write them.
 * Source: RFC 8705 section 3.1.
 */
import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'

/** The listener never renegotiates, so a connection keeps its certificate. */
const known = new WeakMap<TLSSocket, string>()

/**
 * Returns the SHA-256 thumbprint of the client's certificate in base64url. Returns undefined if there is no
 * certificate, or if no configured authority issued the certificate.
 */
export function certificateThumbprint({ socket }: Pick<IncomingMessage, 'socket'>): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined
  const cached = known.get(socket)
  if (cached !== undefined) return cached
  const certificate = socket.getPeerX509Certificate()
  if (!certificate) return undefined
  const thumbprint = hash('sha256', certificate.raw, 'base64url')
  known.set(socket, thumbprint)
  return thumbprint
}
