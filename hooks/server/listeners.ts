/**
 * The ports of the hooks server: one for everybody, or one for Metacontroller and one for the API server. TLS when a
 * certificate is given; a new one is taken by all ports without a restart.
 */
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type CertificateFiles, ServedCertificate } from '../../schemas/certificate/index.ts'
import { shutdownOf } from './shutdown.ts'

/**
 * How long a request may take to arrive. Nobody who calls us waits longer for the response, and a slow unmanaged object
 * must not hold a place for minutes.
 */
const timeouts = { headersTimeout: 5_000, requestTimeout: 15_000, connectionsCheckingInterval: 2_000 }

/** Longer than any keep-alive of Metacontroller's client, so that we never close a connection it is about to use. */
const keepAliveMs = 120_000

export interface Port {
  /** 0 lets the system choose. */
  readonly port: number
  readonly app: RequestListener
}

export interface HookPortsOptions {
  readonly host: string
  readonly ports: readonly Port[]
  readonly files?: CertificateFiles | undefined
  /** A new certificate is served. */
  readonly onReloaded: () => void
  /** A new certificate cannot be used; the old one stays. */
  readonly onUnusable: (reason: string) => void
}

export interface HookPorts {
  /** The bound ports, in the order given. */
  readonly ports: readonly number[]
  /** Answers what is open, and ends the rest after the grace period. */
  close(graceMs: number): Promise<void>
}

/** Throws when a port is taken or the certificate cannot be used; nothing listens then. */
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
    // Who has no certificate is refused by the route that demands one: a probe has none.
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
