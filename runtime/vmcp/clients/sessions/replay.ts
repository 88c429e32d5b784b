/**
 * The resumable streams of one session. Every event has an id, and the latest events are stored for a limited time.
 * After a broken connection, a client can therefore continue with `Last-Event-ID`.
 *
 * The number of events is bounded for each stream, for each session and for the process. Only this process stores the
 * events. Another replica does not recognize the ids, and opens a new stream.
 * Source: MCP 2025-11-25, transports, "Resumability and Redelivery".
 */
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { eventParts, keepAliveComment } from '../../../mcp/index.ts'
import { cutWhenStuck, maxBufferedBytes, writeBounded } from '../stream.ts'

/** Limits for one stream. */
const maxEvents = 256
const maxHeldBytes = 8 * 1024 * 1024
/** Maximum number of stored streams for one session, in addition to open streams. */
const maxStored = 8
/**
 * Time in milliseconds for which a client may be disconnected from a stream, and for which an ended stream is stored.
 */
const awayMs = 60_000
const endedMs = 30_000
/** Responses of at least this size may stay in the socket's buffer if the client does not read. */
const largeBytes = 16 * 1024

/** Limit on the memory for stored events, shared by all sessions of a process. */
export class ReplayBudget {
  #left: number

  constructor(bytes = 64 * 1024 * 1024) {
    this.#left = bytes
  }

  take(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    return true
  }

  release(bytes: number): void {
    this.#left += bytes
  }
}

interface StoredEvent {
  readonly number: number
  readonly bytes: Buffer
}

/** One stream, independent of its current connection. */
export class ReplayStream {
  /** Called if the client has not reconnected in time. */
  onAbandoned: (() => void) | undefined
  readonly #name: string
  readonly #budget: ReplayBudget
  #stored: StoredEvent[] = []
  #bytes = 0
  #next = 1
  #res: ServerResponse | undefined
  #abandonTimer: NodeJS.Timeout | undefined
  #ended = false
  #changedAt = performance.now()

  constructor(name: string, budget: ReplayBudget) {
    this.#name = name
    this.#budget = budget
  }

  /** True while events can be sent or stored. */
  get isOpen(): boolean {
    return !this.#ended
  }

  /** True if the client can no longer resume the stream. */
  get isStale(): boolean {
    if (this.#res !== undefined || (!this.#ended && this.onAbandoned)) return false
    return performance.now() - this.#changedAt > (this.#ended ? endedMs : awayMs)
  }

  get isConnected(): boolean {
    return this.#res !== undefined
  }

  /**
   * Continues over another connection, starting with the event after event number `after`. The connection's headers
   * must already be sent.
   */
  attach(res: ServerResponse, after = this.#next - 1): void {
    clearTimeout(this.#abandonTimer)
    const before = this.#res
    this.#res = res
    before?.end()
    res.once('close', () => {
      if (this.#res === res) this.#detach()
    })
    for (const { number, bytes } of this.#stored) if (number > after) writeBounded(res, bytes)
    if (this.#ended) res.end()
  }

  #detach(): void {
    this.#res = undefined
    this.#changedAt = performance.now()
    if (this.#ended || !this.onAbandoned) return
    this.#abandonTimer = setTimeout(() => this.abandon(), awayMs)
    this.#abandonTimer.unref()
  }

  /** Sends an event without content. The client then has an event id before the first message. */
  sendEmptyEvent(): void {
    this.#write([])
  }

  /** Sends a message, or stores it until the client reconnects. Returns false if the stream has ended. */
  send(message: Buffer): boolean {
    if (this.#ended) return false
    this.#write([message])
    return true
  }

  #write(message: readonly Buffer[]): void {
    const number = this.#next++
    const parts = eventParts(message, { id: `${this.#name}-${number}` })
    const bytes = this.#keep(number, parts)
    const res = this.#res
    if (!res) return
    // The client is connected but does not read. Such a client will not resume the stream.
    const stuck = res.writableLength > maxBufferedBytes
    writeBounded(res, bytes ?? parts)
    if (stuck) this.abandon()
  }

  /** Stores an event as one buffer and returns the buffer. Returns undefined if the event is too large to store. */
  #keep(number: number, parts: readonly Buffer[]): Buffer | undefined {
    const size = sizeOf(parts)
    while (this.#stored.length >= maxEvents || this.#bytes + size > maxHeldBytes) {
      if (!this.#forgetOldest()) return undefined
    }
    while (!this.#budget.take(size)) {
      if (!this.#forgetOldest()) return undefined
    }
    const bytes = Buffer.concat(parts, size)
    this.#stored.push({ number, bytes })
    this.#bytes += size
    return bytes
  }

  #forgetOldest(): boolean {
    const oldest = this.#stored.shift()
    if (!oldest) return false
    this.#bytes -= oldest.bytes.length
    this.#budget.release(oldest.bytes.length)
    return true
  }

  /** Sends an optional last message and ends the stream. */
  end(message?: readonly Buffer[]): void {
    if (this.#ended) return
    if (message) this.#write(message)
    this.#ended = true
    clearTimeout(this.#abandonTimer)
    this.#changedAt = performance.now()
    const res = this.#res
    if (!res) return
    res.end()
    if (message && sizeOf(message) >= largeBytes) cutWhenStuck(res)
  }

  keepAlive(): void {
    if (this.#res) writeBounded(this.#res, keepAliveComment)
  }

  /** Ends the stream because the client will not resume it. */
  abandon(): void {
    const { onAbandoned } = this
    this.onAbandoned = undefined
    this.end()
    this.drop()
    onAbandoned?.()
  }

  /** Removes the stored events. */
  drop(): void {
    clearTimeout(this.#abandonTimer)
    while (this.#forgetOldest());
  }
}

function sizeOf(parts: readonly Buffer[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0)
}

/** The streams of one session. */
export class ReplayStreams {
  readonly #budget: ReplayBudget
  /** Streams in the order in which they were opened. */
  readonly #streams = new Map<string, ReplayStream>()
  /** Random part of the ids. Ids from another replica or from before a restart must not match any stream. */
  #prefix: string | undefined
  readonly #tag: string
  #next = 1

  /** `tag` is the prefix of every id. The prefix routes a client back to the worker that has the stream. */
  constructor(budget: ReplayBudget, tag = '') {
    this.#budget = budget
    this.#tag = tag
  }

  open(): ReplayStream {
    this.#prefix ??= this.#tag + randomBytes(6).toString('base64url').replaceAll('-', '_')
    const name = `${this.#prefix}-${this.#next++}`
    const stream = new ReplayStream(name, this.#budget)
    this.#makeRoom()
    this.#streams.set(name, stream)
    return stream
  }

  #makeRoom(): void {
    let idle = 0
    for (const stream of this.#streams.values()) if (!stream.isConnected) idle++
    for (const [name, stream] of this.#streams) {
      if (idle < maxStored) return
      if (stream.isConnected) continue
      idle--
      this.#streams.delete(name)
      stream.abandon()
    }
  }

  /**
   * Returns the stream to which an event id belongs, and the event's number. Returns undefined if this process does not
   * recognize the id.
   */
  find(lastEventId: string): { stream: ReplayStream; after: number } | undefined {
    const [, name = '', number = ''] = /^(.*)-(\d{1,15})$/.exec(lastEventId) ?? []
    const stream = this.#streams.get(name)
    return stream && { stream, after: Number(number) }
  }

  /** Removes streams that can no longer be resumed. */
  evict(): void {
    for (const [name, stream] of this.#streams) {
      if (!stream.isStale) continue
      this.#streams.delete(name)
      stream.drop()
    }
  }

  close(): void {
    for (const stream of this.#streams.values()) {
      stream.onAbandoned = undefined
      stream.end()
      stream.drop()
    }
    this.#streams.clear()
  }
}
