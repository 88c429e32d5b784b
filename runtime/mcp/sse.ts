/**
 * Writes server-sent events. An event's data is a single line. Line breaks, which are whitespace in JSON, become
 * spaces. A payload can therefore neither end its event early nor begin another event.
 * Source: WHATWG HTML, "Server-sent events"; MCP 2025-11-25, transports.
 */
export interface SseFields {
  readonly event?: string
  readonly id?: string
  readonly retryMs?: number
}

const lf = 0x0a
const cr = 0x0d
const space = 0x20
export const eventEnd: Buffer = Buffer.from('\n\n')
/** The text before a message's data. */
export const messageHead: Buffer = Buffer.from('event: message\ndata: ')

/** A comment that keeps an idle stream open. */
export const keepAliveComment: Buffer = Buffer.from(': keep-alive\n\n')

/**
 * Returns one event. `data` is JSON text, or text without line breaks. The fields must not contain line breaks either.
 */
export function encodeEvent(data: Buffer, fields: SseFields = {}): Buffer {
  return Buffer.concat(eventParts([data], fields))
}

/** Like `encodeEvent`, but returns pieces, so large data is not copied. */
export function eventParts(data: readonly Buffer[], fields: SseFields = {}): Buffer[] {
  return [headOf(fields), ...data.map(onOneLine), eventEnd]
}

function headOf({ event, id, retryMs }: SseFields): Buffer {
  if (event === undefined && id === undefined && retryMs === undefined) return messageHead
  let head = `event: ${event ?? 'message'}\n`
  if (id !== undefined) head += `id: ${id}\n`
  if (retryMs !== undefined) head += `retry: ${retryMs}\n`
  return Buffer.from(`${head}data: `)
}

/** Returns JSON text without line breaks. Large results from servers contain no line breaks (large-message.ts). */
export function onOneLine(json: Buffer): Buffer {
  if (!json.includes(lf) && !json.includes(cr)) return json
  const copy = Buffer.from(json)
  blankLineEnds(copy)
  return copy
}

/** Replaces each line break in `json` with a space. */
export function blankLineEnds(json: Buffer): void {
  for (let i = 0; i < json.length; i++) if (json[i] === lf || json[i] === cr) json[i] = space
}
