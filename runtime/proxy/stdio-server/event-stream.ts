/** The bridge's event streams. */
import type { ServerResponse } from 'node:http'
import { eventStreamType } from '../../mcp/index.ts'
import { registerStream, writeParts } from '../../net/index.ts'

/** Maximum number of unread bytes. A client that exceeds this limit is disconnected. */
const maxUnread = 16 * 1024 * 1024
/** Sent periodically on idle streams so that intermediaries keep the connection open. */
const keepAliveMs = 30_000
const keepAlive = ': keep-alive\n\n'

export function beginStream(res: ServerResponse, headers: Readonly<Record<string, string>> = {}): void {
  res.writeHead(200, { 'Content-Type': eventStreamType, 'Cache-Control': 'no-store', ...headers })
  res.flushHeaders()
  registerStream(res, () => res.end())
  const alive = setInterval(() => {
    if (!res.writableEnded) res.write(keepAlive)
  }, keepAliveMs)
  alive.unref()
  res.once('close', () => clearInterval(alive))
}

/** Returns false when the client did not read and was disconnected. */
export function pushEvent(res: ServerResponse, event: readonly Buffer[]): boolean {
  if (res.writableEnded || res.destroyed) return true
  writeParts(res, event)
  if (res.writableLength <= maxUnread) return true
  res.destroy()
  return false
}
