/** Event streams of the bridge: begun, and written to as long as the client reads. */
import type { ServerResponse } from 'node:http'
import { eventStreamType } from '../../mcp/index.ts'
import { holdsStream, writeParts } from '../../net/index.ts'

/** Bytes that may wait for a client; it gets no more beyond that. */
const maxUnread = 16 * 1024 * 1024
/** Quiet streams say this now and then, so that nothing between here and the client takes them for dead. */
const keepAliveMs = 30_000
const keepAlive = ': keep-alive\n\n'

export function beginStream(res: ServerResponse, headers: Readonly<Record<string, string>> = {}): void {
  res.writeHead(200, { 'Content-Type': eventStreamType, 'Cache-Control': 'no-store', ...headers })
  res.flushHeaders()
  holdsStream(res, () => res.end())
  const alive = setInterval(() => {
    if (!res.writableEnded) res.write(keepAlive)
  }, keepAliveMs)
  alive.unref()
  res.once('close', () => clearInterval(alive))
}

/** False when the client did not read and was cut off. */
export function pushEvent(res: ServerResponse, event: readonly Buffer[]): boolean {
  if (res.writableEnded || res.destroyed) return true
  writeParts(res, event)
  if (res.writableLength <= maxUnread) return true
  res.destroy()
  return false
}
