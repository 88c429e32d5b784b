/**
 * Closes a listener: finishes open requests, closes connections without a request, and closes the rest after the grace
 * period.
 */
import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

const pollMs = 50
/** A request may arrive on the connection at any time. */
const unusedMs = 250

/** Returns a function that closes the listener. Call it before the server listens. */
export function shutdownOf(server: Server): (graceMs: number) => Promise<void> {
  const unused = new Set<Socket>()
  const trackUnused = (socket: Socket): void => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  }
  // With TLS, requests arrive on the secure socket.
  server.on('setSecureContext' in server ? 'secureConnection' : 'connection', trackUnused)
  server.on('request', ({ socket }: IncomingMessage) => unused.delete(socket))
  return async (graceMs) => {
    const closed = once(server, 'close')
    server.close()
    // A connection that sends its response after close() stays open and becomes idle.
    const idle = setInterval(() => server.closeIdleConnections(), pollMs)
    // Node does not treat a connection without a request as idle.
    const closeUnused = setTimeout(() => {
      for (const socket of unused) socket.destroy()
    }, unusedMs)
    const forceClose = setTimeout(() => server.closeAllConnections(), graceMs)
    await closed
    clearInterval(idle)
    clearTimeout(closeUnused)
    clearTimeout(forceClose)
  }
}
