/** Distinguishes event streams from JSON-RPC messages by a response's content type and first bytes. */
import type { IncomingHttpHeaders } from 'node:http'

const sniffedBytes = 64

export function isEventStream(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']
  return typeof type === 'string' && /^\s*text\/event-stream\b/i.test(type)
}

/** True if the chunk starts like a JSON-RPC message. No line in an event stream starts this way. */
export function startsAsMessage(chunk: Buffer): boolean {
  return /^\s*(?:\[\s*)?\{\s*"/.test(chunk.toString('latin1', 0, sniffedBytes))
}

/** True if the chunk starts like an event stream. No JSON text starts this way. */
export function startsAsEvents(chunk: Buffer): boolean {
  const text = chunk.toString('latin1', 0, sniffedBytes)
  return /^(?:\xef\xbb\xbf)?[\r\n]*(?:data|event|id|retry)?:/.test(text)
}
