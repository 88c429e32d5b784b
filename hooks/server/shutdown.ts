/** Ends a listener: what is open is answered, connections without a request go, the rest after the grace period. */
import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

const pollMs = 50
/** A request may just be on its way. */
const unusedMs = 250

/** Call it before the server listens; the function that it returns ends the listener. */
export function shutdownOf(server: Server): (graceMs: number) => Promise<void> {
  const unused = new Set<Socket>()
  const keep = (socket: Socket): void => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  }
  // With TLS, requests come on the socket above the connection.
  server.on('setSecureContext' in server ? 'secureConnection' : 'connection', keep)
  server.on('request', ({ socket }: IncomingMessage) => unused.delete(socket))
  return async (graceMs) => {
    const closed = once(server, 'close')
    server.close()
    // A connection whose response is sent after close() stays open, and is idle then.
    const idle = setInterval(() => server.closeIdleConnections(), pollMs)
    // One without a request is not idle to Node.
    const early = setTimeout(() => {
      for (const socket of unused) socket.destroy()
    }, unusedMs)
    const cut = setTimeout(() => server.closeAllConnections(), graceMs)
    await closed
    clearInterval(idle)
    clearTimeout(early)
    clearTimeout(cut)
  }
}
