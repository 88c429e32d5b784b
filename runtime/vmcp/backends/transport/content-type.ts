/** Distinguishes event streams from JSON-RPC messages by the content type of a response and by its first bytes. */
import type { IncomingHttpHeaders } from 'node:http'

const sniffedBytes = 64

export function isEventStream(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']
  return typeof type === 'string' && /^\s*text\/event-stream\b/i.test(type)
}

/** True for the beginning of a JSON-RPC message. No line of an event stream starts like it. */
export function startsAsMessage(chunk: Buffer): boolean {
  return /^\s*(?:\[\s*)?\{\s*"/.test(chunk.toString('latin1', 0, sniffedBytes))
}

/** True for the beginning of an event stream. No JSON text starts like it. */
export function startsAsEvents(chunk: Buffer): boolean {
  const text = chunk.toString('latin1', 0, sniffedBytes)
  return /^(?:\xef\xbb\xbf)?[\r\n]*(?:data|event|id|retry)?:/.test(text)
}
