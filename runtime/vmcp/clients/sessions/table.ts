/**
 * All client sessions of this process: opens, finds and ends them, and lets none be used by anybody but its owner.
 *
 * Bounded: when the table is full, the session that was idle longest makes space; while all are in use, new ones are
 * refused. With a shared store (records), a session opened on another replica is restored here.
 * Source: docs/reference/specification/virtual-server.md#sessionStorage (sessionStorage); MCP 2025-11-25, "Session Management".
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Caller } from '../../../net/index.ts'
import type { Events } from '../../../observe/index.ts'
import type { Elsewhere } from './elsewhere.ts'
import type { SessionRecords } from './records.ts'
import { ReplayBudget } from './replay.ts'
import { ServerSession, type SessionFacts } from './session.ts'

export interface TableOptions {
  readonly ttlMs: number
  readonly maxSessions: number
  readonly now: () => number
  /** Shared storage; undefined keeps sessions in this process only. */
  readonly records: SessionRecords | undefined
  readonly events: Events
  /**
   * How long a copy counts without a look into the storage, where nobody but the other workers changes it, and each of
   * them says so. Undefined: never.
   */
  readonly freshMs?: number | undefined
  /** Other workers with copies of the sessions; undefined: this is the one process. */
  readonly elsewhere?: Elsewhere | undefined
  /** Called once for each session that leaves this process; `gone` is false when another replica may go on with it. */
  readonly onEnd: (session: ServerSession, state: { readonly gone: boolean }) => void
}

const orderMs = 1_000
/** A session that was idle for less than this is not pushed out by a new one. */
const graceMs = 60_000

export class SessionTable {
  readonly #options: TableOptions
  /** Insertion order is order of use, to the second. */
  readonly #live = new Map<string, ServerSession>()
  readonly #budget = new ReplayBudget()

  constructor(options: TableOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#live.size
  }

  /** The copy of this process, whoever asks. */
  peek(id: string): ServerSession | undefined {
    return this.#live.get(id)
  }

  /** Another worker has changed the session: the next request reads it. */
  changedElsewhere(id: string): void {
    const session = this.#live.get(id)
    if (session) session.readAt = Number.NEGATIVE_INFINITY
  }

  /** Another worker has ended the session, with what backends have of it. */
  endedElsewhere(id: string): void {
    const session = this.#live.get(id)
    if (session) this.#remove(session, { gone: true })
  }

  all(): IterableIterator<ServerSession> {
    return this.#live.values()
  }

  /** Throws TOO_MANY_SESSIONS; rejects with SESSION_STORE_DOWN. */
  async open(facts: Omit<SessionFacts, 'id' | 'owner'>, caller: Caller): Promise<ServerSession> {
    this.#makeRoom()
    const session = new ServerSession(
      { ...facts, id: randomUUID(), owner: caller.key },
      caller,
      this.#budget,
      this.#options.elsewhere,
    )
    await this.#options.records?.create(session)
    this.#add(session)
    return session
  }

  /** Returns the session if the caller owns it. Rejects with SESSION_NOT_FOUND or SESSION_STORE_DOWN. */
  async find(id: string, caller: Caller): Promise<ServerSession> {
    const { records, now, ttlMs } = this.#options
    const session = records ? await this.#findShared(id, caller, records) : this.#live.get(id)
    if (session && !records && session.usedAt + ttlMs <= now() && session.idle) {
      this.#remove(session, { gone: true })
      throw new GatehouseError('SESSION_NOT_FOUND')
    }
    if (session?.facts.owner !== caller.key) throw new GatehouseError('SESSION_NOT_FOUND')
    session.sender = { ...session.sender, caller }
    session.usedAt = now()
    // The order of use is exact to the second. V8 rebuilds the table of a Map for nearly every entry that moves.
    if (session.usedAt >= session.movedAt + orderMs) {
      session.movedAt = session.usedAt
      this.#live.delete(id)
      this.#live.set(id, session)
    }
    return session
  }

  async #findShared(id: string, caller: Caller, records: SessionRecords): Promise<ServerSession | undefined> {
    const known = this.#live.get(id)
    if (known && this.#options.now() - known.readAt < (this.#options.freshMs ?? 0)) return known
    const readAt = this.#options.now()
    const record = await records.read(id)
    const live = this.#live.get(id)
    if (!record) {
      if (live) this.#remove(live, { gone: true })
      return undefined
    }
    if (record.facts.owner !== caller.key) return undefined
    if (live) {
      live.adopt(record)
      live.readAt = readAt
      return live
    }
    this.#makeRoom()
    const session = new ServerSession(record.facts, caller, this.#budget, this.#options.elsewhere)
    session.adopt(record)
    session.restored = true
    session.readAt = readAt
    // Another request may have restored it meanwhile.
    const raced = this.#live.get(id)
    if (raced) return raced
    this.#add(session)
    return session
  }

  #add(session: ServerSession): void {
    session.usedAt = this.#options.now()
    session.openedAt = session.usedAt
    session.movedAt = session.usedAt
    session.openedAt = session.usedAt
    const save = () => void this.save(session)
    session.onChange = save
    this.#live.set(session.id, session)
  }

  /** Ends a session for good. Rejects with SESSION_NOT_FOUND or SESSION_STORE_DOWN. */
  async end(id: string, caller: Caller): Promise<void> {
    const session = await this.find(id, caller)
    await this.#options.records?.remove(id)
    this.#remove(session, { gone: true })
    await this.#options.elsewhere?.ended(id)
  }

  /** Keeps what changed in a session for other replicas; a store that is down is told later or not at all. */
  async save(session: ServerSession): Promise<void> {
    try {
      await this.#options.records?.update(session)
      session.elsewhere?.changed(session.id)
    } catch (error) {
      this.#options.events.emit('session_unsaved', { err: error })
    }
  }

  #remove(session: ServerSession, { gone }: { readonly gone: boolean }): void {
    if (!this.#live.delete(session.id)) return
    session.end(new GatehouseError('SESSION_NOT_FOUND'))
    this.#options.onEnd(session, { gone })
  }

  #makeRoom(): void {
    if (this.#live.size < this.#options.maxSessions) return
    const before = this.#options.now() - graceMs
    for (const session of this.#live.values()) {
      if (!session.idle || session.usedAt > before) continue
      this.#remove(session, { gone: this.#options.records === undefined })
      return
    }
    throw new GatehouseError('TOO_MANY_SESSIONS')
  }

  /** Ends what has been idle too long. */
  evict(): void {
    const before = this.#options.now() - this.#options.ttlMs
    for (const session of this.#live.values()) {
      if (!session.idle) void this.#options.records?.keep(session.id).catch(() => {})
      // A shared session may be in use on another replica; the store knows when its life is over.
      if (session.idle && session.usedAt <= before)
        this.#remove(session, { gone: this.#options.records === undefined })
    }
  }

  /** Ends every session of this process; shared ones go on elsewhere. */
  close(): void {
    for (const session of this.#live.values())
      this.#remove(session, { gone: this.#options.records === undefined })
  }
}
