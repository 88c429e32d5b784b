/**
 * Closes a connection in stages. Ends the sending side, then reads and discards data until the client closes its side
 * or a limit is reached.
 *
 * Closing a connection with unread bytes resets the connection, and a reset discards the unread response. A client that
 * sends its whole body before reading would then never see the reason for a rejection.
 * Source: RFC 9112 section 9.6.
 */
import type { Socket } from 'node:net'

export interface StagedCloseLimits {
  /** Time from closing the sending side until the connection is destroyed. */
  readonly totalMs: number
  /** Time limit for a client that sends no data. */
  readonly idleMs: number
  /** Maximum number of bytes to read and discard. */
  readonly maxBytes: number
}

export const stagedCloseLimits: StagedCloseLimits = {
  totalMs: 30_000,
  idleMs: 5_000,
  maxBytes: 268_435_456,
}

/** Takes over the socket. Further data no longer reaches the HTTP parser; pending writes are still sent. */
export function closeInStages(socket: Socket, limits: StagedCloseLimits = stagedCloseLimits): void {
  if (socket.destroyed) return
  const cut = (): void => {
    socket.destroy()
  }
  let left = limits.maxBytes
  socket.removeAllListeners('data').on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) cut()
  })
  const deadline = setTimeout(cut, limits.totalMs)
  socket.once('close', () => clearTimeout(deadline))
  socket.setTimeout(limits.idleMs, cut)
  socket.end()
  socket.resume()
}
