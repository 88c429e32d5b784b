/** Creates the HTTP or HTTPS server behind a listener, with its time and size limits. Binds no address. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import type { ListenerLimits } from '../limits.ts'

interface ServerOptions {
  /** Undefined for plain HTTP. */
  readonly certificate?: ServedCertificate | undefined
  readonly clientCertificates?: 'request' | undefined
  /** Upgrades are ignored if this is undefined. */
  readonly onUpgrade?: unknown
}

/** Serves only TLS if there is a certificate. */
export function openServer(
  { certificate, clientCertificates, onUpgrade }: ServerOptions,
  limits: ListenerLimits,
  onRequest: RequestListener,
): Server | TlsServer {
  const http = {
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    // Only WebSocket upgrades take over the connection. Requests for an upgrade to h2c or an unknown protocol are
    // answered as plain requests.
    shouldUpgradeCallback: (req: IncomingMessage) => onUpgrade !== undefined && isWebSocket(req),
  }
  if (!certificate) return createServer(http, onRequest)
  const tls = {
    ...certificate.options,
    handshakeTimeout: limits.headersTimeoutMs,
    allowHalfOpen: true,
    requestCert: clientCertificates === 'request' && certificate.hasClientAuthority,
    // Clients with a certificate from another authority are served like clients without a certificate.
    rejectUnauthorized: false,
  }
  const server = createTlsServer({ ...tls, ...http }, onRequest)
  certificate.follow(server)
  return server
}

function isWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
}
