/**
 * Connections for clients without a session. A request that accepts questions or asks for log messages has exclusive
 * use of its connection while it runs. Messages that the backend sends outside the response stream can therefore belong
 * only to that request.
 *
 * A connection returns to the pool only for the same key (identity and capabilities), and only if no request or
 * question is still open. After a cancelled, timed-out or failed request, the backend may still be working on behalf of
 * the earlier user. Such a connection does not serve any other request. The connection stays open for a while, because
 * the backend's questions must receive an error, and is then closed.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Sender } from '../transport/target.ts'

/** Maximum number of connections, in use or idle. */
const maxPooled = 256
/** Maximum number of open connections that no longer serve requests. */
const maxSpent = 64

export interface PooledConnection {
  readonly connection: {
    readonly inFlightCount: number
    readonly isSpent: boolean
    close(sender: Sender, options: { readonly end: boolean }): Promise<void>
  }
  readonly sender: Sender
  readonly usedAt: number
  /** Number of requests that the connection has served, including the current one. */
  uses: number
}

/** The user of a pooled connection. */
export interface PoolUser {
  /** Key that contains the user's identity and capabilities. */
  readonly key: string
  /**
   * False if callers with this key cannot be distinguished (no authentication). Any request may then come from a
   * different user.
   */
  readonly isIdentified: boolean
}

export class Pool<C extends PooledConnection> {
  readonly #idle = new Map<string, C[]>()
  readonly #spent = new Set<C>()
  #inUse = 0
  #idleCount = 0
  /**
   * True if the backend sends questions or log messages outside the response stream. Such messages do not identify a
   * request.
   */
  #sendsOutsideStream: boolean

  /** `sendsOutsideStream` is true for transports without response streams. */
  constructor({ sendsOutsideStream }: { readonly sendsOutsideStream: boolean }) {
    this.#sendsOutsideStream = sendsOutsideStream
  }

  /** Returns a connection for one request at a time. Throws BACKEND_UNAVAILABLE if there are too many connections. */
  take({ key }: PoolUser, make: () => C): C {
    const managed = this.#popIdle(key) ?? this.#makeNew(make)
    managed.uses++
    this.#inUse++
    return managed
  }

  #popIdle(key: string): C | undefined {
    const list = this.#idle.get(key)
    const managed = list?.pop()
    if (!list || !managed) return undefined
    if (list.length === 0) this.#idle.delete(key)
    this.#idleCount--
    return managed
  }

  #makeNew(make: () => C): C {
    if (this.#inUse + this.#idleCount >= maxPooled && !this.#closeOldestIdle())
      throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many calls at once' })
    return make()
  }

  #closeOldestIdle(): boolean {
    let oldest: C | undefined
    for (const [first] of this.#idle.values())
      if (first && first.usedAt < (oldest?.usedAt ?? Number.POSITIVE_INFINITY)) oldest = first
    if (!oldest) return false
    this.#dropIdle((managed) => managed === oldest)
    return true
  }

  #dropIdle(isDropped: (managed: C) => boolean): void {
    for (const [key, list] of this.#idle) {
      const kept = list.filter((managed) => !isDropped(managed))
      for (const managed of list) if (!kept.includes(managed)) close(managed)
      this.#idleCount -= list.length - kept.length
      if (kept.length === 0) this.#idle.delete(key)
      else this.#idle.set(key, kept)
    }
  }

  takeBack({ key, isIdentified }: PoolUser, managed: C): void {
    this.#inUse--
    if (managed.connection.isSpent || (!isIdentified && this.#sendsOutsideStream)) {
      this.spend(managed)
      return
    }
    this.#idleCount++
    const list = this.#idle.get(key)
    if (list) list.push(managed)
    else this.#idle.set(key, [managed])
  }

  /** Keeps a connection that no longer serves requests, and closes it later. */
  spend(managed: C): void {
    this.#spent.add(managed)
    if (this.#spent.size <= maxSpent) return
    const [oldest] = this.#spent
    if (!oldest) return
    this.#spent.delete(oldest)
    close(oldest)
  }

  /**
   * Records that the backend sent a message that may belong to an earlier user of the connection. After that, a
   * connection for callers that cannot be distinguished serves only one request.
   */
  noteOutsideStream(): void {
    this.#sendsOutsideStream = true
  }

  /** Closes connections that have not been used since `before`. */
  evict(before: number): void {
    this.#dropIdle(({ usedAt }) => usedAt <= before)
    for (const managed of this.#spent) {
      if (managed.usedAt > before || managed.connection.inFlightCount > 0) continue
      this.#spent.delete(managed)
      close(managed)
    }
  }

  /** Removes and returns every idle connection. */
  dropAll(): C[] {
    const all = [...[...this.#idle.values()].flat(), ...this.#spent]
    this.#idle.clear()
    this.#spent.clear()
    this.#idleCount = 0
    return all
  }
}

function close({ connection, sender }: PooledConnection): void {
  void connection.close(sender, { end: true })
}
