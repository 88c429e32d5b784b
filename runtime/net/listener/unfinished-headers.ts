/**
 * Bounds what header blocks that are not complete yet take together. Each may be as large as its limit, and is held by the HTTP
 * parser until it is complete, before anybody can know who sends it: some hundred connections would fill the memory.
 *
 * Connections are looked at now and then, so that no request pays for it, and only where there are enough of them to matter.
 * Those with the largest unfinished blocks are cut. Bodies are counted by ../load/body-memory.ts.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Log } from '../log.ts'
import { nowAndThen } from './now-and-then.ts'

/** What is known of a connection here. */
export interface HeaderState {
  /** The last request on it. */
  readonly req: IncomingMessage | undefined
  /** The request after whose end `from` was noted. */
  after: IncomingMessage | undefined
  /** Bytes that were received before the header block that is arriving, about. */
  from: number
}

export interface HeaderBounds {
  readonly maxBytes: number
  /** One block alone. */
  readonly maxHeaderBytes: number
  readonly lookMs: number
}

/** Begins to look at these sockets. The result ends it. */
export function boundHeaders(
  sockets: ReadonlySet<Socket>,
  stateOf: (socket: Socket) => HeaderState | undefined,
  { maxBytes, maxHeaderBytes, lookMs }: HeaderBounds,
  log: Log,
): () => void {
  const tell = nowAndThen((bytes: number, cut: number) =>
    log.warn('connections were cut: their header blocks, none complete, took too much memory together', {
      connections: cut,
      bytes,
      hint: 'find out who opens them (a proxy in front of this server can bound connections of one address)',
    }),
  )

  function look(): void {
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
    tell(before, cut)
  }

  const timer = setInterval(look, lookMs)
  timer.unref()
  return () => clearInterval(timer)
}

function unfinishedBytes(socket: Socket, state: HeaderState): number {
  const { req } = state
  if (req?.complete === false) return 0
  if (state.after !== req) {
    // What has come since the end of that request is little: it was not there at the last look.
    state.after = req
    state.from = socket.bytesRead
  }
  return socket.bytesRead - state.from
}
