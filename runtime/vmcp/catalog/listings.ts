/**
 * Caches one backend's listings for each kind of client, because a backend may offer different items to different
 * clients. Clients are of the same kind if they declare the same capabilities and, if the lists depend on credentials,
 * use the same credentials.
 *
 * There is one read at a time for each key, and concurrent callers share this read. A listing is valid until the
 * backend announces a change, or for a limited time. If a listing cannot be reread, the last good listing stays in use
 * and is marked as stale. A failed read is cached briefly, so a dead backend does not delay every request.
 */
import type { Events } from '../../observe/index.ts'
import type { Backend } from '../backends/backend.ts'
import { ListingKeys } from './lists/listing-keys.ts'
import type { SessionScope } from '../backends/session-era/connections.ts'
import type { Clock } from '../model/time/clock.ts'
import type { OperationClient, ClientAbilities } from '../model/session.ts'
import { AnnouncedChanges } from './changes/announced-changes.ts'
import { type CachedListing, emptyCachedListing, failedForAnother } from './lists/cached-listing.ts'
import { ListDefectReports } from './lists/list-defects.ts'
import { type ListsState, ListReadReports } from './lists/list-read-reports.ts'
import {
  announcedMs,
  hasFailedLists,
  hasStaleLists,
  isSlowToRepair,
  lifetimeOf,
  type Listing,
  readListing,
  unannouncedMs,
} from './listing.ts'
import type { ItemKind } from '../model/catalog/entries.ts'
import { asError, isConnectionClosed, isRefusal } from './read-failure.ts'
import { sameInstructions, sameItems, sameServer } from './lists/same-listing.ts'

const maxKeys = 1_024
/** Time for which a failure is cached. */
const failureMs = 2_000
const brandNewMs = 1_000

/** Limits for the pauses between attempts to read a failed list. */
const firstRetryMs = 2_000
const maxRetryMs = 30_000
const maxRetries = 20
/** Maximum number of reads with other credentials for which one request waits. */
const maxRounds = 8

export interface ListingsOptions {
  readonly events: Events
  readonly clock: Clock
  /** Called when a listing has been read, or when a listing could not be reread. */
  readonly onRead: (listing: Listing | undefined, before: Listing | undefined) => void
  /** Called when the result of `get` may have changed. */
  readonly onState: () => void
  /** Called when a listing is no longer in use. */
  readonly onDropped: (listing: Listing) => void
  /** Compares a new listing with the approved items. Resolves to false if the listing should be reread soon. */
  readonly ready?: (listing: Listing) => Promise<boolean>
}

export interface ViewOptions {
  /** True if the caller waits for a new listing when the cached listing is out of date. */
  readonly waitForFresh: boolean
  /** True if the caller waits for a new listing after the backend has announced a change. */
  readonly waitForAnnounced?: boolean
}

export class Listings {
  /** Handles changes that the backend announces. */
  readonly changes: AnnouncedChanges
  readonly #backend: Backend
  readonly #options: ListingsOptions
  /** Cached listings in order of last use. */
  readonly #cached = new Map<string, CachedListing>()
  readonly keys: ListingKeys
  readonly #readReports: ListReadReports
  readonly #defects: ListDefectReports
  /** Undeclared lists that the backend does not have. */
  readonly #absent = new Set<ItemKind>()
  /** Listings that are valid only for as long as a failure is cached. */
  readonly #provisional = new WeakSet<Listing>()
  #closed = false

  constructor(backend: Backend, options: ListingsOptions) {
    this.#backend = backend
    this.keys = new ListingKeys(backend.settings)
    this.#options = options
    this.#readReports = new ListReadReports(backend.settings, options.events)
    this.#defects = new ListDefectReports(backend.name, options.events)
    this.changes = new AnnouncedChanges(backend, this, options)
  }

  /** Returns equal keys for clients that see the same listing. */
  keyOf(client: OperationClient): string {
    return this.keys.keyOf(client, this.#abilitiesOf(client).signature)
  }

  /** Returns the capabilities for a client's lists; only the basic capabilities if too many combinations are new. */
  #abilitiesOf(client: OperationClient): ClientAbilities {
    const { abilities } = client
    if (!abilities.plain || this.keys.forkOf(client) !== undefined) return abilities
    const isKnown = this.#cached.has(this.keys.keyOf(client, abilities.signature))
    return isKnown || this.#backend.newClients.hasCapacity ? abilities : abilities.plain
  }

  hasFork(scope: SessionScope): boolean {
    return this.keys.hasFork(scope)
  }

  /** Returns the time until which the result of `get` remains valid, unless `onState` is called earlier. */
  freshUntil(client: OperationClient): number {
    return this.#cached.get(this.keyOf(client))?.freshUntil ?? 0
  }

  /** Returns the cached listing without querying the backend. */
  peek(client: OperationClient): Listing | undefined {
    return this.#cached.get(this.keyOf(client))?.listing
  }

  /** Returns the error from the last read for a client, or undefined if that read succeeded. */
  failureOf(client: OperationClient): Error | undefined {
    return this.#cached.get(this.keyOf(client))?.failure
  }

  /** Returns the worst state of all keys. */
  get state(): ListsState {
    let staleSince: number | undefined
    let [repaired, leftOut] = [0, 0]
    for (const { listing, staleSince: since } of this.#cached.values()) {
      if (since !== undefined && since < (staleSince ?? Number.POSITIVE_INFINITY)) staleSince = since
      repaired = Math.max(repaired, listing?.violations.repaired ?? 0)
      leftOut = Math.max(leftOut, listing?.violations.leftOut ?? 0)
    }
    return { staleSince, repaired, leftOut }
  }

  /**
   * Returns the listing for a client. With `waitForFresh`, waits for a new listing if the cached listing is out of
   * date. Without `waitForFresh`, returns the cached listing and renews that listing in the background. Rejects with
   * BACKEND_* errors.
   */
  async get(
    client: OperationClient,
    { waitForFresh, waitForAnnounced = false }: ViewOptions,
  ): Promise<Listing> {
    for (let round = 0; ; round++) {
      const abilities = this.#abilitiesOf(client)
      const key = this.keys.keyOf(client, abilities.signature)
      if (abilities.plain && !this.#cached.has(key)) this.#backend.newClients.take()
      const cached = this.#getOrCreate(key)
      const credential = this.keys.credentialOf(client)
      if (cached.freshUntil > this.#options.clock.now()) {
        if (cached.listing) return cached.listing
        if (cached.failure && !failedForAnother(cached, credential)) throw cached.failure
      }
      const waits = waitForFresh || (waitForAnnounced && cached.freshUntil === 0)
      const reading = this.#read(key, cached, { ...client, abilities })
      // A list that has just failed could be slow again. If an earlier listing exists, do not wait for the list.
      if (cached.listing && (!waits || cached.failure || isSlowToRepair(cached.listing))) {
        reading.catch(() => {})
        return cached.listing
      }
      const listing = await reading.catch((error: unknown) => {
        // The client's own token may be valid, or the backend may have recovered during the read.
        if (failedForAnother(cached, credential) && round < maxRounds) return undefined
        if (cached.freshUntil === 0 && round === 0 && this.#backend.isAvailable) return undefined
        throw error
      })
      if (!listing) continue
      // If another change arrived during the read, read once more. Limit the number of repeated reads.
      if (cached.freshUntil > 0 || round > 1) return this.#rejoinShared(client, key, listing)
    }
  }

  /** Switches a session back to the shared listing when the session's separate listing has the same content. */
  #rejoinShared(client: OperationClient, key: string, listing: Listing): Listing {
    const { session } = client
    if (!session || key !== this.keys.forkOf(client)) return listing
    const shared = this.#cached.get(this.keyOf({ ...client, session: undefined }))
    if (
      !shared?.listing ||
      shared.freshUntil <= this.#options.clock.now() ||
      !sameItems(shared.listing, listing)
    )
      return listing
    this.unfork(session.id)
    return shared.listing
  }

  /** Drops the state of a session that has ended. */
  endSession(sessionId: string): void {
    this.changes.forget(sessionId)
    this.unfork(sessionId)
  }

  /**
   * Creates separate lists for a session. The backend announced a change on the session's own connection, so the
   * backend may show different items to this session.
   */
  fork(scope: SessionScope): void {
    const key = this.keys.fork(scope)
    if (key !== undefined) this.expire(key)
  }

  unfork(sessionId: string): void {
    const own = this.keys.unfork(sessionId)
    for (const key of own) this.#drop(key)
    if (own.length > 0) this.#options.onState()
  }

  #drop(key: string): void {
    const cached = this.#cached.get(key)
    if (!cached) return
    cached.cancelRetry?.()
    this.#cached.delete(key)
    this.#reportUnused(cached.listing)
    this.#reportDefects()
  }

  /** Reports a listing that is no longer in use. */
  #reportUnused(listing: Listing | undefined): void {
    if (!listing) return
    for (const cached of this.#cached.values()) if (cached.listing === listing) return
    this.#options.onDropped(listing)
  }

  #getOrCreate(key: string): CachedListing {
    const known = this.#cached.get(key)
    if (known) {
      this.#cached.delete(key)
      this.#cached.set(key, known)
      return known
    }
    const cached = emptyCachedListing()
    this.#cached.set(key, cached)
    if (this.#cached.size > maxKeys) {
      const [oldest] = this.#cached.keys()
      if (oldest !== undefined) this.#drop(oldest)
    }
    return cached
  }

  #read(key: string, cached: CachedListing, client: OperationClient): Promise<Listing> {
    if (!cached.reading) {
      cached.credential = this.keys.credentialOf(client)
      cached.isOutdated = false
      cached.cancelRetry?.()
      cached.reading = this.#readNow(key, client, cached.listing)
        .then(
          (listing) => this.#succeeded(key, cached, client, listing),
          (error: unknown) => this.#failed(key, cached, client, error),
        )
        .finally(() => {
          cached.reading = undefined
        })
    }
    return cached.reading
  }

  #succeeded(key: string, cached: CachedListing, client: OperationClient, listing: Listing): Listing {
    const before = cached.listing
    // A listing with equal content is replaced by the existing object, so the content is not merged or stored again.
    const present = this.#equalTo(listing, before) ?? listing
    cached.listing = present
    cached.failure = undefined
    cached.staleSince = hasStaleLists(listing) ? (cached.staleSince ?? this.#options.clock.now()) : undefined
    this.#readReports.read(listing.violations, this.state)
    let goodForMs = this.#provisional.has(listing) ? failureMs : lifetimeOf(listing)
    if (hasFailedLists(listing)) goodForMs = this.#retryLater(key, cached, client)
    else cached.retries = 0
    cached.freshUntil = cached.isOutdated ? 0 : this.#options.clock.now() + goodForMs
    this.#reportDefects()
    this.#options.onState()
    if (present !== before) {
      this.#reportUnused(before)
      this.#options.onRead(present, before)
    }
    return present
  }

  /** Returns an existing listing with equal content: the previous listing, or a listing for another kind of client. */
  #equalTo(listing: Listing, before: Listing | undefined): Listing | undefined {
    if (before && sameItems(before, listing) && sameInstructions(before, listing)) return before
    for (const { listing: other } of this.#cached.values()) {
      if (other && sameItems(other, listing) && sameServer(other, listing)) return other
    }
    return undefined
  }

  /** Returns the last good listing if that listing can still be used. Otherwise throws the error. */
  #failed(key: string, cached: CachedListing, client: OperationClient, error: unknown): Listing {
    const { clock } = this.#options
    const before = cached.listing
    cached.failure = asError(error)
    cached.freshUntil = cached.isOutdated ? 0 : clock.now() + failureMs
    this.#retryLater(key, cached, client)
    if (before && !isRefusal(cached.failure)) {
      cached.staleSince ??= clock.now()
      this.#readReports.failed(error, this.state)
      this.#options.onState()
      return before
    }
    cached.listing = undefined
    cached.staleSince = undefined
    this.#readReports.failed(error, this.state)
    this.#reportDefects()
    this.#options.onState()
    if (before) {
      this.#reportUnused(before)
      this.#options.onRead(undefined, before)
    }
    throw cached.failure
  }

  /** Reports the defects of all listings in use. */
  #reportDefects(): void {
    this.#defects.report([...this.#cached.values()].flatMap(({ listing }) => listing?.defects ?? []))
  }

  /** Rereads the listing after a pause, so clients are notified when the backend recovers. Returns the pause. */
  #retryLater(key: string, cached: CachedListing, client: OperationClient): number {
    const pauseMs = Math.min(firstRetryMs * 2 ** cached.retries, maxRetryMs)
    if (this.#closed || cached.retries >= maxRetries || this.#cached.get(key) !== cached) return pauseMs
    cached.retries++
    cached.cancelRetry = this.#options.clock.after(pauseMs, () => {
      cached.cancelRetry = undefined
      this.#read(key, cached, client).catch(() => {})
    })
    return pauseMs
  }

  /** Reads a listing. Retries once if Gatehouse closed the connection, because clients would otherwise miss tools. */
  async #readNow(key: string, client: OperationClient, before: Listing | undefined): Promise<Listing> {
    try {
      return await this.#readOnce(key, client, before)
    } catch (error) {
      if (!isConnectionClosed(error) || client.session?.isOver || this.#closed) throw error
      return this.#readOnce(key, client, before)
    }
  }

  async #readOnce(key: string, client: OperationClient, before: Listing | undefined): Promise<Listing> {
    const backend = this.#backend
    const { timeoutMs, name } = backend.settings
    const signal = AbortSignal.timeout(timeoutMs)
    const sender = { caller: client.caller, headers: client.headers }
    const capabilities = client.abilities.raw
    const own = this.keys.forkOf(client) !== undefined ? client.session : undefined
    const { connection, server } = await backend.listing(key, own, capabilities, sender, signal)
    const listing = await readListing({
      backend: name,
      perCaller: backend.settings.perCaller,
      sentHeaders: backend.settings.target.sentHeaders,
      connection,
      server,
      capabilities,
      sender,
      signal,
      timeoutMs,
      pins: backend.settings.pins,
      before,
      absent: this.#absent,
      observeRequest: (request, work) => backend.observeRequest(request, work),
    })
    if ((await this.#options.ready?.(listing)) === false) this.#provisional.add(listing)
    return listing
  }

  /** Returns the listings that clients see. Outdated listings are included only if no current listings exist. */
  all(): readonly Listing[] {
    const cached = [...this.#cached.values()].filter(({ listing }) => listing)
    const present = cached.filter(({ freshUntil }) => freshUntil > 0)
    return [...new Set((present.length > 0 ? present : cached).flatMap(({ listing }) => listing ?? []))]
  }

  /** Marks a client's listing as outdated, unless the backend announces changes or the listing was just read. */
  expireUnannounced(client: OperationClient): void {
    const cached = this.#cached.get(this.keyOf(client))
    if (!cached?.listing || hasFailedLists(cached.listing)) return
    if (lifetimeOf(cached.listing) === announcedMs) return
    const readAt = cached.freshUntil - unannouncedMs
    if (readAt + brandNewMs > this.#options.clock.now()) return
    cached.freshUntil = 0
    this.#options.onState()
  }

  /** Marks listings as out of date, either for one key or for all keys. */
  expire(key?: string): void {
    for (const [name, cached] of this.#cached) {
      if (key !== undefined && name !== key) continue
      cached.freshUntil = 0
      cached.isOutdated = true
    }
    this.#options.onState()
  }

  close(): void {
    this.#closed = true
    for (const cached of this.#cached.values()) cached.cancelRetry?.()
    this.changes.close()
  }
}
