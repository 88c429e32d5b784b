/**
 * Publishes events for open pages: batches of calls, health, catalog changes, and the number of sessions.
 *
 * Every event has a number and is stored for a limited time, so a page can resume after a lost connection. The hub
 * reports dropped events as a gap.
 */
import type { Events } from '../../observe/index.ts'
import type { StreamEvent } from '../api.ts'
import type { CallRecorder, StoredCall } from '../calls/recorder.ts'
import { type RingEntry, Ring } from '../calls/ring.ts'
import { iso } from '../data/pages.ts'

const batchMs = 250
const maxBatch = 500
const logBytes = 2 * 1024 * 1024
const eventBytes = 300

export type Topic = 'calls' | 'health' | 'catalog' | 'sessions'
export const topics: readonly Topic[] = ['calls', 'health', 'catalog', 'sessions']

type Happening =
  | { readonly topic: 'calls'; readonly stored: readonly StoredCall[] }
  | { readonly topic: Exclude<Topic, 'calls'>; readonly event: StreamEvent }

export type LoggedEvent = RingEntry & Happening

export interface HubOptions {
  readonly recorder: CallRecorder
  readonly events: Events
  readonly sessionCount: () => number
}

/** Events after which the tool lists may have changed. */
const catalogEvents: ReadonlySet<string> = new Set([
  'lists_changed',
  'lists_failed',
  'lists_recovered',
  'list_problem',
  'backends_changed',
  'backend_excluded',
  'backend_included',
  'tools_drifted',
  'tool_lock',
  'config_reloaded',
  'name_conflict',
])

export class Hub {
  readonly #options: HubOptions
  readonly #log = new Ring<LoggedEvent>(logBytes)
  readonly #listeners = new Set<(event: LoggedEvent) => void>()
  readonly #stops: readonly (() => void)[]
  #seq = 0
  #batch: StoredCall[] = []
  #timer: NodeJS.Timeout | undefined
  #sessions: number

  constructor(options: HubOptions) {
    this.#options = options
    this.#sessions = options.sessionCount()
    this.#stops = [
      options.recorder.listen((stored) => this.#keep(stored)),
      options.events.listen(({ type, at, fields }) => {
        if (type === 'backend_health') {
          const { backend, after } = fields as { backend: string; after: 'healthy' }
          this.#emit({ topic: 'health', event: { type: 'health', backend, health: after, since: iso(at) } })
        } else if (catalogEvents.has(type)) this.#emit({ topic: 'catalog', event: { type: 'catalog' } })
      }),
    ]
  }

  /** Sequence number of the latest event. */
  get last(): number {
    return this.#seq
  }

  listen(listener: (event: LoggedEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Returns the events after `seq`, oldest first; undefined if some of them were dropped. */
  since(seq: number): readonly LoggedEvent[] | undefined {
    if (seq > this.#seq) return undefined
    const { oldest } = this.#log
    if (seq < (oldest?.seq ?? this.#seq + 1) - 1) return undefined
    const found: LoggedEvent[] = []
    for (const event of this.#log.before(Number.MAX_SAFE_INTEGER)) {
      if (event.seq <= seq) break
      found.push(event)
    }
    return found.toReversed()
  }

  #keep(stored: StoredCall): void {
    this.#batch.push(stored)
    if (this.#batch.length >= maxBatch) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), batchMs).unref()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const stored = this.#batch
    this.#batch = []
    if (stored.length > 0) this.#emit({ topic: 'calls', stored })
    this.countSessions()
  }

  /** Publishes the number of sessions if it has changed. */
  countSessions(): void {
    const count = this.#options.sessionCount()
    if (count === this.#sessions) return
    this.#sessions = count
    this.#emit({ topic: 'sessions', event: { type: 'sessions', count } })
  }

  #emit(happening: Happening): void {
    const bytes =
      eventBytes +
      (happening.topic === 'calls' ? happening.stored.reduce((sum, one) => sum + one.bytes, 0) : 0)
    const event: LoggedEvent = { ...happening, seq: ++this.#seq, bytes }
    this.#log.push(event)
    for (const listener of this.#listeners) listener(event)
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const stop of this.#stops) stop()
    this.#listeners.clear()
  }
}
