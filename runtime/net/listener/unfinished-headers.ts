/**
 * Limits the memory used by incomplete header blocks. The HTTP parser buffers each block, up to the header limit, until
 * the block is complete. The client is not authenticated at that point. A few hundred connections could exhaust the
 * memory.
 *
 * The checks run at intervals, so requests have no overhead, and only if there are enough connections to exceed the
 * limit. The connections with the largest incomplete blocks are closed. For bodies, see ../load/body-memory.ts.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Log, limitToOncePerMinute } from '../log.ts'

/** State of a connection. */
export interface HeaderState {
  /** The most recent request on the connection. */
  readonly req: IncomingMessage | undefined
  /** The request that was the most recent when `from` was set. */
  after: IncomingMessage | undefined
  /** Approximate number of bytes received before the header block that is now arriving. */
  from: number
}

export interface HeaderBounds {
  readonly maxBytes: number
  /** Maximum size of one block. */
  readonly maxHeaderBytes: number
  readonly intervalMs: number
}

/** Starts checking these sockets. Returns a function that stops the checks. */
export function limitUnfinishedHeaders(
  sockets: ReadonlySet<Socket>,
  stateOf: (socket: Socket) => HeaderState | undefined,
  { maxBytes, maxHeaderBytes, intervalMs }: HeaderBounds,
  log: Log,
): () => void {
  const report = limitToOncePerMinute((bytes: number, cut: number) =>
    log.warn('connections closed: their incomplete header blocks used too much memory', {
      connections: cut,
      bytes,
      hint: 'find the source of these connections; a proxy in front of this server can limit connections per address',
    }),
  )

  function check(): void {
    if (sockets.size * maxHeaderBytes <= maxBytes) return
    const unfinished: { readonly socket: Socket; readonly bytes: number }[] = []
    let total = 0
    for (const socket of sockets) {
      const state = stateOf(socket)
      const bytes = state ? unfinishedBytes(socket, state) : 0
      if (bytes === 0) continue
      unfinished.push({ socket, bytes })
      total += bytes
    }
    if (total <= maxBytes) return
    const before = total
    let cut = 0
    for (const { socket, bytes } of unfinished.sort((a, b) => b.bytes - a.bytes)) {
      if (total <= maxBytes / 2) break
      socket.destroy()
      total -= bytes
      cut++
    }
    report(before, cut)
  }

  const timer = setInterval(check, intervalMs)
  timer.unref()
  return () => clearInterval(timer)
}

function unfinishedBytes(socket: Socket, state: HeaderState): number {
  const { req } = state
  if (req?.complete === false) return 0
  if (state.after !== req) {
    // Only a few bytes can have arrived since the end of that request, because the request was in progress at the last
    // check.
    state.after = req
    state.from = socket.bytesRead
  }
  return socket.bytesRead - state.from
}
