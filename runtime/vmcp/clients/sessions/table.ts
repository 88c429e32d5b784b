/**
 * Opens, finds and ends the client sessions of this process. A session can be used only by its owner.
 *
 * The table is bounded. When the table is full, the session that has been idle longest is removed. If all sessions are
 * in use, new sessions are rejected. With a shared store (records), the table restores sessions that another replica
 * opened.
 * Source: docs/reference/specification/virtual-server.md#sessionStorage (sessionStorage); MCP 2025-11-25, "Session
 * Management".
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Caller } from '../../../net/index.ts'
import type { Events } from '../../../observe/index.ts'
import type { OtherWorkers } from './other-workers.ts'
import type { SessionRecords } from './records.ts'
import { ReplayBudget } from './replay.ts'
import { ServerSession, type SessionFacts } from './session.ts'

export interface TableOptions {
  readonly ttlMs: number
  readonly maxSessions: number
  readonly now: () => number
  /** Shared store. Undefined if sessions stay in this process. */
  readonly records: SessionRecords | undefined
  readonly events: Events
  /**
   * Time in milliseconds for which a copy remains valid without being reread from the store. Set if only other workers
   * can change sessions, because they report each change. If undefined, every request reads the store.
   */
  readonly freshMs?: number | undefined
  /** Other workers that have copies of the sessions. Undefined for a single process. */
  readonly otherWorkers?: OtherWorkers | undefined
  /** Called for each session that leaves this process. `gone` is false if another replica may resume the session. */
  readonly onEnd: (session: ServerSession, state: { readonly gone: boolean }) => void
}

const orderMs = 1_000
/** Minimum time in milliseconds for which a session must be idle before a new session may replace it. */
const graceMs = 60_000

export class SessionTable {
  readonly #options: TableOptions
  /** Sessions in order of last use, accurate to the second. */
  readonly #live = new Map<string, ServerSession>()
  readonly #budget = new ReplayBudget()

  constructor(options: TableOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#live.size
  }

  /** Returns this process's copy without checking the owner. */
  peek(id: string): ServerSession | undefined {
    return this.#live.get(id)
  }

  /** Called when another worker has changed the session. The next request reads the session from the store. */
  invalidate(id: string): void {
    const session = this.#live.get(id)
    if (session) session.readAt = Number.NEGATIVE_INFINITY
  }

  /** Called when another worker has ended the session and the session's backend sessions. */
  endCopy(id: string): void {
    const session = this.#live.get(id)
    if (session) this.#remove(session, { gone: true })
  }

  all(): IterableIterator<ServerSession> {
    return this.#live.values()
  }

  /** Opens a session. Rejects with TOO_MANY_SESSIONS or SESSION_STORE_DOWN. */
  async open(facts: Omit<SessionFacts, 'id' | 'owner'>, caller: Caller): Promise<ServerSession> {
    this.#makeRoom()
    const session = new ServerSession(
      { ...facts, id: randomUUID(), owner: caller.key },
      caller,
      this.#budget,
      this.#options.otherWorkers,
    )
    await this.#options.records?.create(session)
    this.#add(session)
    return session
  }

  /** Returns the session if the caller owns it. Rejects with SESSION_NOT_FOUND or SESSION_STORE_DOWN. */
  async find(id: string, caller: Caller): Promise<ServerSession> {
    const { records, now, ttlMs } = this.#options
    const session = records ? await this.#findShared(id, caller, records) : this.#live.get(id)
    if (session && !records && session.usedAt + ttlMs <= now() && session.isIdle) {
      this.#remove(session, { gone: true })
      throw new GatehouseError('SESSION_NOT_FOUND')
    }
    if (session?.facts.owner !== caller.key) throw new GatehouseError('SESSION_NOT_FOUND')
    session.usedAt = now()
    // The order of last use is accurate to the second. Moving entries more often would be slow, because V8 rebuilds a
    // Map's table for nearly every moved entry.
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
    const record = await records.read(id, known?.storedText)
    const live = this.#live.get(id)
    if (!record) {
      if (live) this.#remove(live, { gone: true })
      return undefined
    }
    if (record === 'unchanged') {
      // The session was removed from this process during the read.
      if (!live) return this.#findShared(id, caller, records)
      live.readAt = readAt
      return live
    }
    if (record.facts.owner !== caller.key) return undefined
    if (live) {
      live.applyChanges(record)
      live.storedText = record.text
      live.readAt = readAt
      return live
    }
    this.#makeRoom()
    const session = new ServerSession(record.facts, caller, this.#budget, this.#options.otherWorkers)
    session.applyChanges(record)
    session.storedText = record.text
    session.isRestored = true
    session.readAt = readAt
    // Another request may have restored the session in the meantime.
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

  /** Ends a session permanently. Rejects with SESSION_NOT_FOUND or SESSION_STORE_DOWN. */
  async end(id: string, caller: Caller): Promise<void> {
    const session = await this.find(id, caller)
    await this.#options.records?.remove(id)
    this.#remove(session, { gone: true })
    await this.#options.otherWorkers?.endCopies(id)
  }

  /** Stores a session's changes for other replicas. If the store is down, reports the failure and does not retry. */
  async save(session: ServerSession): Promise<void> {
    try {
      await this.#options.records?.update(session)
      // The session no longer matches this text. Another replica may store the same text again.
      session.storedText = undefined
      session.otherWorkers?.invalidateCopies(session.id)
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
      if (!session.isIdle || session.usedAt > before) continue
      this.#remove(session, { gone: this.#options.records === undefined })
      return
    }
    throw new GatehouseError('TOO_MANY_SESSIONS')
  }

  /** Ends sessions that have been idle for too long. Renews the stored lifetime of sessions in use. */
  evict(): void {
    const before = this.#options.now() - this.#options.ttlMs
    for (const session of this.#live.values()) {
      if (!session.isIdle) void this.#options.records?.keep(session.id).catch(() => {})
      // A shared session may be in use on another replica. The store decides when the session expires.
      if (session.isIdle && session.usedAt <= before)
        this.#remove(session, { gone: this.#options.records === undefined })
    }
  }

  /** Ends every session of this process. Other replicas can resume shared sessions. */
  close(): void {
    for (const session of this.#live.values())
      this.#remove(session, { gone: this.#options.records === undefined })
  }
}
