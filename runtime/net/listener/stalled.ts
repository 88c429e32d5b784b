/**
 * Cuts connections whose client does not read: while a response waits to be sent and not a byte of it leaves for half a minute.
 *
 * What such a client does not fetch is held in memory, up to the largest result for each. A client that reads slowly is not
 * cut, nor is a stream that is quiet. Connections are looked at now and then, so that no write pays for it; whether bytes
 * leave is then seen by Node's own timeout of the socket.
 */
import type { Socket } from 'node:net'
import type { Log } from '../log.ts'

/** Looks so often within the time that a client may stand still. */
const looks = 4

/** Begins to look at these sockets. The result ends it. */
export function cutStalled(sockets: ReadonlySet<Socket>, stalledMs: number, log: Log): () => void {
  const watched = new WeakSet<Socket>()

  function look(socket: Socket): void {
    const isBlocked = socket.writableLength > 0
    if (isBlocked === watched.has(socket)) return
    if (isBlocked) {
      watched.add(socket)
      socket.setTimeout(stalledMs, cut)
      return
    }
    watched.delete(socket)
    socket.off('timeout', cut)
    // A connection without a response has the timeout of idle ones by now.
    if (socket.timeout === stalledMs) socket.setTimeout(0)
  }

  function cut(this: Socket): void {
    if (this.writableLength === 0) return
    log.debug('a connection was cut: its client has not read for a while', { afterMs: stalledMs })
    this.destroy()
  }

  const timer = setInterval(() => {
    for (const socket of sockets) look(socket)
  }, stalledMs / looks)
  timer.unref()
  return () => clearInterval(timer)
}
