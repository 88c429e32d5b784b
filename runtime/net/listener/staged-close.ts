/**
 * Closes a connection in stages: ends the sending side, then reads and discards what the client still sends, until the
 * client closes its side or a bound is reached.
 *
 * A connection that is closed while bytes are unread is reset, and a reset discards the response that the client has not
 * read yet. A client that sends its whole body before it reads would never see why it was refused.
 * Source: RFC 9112 section 9.6.
 */
import type { Socket } from 'node:net'

export interface StagedCloseLimits {
  /** From the end of the sending side until the connection is cut. */
  readonly totalMs: number
  /** The same for a client that sends nothing. */
  readonly idleMs: number
  /** What is read and discarded. */
  readonly maxBytes: number
}

export const stagedCloseLimits: StagedCloseLimits = {
  totalMs: 30_000,
  idleMs: 5_000,
  maxBytes: 268_435_456,
}

/** Takes the socket over: nothing that arrives from now on reaches the HTTP parser. What was written is still sent. */
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
