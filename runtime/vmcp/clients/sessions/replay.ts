/**
 * Streams of one session that can be resumed: every event has an id, and the latest ones are stored for a while, so
 * that a client whose connection broke reads on with `Last-Event-ID`.
 *
 * Bounded for each stream, for each session, and for the process. What is stored lives in this process: another replica
 * cannot go on with a stream (its ids are unknown there and lead to a fresh stream).
 * Source: MCP 2025-11-25, transports, "Resumability and Redelivery".
 */
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { eventParts, keepAliveComment } from '../../../mcp/index.ts'
import { cutWhenStuck, maxBufferedBytes, writeBounded } from '../stream.ts'

/** Limits of one stream. */
const maxEvents = 256
const maxHeldBytes = 8 * 1024 * 1024
/** Streams stored for one session, beside those that are open. */
const maxStored = 8
/** How long a client may stay away from a stream, and how long an ended one is stored. */
const awayMs = 60_000
const endedMs = 30_000
/** From this size on a response may get stuck in a socket. */
const largeBytes = 16 * 1024

/** What all sessions of a process may keep together. */
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

  give(bytes: number): void {
    this.#left += bytes
  }
}

interface StoredEvent {
  readonly number: number
  readonly bytes: Buffer
}

/** One stream, whatever connection carries it at the moment. */
export class ReplayStream {
  /** Called once when the client stayed away for too long. */
  onAbandoned: (() => void) | undefined
  readonly #name: string
  readonly #budget: ReplayBudget
  #stored: StoredEvent[] = []
  #bytes = 0
  #next = 1
  #res: ServerResponse | undefined
  #away: NodeJS.Timeout | undefined
  #ended = false
  #changedAt = performance.now()

  constructor(name: string, budget: ReplayBudget) {
    this.#name = name
    this.#budget = budget
  }

  /** True while events can be sent or stored. */
  get open(): boolean {
    return !this.#ended
  }

  /** True when nobody will come back for it. */
  get stale(): boolean {
    if (this.#res !== undefined || (!this.#ended && this.onAbandoned)) return false
    return performance.now() - this.#changedAt > (this.#ended ? endedMs : awayMs)
  }

  get carried(): boolean {
    return this.#res !== undefined
  }

  /** Goes on over a connection whose headers are sent, with what came after the event of that number. */
  attach(res: ServerResponse, after = this.#next - 1): void {
    clearTimeout(this.#away)
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
    this.#away = setTimeout(() => this.abandon(), awayMs)
    this.#away.unref()
  }

  /** An event without content: the client learns an id to come back with, before there is anything to say. */
  prime(): void {
    this.#write([])
  }

  /** Sends a message, or keeps it for the client's return. False when the stream is over. */
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
    // A client that does not read what it gets is not one whose connection broke.
    const stuck = res.writableLength > maxBufferedBytes
    writeBounded(res, bytes ?? parts)
    if (stuck) this.abandon()
  }

  /** Stores an event, for which it becomes one buffer; undefined when it is too large for that. */
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
    this.#budget.give(oldest.bytes.length)
    return true
  }

  /** Sends the last message and ends; without one there is nothing to come back for. */
  end(message?: readonly Buffer[]): void {
    if (this.#ended) return
    if (message) this.#write(message)
    this.#ended = true
    clearTimeout(this.#away)
    this.#changedAt = performance.now()
    const res = this.#res
    if (!res) return
    res.end()
    if (message && sizeOf(message) >= largeBytes) cutWhenStuck(res)
  }

  keepAlive(): void {
    if (this.#res) writeBounded(this.#res, keepAliveComment)
  }

  /** The client does not come back. */
  abandon(): void {
    const { onAbandoned } = this
    this.onAbandoned = undefined
    this.end()
    this.drop()
    onAbandoned?.()
  }

  /** Forgets what is stored. */
  drop(): void {
    clearTimeout(this.#away)
    while (this.#forgetOldest());
  }
}

function sizeOf(parts: readonly Buffer[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0)
}

/** The streams of one session. */
export class ReplayStreams {
  readonly #budget: ReplayBudget
  /** Insertion order is order of opening. */
  readonly #streams = new Map<string, ReplayStream>()
  /** Ids of another replica, or of this session's earlier life, must not lead to a stream of ours. */
  #prefix: string | undefined
  readonly #tag: string
  #next = 1

  /** `tag` begins every id, so that a client comes back to the worker that has the stream. */
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
    for (const stream of this.#streams.values()) if (!stream.carried) idle++
    for (const [name, stream] of this.#streams) {
      if (idle < maxStored) return
      if (stream.carried) continue
      idle--
      this.#streams.delete(name)
      stream.abandon()
    }
  }

  /** The stream that an event id belongs to, and the number of that event; undefined when it is not known here. */
  find(lastEventId: string): { stream: ReplayStream; after: number } | undefined {
    const [, name = '', number = ''] = /^(.*)-(\d{1,15})$/.exec(lastEventId) ?? []
    const stream = this.#streams.get(name)
    return stream && { stream, after: Number(number) }
  }

  /** Forgets streams that ended some time ago. */
  evict(): void {
    for (const [name, stream] of this.#streams) {
      if (!stream.stale) continue
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
