/**
 * The hooks server's ports: one for all callers, or one each for Metacontroller and the API server. The ports use TLS
 * when a certificate is configured. All ports reload the certificate without a restart.
 */
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type CertificateFiles, ServedCertificate } from '../../schemas/certificate/index.ts'
import { shutdownOf } from './shutdown.ts'

/**
 * Limits for receiving a request. No caller waits longer than this for a response, and a slow client must not occupy a
 * slot for minutes.
 */
const timeouts = { headersTimeout: 5_000, requestTimeout: 15_000, connectionsCheckingInterval: 2_000 }

/**
 * Longer than the keep-alive of Metacontroller's client, so that the server never closes a connection that the client
 * is about to use.
 */
const keepAliveMs = 120_000

export interface Port {
  /** Port to listen on. With 0, the system chooses a port. */
  readonly port: number
  readonly app: RequestListener
}

export interface HookPortsOptions {
  readonly host: string
  readonly ports: readonly Port[]
  readonly files?: CertificateFiles | undefined
  /** Called when the ports start serving a new certificate. */
  readonly onReloaded: () => void
  /** Called when a new certificate is invalid; the old certificate stays in use. */
  readonly onUnusable: (reason: string) => void
}

export interface HookPorts {
  /** The ports that are bound, in the given order. */
  readonly ports: readonly number[]
  /** Finishes open requests, and closes all connections after the grace period. */
  close(graceMs: number): Promise<void>
}

/** Throws, and closes all ports, when a port is in use or the certificate is invalid. */
export async function listen({
  host,
  ports,
  files,
  onReloaded,
  onUnusable,
}: HookPortsOptions): Promise<HookPorts> {
  const certificate = files && new ServedCertificate(files, { onReloaded, onUnusable })
  const servers = ports.map(({ app }) => {
    if (!certificate) return createHttpServer(timeouts, app)
    // The routes check the client certificate instead of the TLS handshake, because probes do not present a
    // certificate.
    const asking = files.clientCaFile === undefined ? {} : { requestCert: true, rejectUnauthorized: false }
    const server = createHttpsServer({ ...certificate.options, ...asking, ...timeouts }, app)
    certificate.follow(server)
    return server
  })
  const ends = servers.map(shutdownOf)
  const listening = await Promise.allSettled(
    servers.map((server, at) => bind(server, ports[at]?.port ?? 0, host)),
  )
  const failed = listening.find((outcome) => outcome.status === 'rejected')
  if (failed) {
    certificate?.close()
    for (const server of servers) server.close()
    throw failed.reason
  }
  return {
    ports: servers.map(portOf),
    async close(graceMs) {
      certificate?.close()
      await Promise.all(ends.map((end) => end(graceMs)))
    },
  }
}

async function bind(server: Server, port: number, host: string): Promise<void> {
  server.keepAliveTimeout = keepAliveMs
  const bound = once(server, 'listening')
  server.listen(port, host)
  await bound
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}
