/**
 * Writes event-stream responses within bounds, and disconnects clients that do not read.
 * Source: MCP 2025-11-25 and 2026-07-28, streamable HTTP.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Exchange, registerCallerStream, writeParts } from '../../net/index.ts'

/** Maximum number of unsent bytes before a slow client's stream is closed. */
export const maxBufferedBytes = 16 * 1024 * 1024
/** Time in milliseconds after which a client is disconnected if it reads nothing from a pending response. */
export const stuckMs = 60_000

export function acceptsEventStream(req: IncomingMessage): boolean {
  return req.headers.accept?.includes('text/event-stream') ?? false
}

export function beginEventStream(res: ServerResponse, headers: Readonly<Record<string, string>> = {}): void {
  res.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    ...headers,
  })
  res.flushHeaders()
}

/** Writes to a stream, or closes it if the client is not reading. Returns false if nothing was written. */
export function writeBounded(res: ServerResponse, bytes: Buffer | readonly Buffer[]): boolean {
  if (res.writableEnded || res.destroyed) return false
  if (res.writableLength > maxBufferedBytes) {
    res.destroy()
    return false
  }
  if (Buffer.isBuffer(bytes)) res.write(bytes)
  else writeParts(res, bytes)
  return true
}

/** Destroys an ended response if the client reads nothing from it for `ms` milliseconds. */
export function cutWhenStuck(res: ServerResponse, ms = stuckMs): void {
  if (!res.writableFinished) res.setTimeout(ms, () => res.destroy())
}

/**
 * Marks a stream that stays open until the client closes it. Such a stream ends earlier if the listener closes, or if
 * the caller's token expires or is revoked.
 */
export function holdStream(exchange: Exchange): void {
  const { res } = exchange
  registerCallerStream(exchange, () => {
    if (!res.writableEnded) res.end()
  })
}
