/**
 * The one interface behind which all state that must outlive a request is stored: sessions, authorization codes, refresh
 * families, upstream tokens, rate-limit buckets.
 *
 * Keys and values are strings. Every method either gives a definite answer or throws a GatehouseError:
 * `STORE_DOWN` (the server cannot be reached or did not answer in time: whether a write took effect is then unknown)
 * or `STORE_FULL` (a cap was reached; nothing was written). Nothing is ever evicted to make space, because a forgotten
 * "used" mark would be a security hole. Expired entries are absent on every read.
 *
 * Not here: encryption (sealed.ts), locks (lock.ts), what the values mean.
 * Source: docs/reference/specification/external-auth.md#storage, storage; docs/reference/specification/virtual-server.md#sessionStorage, sessionStorage and rateLimiting.
 */

/** A value together with the version it was read at, to be handed back to `swap`. */
export interface StoreEntry {
  readonly value: string
  /** Opaque; equal versions mean that the value is still the one that was read. */
  readonly version: string
}

export interface SetOptions {
  /** Life of the entry in milliseconds; at least 1. Absent: the entry stays until it is deleted. */
  readonly ttlMs?: number
  /** Write only when the key is absent, or only when it is present. */
  readonly onlyIf?: 'absent' | 'present'
  /** For what untrusted clients can make the caller write: where a store has a cap, such writes leave its last quarter to others. */
  readonly yields?: boolean
}

/** A refilling token bucket: full at first, refilled continuously at `capacity` tokens per `refillMs`. */
export interface Bucket {
  readonly key: string
  readonly capacity: number
  /** Time in which an empty bucket becomes full, milliseconds. The key lives twice as long. */
  readonly refillMs: number
}

export interface BucketResult {
  readonly ok: boolean
  /** When refused: how long until the same request would be granted, milliseconds, rounded up. Otherwise 0. */
  readonly retryAfterMs: number
  /** When refused: the key of the bucket that needs the longest wait. */
  readonly refusedBy: string | undefined
}

/** A sum that grows until its key ends. */
export interface Counter {
  readonly key: string
  /** Whole number. Less than 0 takes back: the sum ends at 0, and a sum that is gone stays gone. */
  readonly add: number
  /** The sum must not pass it, and nothing is added to one that has reached it. Undefined: as high as it likes. */
  readonly limit?: number | undefined
  /** Life of the sum from now on, milliseconds. */
  readonly ttlMs: number
  /** As `SetOptions.yields`. */
  readonly yields?: boolean | undefined
}

export interface CountResult {
  /** False: one of the sums would have passed its limit, and nothing was added to any. */
  readonly ok: boolean
  /** In the order of the counters: after the addition, or as they stand when it was refused. */
  readonly sums: readonly number[]
}

export interface Store {
  /** `redis` is shared by replicas and survives a restart, `memory` neither. */
  readonly kind: 'memory' | 'redis'
  get(key: string): Promise<string | undefined>
  /** As `get`, with the version for a later `swap`. */
  read(key: string): Promise<StoreEntry | undefined>
  /** Returns false when `onlyIf` was not met; then nothing was written. */
  set(key: string, value: string, options?: SetOptions): Promise<boolean>
  /** Reads and deletes in one step: of many takers exactly one gets the value. */
  take(key: string): Promise<string | undefined>
  /** Returns whether there was something to delete. */
  delete(key: string): Promise<boolean>
  /** Gives the entry `ttlMs` more from now. Returns false when it is absent. */
  touch(key: string, ttlMs: number): Promise<boolean>
  /**
   * Compare and set: writes `next` only if the entry is still the one that was seen (`undefined`: still absent).
   * `next` undefined deletes. Without `ttlMs` the remaining life stays. Returns false when another was faster.
   */
  swap(key: string, seen: StoreEntry | undefined, next: string | undefined, ttlMs?: number): Promise<boolean>
  /** Takes `cost` (default 1) tokens from every bucket, or from none when one of them cannot give. */
  takeTokens(buckets: readonly Bucket[], cost?: number): Promise<BucketResult>
  /** Adds to every counter, or to none when one of them has no space. Sums end at 9e15. Keys must differ. */
  count(counters: readonly Counter[]): Promise<CountResult>
  /**
   * The keys, page by page, each page after a bounded amount of work; pages may be empty and a key may come twice. A key
   * that is there from the beginning to the end comes; one that is written or deleted meanwhile may or may not.
   */
  scan(): AsyncIterable<readonly string[]>
  /** The same store with every key prefixed. Closing it does nothing; close the root. */
  namespace(prefix: string): Store
  /** Resolves when the store answers; throws `STORE_DOWN` otherwise. For readiness probes. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Refuses what would be a programming error on every implementation alike. */
export function checkTtl(ttlMs: number | undefined): void {
  if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs >= 1)) {
    throw new RangeError(`ttlMs must be a whole number of at least 1, got ${ttlMs}`)
  }
}

/** Refuses buckets that could never grant the request. */
export function checkBuckets(buckets: readonly Bucket[], cost: number): void {
  for (const { key, capacity, refillMs } of buckets) {
    if (!(capacity >= cost && refillMs > 0 && cost > 0)) {
      throw new RangeError(`bucket ${key}: capacity ${capacity}, refillMs ${refillMs}, cost ${cost}`)
    }
  }
}

/** Refuses counters that would lose what they count. */
export function checkCounters(counters: readonly Counter[]): void {
  for (const { key, add, limit = 0, ttlMs } of counters) {
    checkTtl(ttlMs)
    if (!Number.isSafeInteger(add) || !Number.isSafeInteger(limit) || limit < 0)
      throw new RangeError(`counter ${key}: add ${add}, limit ${limit}`)
  }
}

/** Below 2^53 by more than the Redis client loses when it reads a number. */
const largestSum = 9e15

/** What a sum becomes; undefined: there is no space for what is added. */
export function summed({ add, limit }: Counter, sum: number): number | undefined {
  if (limit !== undefined && add >= 0 && (sum + add > limit || sum >= limit)) return undefined
  return Math.min(largestSum, Math.max(0, sum + add))
}
