/**
 * Closes a connection if the client does not read: a response is pending, but no byte of it has been sent for half a
 * minute.
 *
 * Unread data stays in memory: for each client, up to the size of the largest result. Slow readers and quiet streams
 * are not affected. The checks run at intervals, so writes have no overhead. Node's socket timeout detects whether data
 * is being sent.
 */
import type { Socket } from 'node:net'
import type { Log } from '../log.ts'

/** Number of checks per stall timeout. */
const checksPerTimeout = 4

/** Starts checking these sockets. Returns a function that stops the checks. */
export function closeStalledConnections(
  sockets: ReadonlySet<Socket>,
  stalledMs: number,
  log: Log,
): () => void {
  const watched = new WeakSet<Socket>()

  function check(socket: Socket): void {
    const isBlocked = socket.writableLength > 0
    if (isBlocked === watched.has(socket)) return
    if (isBlocked) {
      watched.add(socket)
      socket.setTimeout(stalledMs, closeStalled)
      return
    }
    watched.delete(socket)
    socket.off('timeout', closeStalled)
    // A connection without a response already has an idle timeout.
    if (socket.timeout === stalledMs) socket.setTimeout(0)
  }

  function closeStalled(this: Socket): void {
    if (this.writableLength === 0) return
    log.debug('connection closed: the client stopped reading', { afterMs: stalledMs })
    this.destroy()
  }

  const timer = setInterval(() => {
    for (const socket of sockets) check(socket)
  }, stalledMs / checksPerTimeout)
  timer.unref()
  return () => clearInterval(timer)
}
