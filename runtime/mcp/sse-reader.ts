/**
 * Reads server-sent events as bytes, chunk by chunk. A chunk's cost depends only on the chunk's length, not on the
 * event's length. The bytes of a large event are joined over several turns of the event loop.
 *
 * A text parser would join all lines of an event in a single turn, at the end of the event.
 * Source: WHATWG HTML, "Server-sent events", interpretation.
 */
import { isUtf8 } from 'node:buffer'
import { Pieces } from '../net/index.ts'
import { inTurns, joined, largeBytes, madeUtf8, type TurnWork } from './json/turns.ts'

const lf = 0x0a
const cr = 0x0d
const colon = 0x3a
const space = 0x20
const newline = Buffer.from('\n')
const byteOrderMark: readonly number[] = [0xef, 0xbb, 0xbf]

const fields: ReadonlySet<string> = new Set(['data', 'event', 'id', 'retry'])
const longestName = 5
const shortLine = 32
/** Maximum size of an `event`, `id` or `retry` value. */
const maxValueBytes = 64 * 1024

/** Receives the data of a large event while it arrives. */
export interface SseData {
  push(part: Buffer): void
}

export class SseEvent {
  readonly id: string | undefined
  readonly event: string | undefined
  /** Size of the data, in bytes. */
  readonly size: number
  /** The receiver of the data. Undefined if there is none. */
  readonly receiver: SseData | undefined
  readonly #pieces: readonly Buffer[]

  constructor(
    { id, event }: Pick<SseEvent, 'id' | 'event'>,
    pieces: readonly Buffer[],
    size: number,
    receiver?: SseData,
  ) {
    this.id = id
    this.event = event
    this.size = size
    this.receiver = receiver
    this.#pieces = pieces
  }

  /** Returns the data, or a promise for a large event. Replaces invalid UTF-8, as the standard requires. */
  data(): Buffer | Promise<Buffer> {
    if (this.size >= largeBytes) return inTurns(this.#large())
    const bytes = Buffer.concat(this.#pieces, this.size)
    return isUtf8(bytes) ? bytes : Buffer.from(bytes.toString())
  }

  *#large(): TurnWork<Buffer> {
    const [first] = this.#pieces
    const bytes = first && this.#pieces.length === 1 ? first : yield* joined(this.#pieces, this.size)
    return yield* madeUtf8(bytes)
  }
}

const maxHeaderBytes = 4 * 1024

/** Converts an event id to a `Last-Event-ID` value in UTF-8. Returns undefined if a header cannot contain the id. */
export function lastEventIdHeader(id: string | undefined): string | undefined {
  if (id === undefined || id.length > maxHeaderBytes) return undefined
  const value = Buffer.from(id).toString('latin1')
  return /^[\t\x20-\x7e\x80-\xff]+$/.test(value) ? value : undefined
}

export interface SseReader {
  /** Adds a chunk and delivers the chunk's events before it returns. Throws RangeError if an event is too large. */
  push(chunk: Buffer): void
  /** True if an event was too large. */
  readonly overflowed: boolean
}

/** Called once for each large event. Returns the receiver of the event's data, or undefined. */
export type OnLarge = (event: Pick<SseEvent, 'id' | 'event'>) => SseData | undefined

/** Creates an event reader. `maxBytes` limits the size of an event's data, even while the event is incomplete. */
export function sseReader(
  maxBytes: number,
  onEvent: (event: SseEvent) => void,
  onRetry?: (retryMs: number) => void,
  onLarge?: OnLarge,
): SseReader {
  return new Reader(maxBytes, onEvent, onRetry, onLarge)
}

/** Data of at least this size counts as large. */
const largeDataBytes = 64 * 1024

class Reader implements SseReader {
  overflowed = false
  readonly #maxBytes: number
  readonly #onEvent: (event: SseEvent) => void
  readonly #onRetry: ((retryMs: number) => void) | undefined
  readonly #onLarge: OnLarge | undefined
  /** Number of byte order mark bytes that may still arrive at the beginning of the stream. 0 afterwards. */
  #markBytesLeft = byteOrderMark.length
  /** True if the last chunk ended with CR. A following LF then belongs to the same line break. */
  #afterCr = false
  /** The part of the field name that has arrived so far. */
  #name = ''
  /**
   * Name of the field on the current line. Undefined until the colon has arrived. `skip` means that the line is
   * ignored.
   */
  #field: string | undefined
  /** True if the next byte is the first byte of the value. One space is dropped at this position. */
  #atValue = false
  #value: Buffer[] = []
  #valueBytes = 0
  #id: string | undefined
  #event: string | undefined
  #lines = 0
  #data = new Pieces()
  #size = 0
  #receiver: SseData | undefined

  constructor(
    maxBytes: number,
    onEvent: (event: SseEvent) => void,
    onRetry: ((retryMs: number) => void) | undefined,
    onLarge: OnLarge | undefined,
  ) {
    this.#maxBytes = maxBytes
    this.#onEvent = onEvent
    this.#onRetry = onRetry
    this.#onLarge = onLarge
  }

  push(chunk: Buffer): void {
    let at = this.#markBytesLeft > 0 ? this.#skipMark(chunk) : 0
    let nextLf = -1
    let nextCr = -1
    while (at < chunk.length) {
      if (this.#afterCr) {
        this.#afterCr = false
        if (chunk[at] === lf) {
          at++
          continue
        }
      }
      let end = shortLineEnd(chunk, at)
      if (end < 0) {
        if (nextLf < at) nextLf = indexOrEnd(chunk, lf, at)
        if (nextCr < at) nextCr = indexOrEnd(chunk, cr, at)
        end = Math.min(nextLf, nextCr)
      }
      if (end > at) this.#readPart(chunk, at, end)
      if (end === chunk.length) break
      this.#endLine()
      this.#afterCr = chunk[end] === cr
      at = end + 1
    }
    this.#deliverData()
  }

  #skipMark(chunk: Buffer): number {
    for (let at = 0; at < chunk.length; at++) {
      if (chunk[at] !== byteOrderMark.at(-this.#markBytesLeft)) {
        // A partial byte order mark is treated as the start of a line with an unknown field.
        if (this.#markBytesLeft < byteOrderMark.length) this.#field = 'skip'
        this.#markBytesLeft = 0
        return at
      }
      this.#markBytesLeft--
      if (this.#markBytesLeft === 0) return at + 1
    }
    return chunk.length
  }

  /** Reads a part of one line. */
  #readPart(chunk: Buffer, from: number, end: number): void {
    const at = this.#field === undefined ? this.#readName(chunk, from, end) : from
    if (this.#field === undefined || this.#field === 'skip' || at === end) return
    const start = this.#atValue && chunk[at] === space ? at + 1 : at
    this.#atValue = false
    if (start === end) return
    if (this.#field === 'data') this.#addData(chunk, start, end)
    else {
      this.#valueBytes += end - start
      if (this.#valueBytes > maxValueBytes) throw this.#overflow()
      this.#value.push(Buffer.from(chunk.subarray(start, end)))
    }
  }

  /** Continues to read the field name. Returns the index of the byte after the colon. */
  #readName(chunk: Buffer, from: number, end: number): number {
    for (let at = from; at < end; at++) {
      const c = chunk[at] ?? colon
      if (c === colon) {
        this.#begin(fields.has(this.#name) ? this.#name : 'skip')
        return at + 1
      }
      if (this.#name.length === longestName) {
        this.#field = 'skip'
        return end
      }
      this.#name += String.fromCharCode(c)
    }
    return end
  }

  #begin(field: string): void {
    this.#field = field
    this.#atValue = true
    if (field === 'data' && this.#lines++ > 0) this.#addData(newline, 0, 1)
  }

  #addData(chunk: Buffer, from: number, end: number): void {
    const before = this.#size
    this.#size += end - from
    if (this.#size > this.#maxBytes) throw this.#overflow()
    this.#data.add(chunk, from, end)
    if (before < largeDataBytes && this.#size >= largeDataBytes)
      this.#receiver = this.#onLarge?.({ id: this.#id, event: this.#event })
  }

  /** Delivers the collected data. One delivery may contain many lines. */
  #deliverData(): void {
    if (!this.#receiver || this.#data.size === 0) return
    for (const piece of this.#data.take()) this.#receiver.push(piece)
    this.#data = new Pieces()
  }

  #overflow(): RangeError {
    this.overflowed = true
    this.#data = new Pieces()
    return new RangeError('an event is larger than allowed')
  }

  #endLine(): void {
    if (this.#field === undefined) {
      if (this.#name === '') return this.#dispatch()
      if (fields.has(this.#name)) this.#begin(this.#name)
    }
    if (this.#field !== undefined && this.#field !== 'data' && this.#field !== 'skip')
      this.#apply(this.#field)
    this.#name = ''
    this.#field = undefined
  }

  #apply(field: string): void {
    const value = Buffer.concat(this.#value).toString()
    this.#value = []
    this.#valueBytes = 0
    if (field === 'event') this.#event = value === '' ? undefined : value
    else if (field === 'id' && !value.includes('\0')) this.#id = value
    else if (field === 'retry' && /^\d+$/.test(value)) this.#onRetry?.(Number(value))
  }

  #dispatch(): void {
    this.#deliverData()
    const known = { id: this.#id, event: this.#event }
    const event =
      this.#lines > 0 ? new SseEvent(known, this.#data.take(), this.#size, this.#receiver) : undefined
    this.#receiver = undefined
    this.#size = 0
    this.#id = undefined
    this.#event = undefined
    this.#lines = 0
    this.#data = event ? new Pieces() : this.#data
    if (event) this.#onEvent(event)
  }
}

/**
 * Returns the index where a short line ends, or -1 for a longer line. A native search finds the end of a longer line
 * faster.
 */
function shortLineEnd(chunk: Buffer, at: number): number {
  const until = Math.min(chunk.length, at + shortLine)
  for (let i = at; i < until; i++) if (chunk[i] === lf || chunk[i] === cr) return i
  return -1
}

function indexOrEnd(chunk: Buffer, byte: number, at: number): number {
  const found = chunk.indexOf(byte, at)
  return found < 0 ? chunk.length : found
}
