/**
 * The interface of all state that outlives a request: sessions, authorization codes, refresh families, upstream tokens,
 * rate-limit buckets.
 *
 * Keys and values are strings. Every method either returns a definite result or throws a GatehouseError. The error
 * `STORE_DOWN` means that the server is unreachable or did not respond in time; a write may or may not have taken
 * effect. The error `STORE_FULL` means that a cap was reached and nothing was written. The store never evicts entries
 * to make space, because losing a "used" marker would be a security hole. Every read treats expired entries as absent.
 *
 * Encryption is in sealed.ts, and locks are in lock.ts.
 * Source: docs/reference/specification/external-auth.md#storage, storage;
 * docs/reference/specification/virtual-server.md#sessionStorage, sessionStorage and rateLimiting.
 */

/** A value with its version, for `swap`. */
export interface StoreEntry {
  readonly value: string
  /** Opaque version. An equal version means that the value is unchanged. */
  readonly version: string
}

export interface SetOptions {
  /** Lifetime of the entry in milliseconds, at least 1. Without a lifetime, the entry stays until it is deleted. */
  readonly ttlMs?: number
  /** Writes only when the key is absent, or only when the key is present. */
  readonly onlyIf?: 'absent' | 'present'
  /**
   * True for writes that untrusted clients can cause. If the store has a cap, such writes cannot use the last quarter
   * of its capacity.
   */
  readonly yields?: boolean
}

/** A token bucket that starts full and refills continuously at `capacity` tokens per `refillMs`. */
export interface Bucket {
  readonly key: string
  readonly capacity: number
  /** Milliseconds that an empty bucket takes to fill. The key expires after twice this time. */
  readonly refillMs: number
}

export interface BucketResult {
  readonly ok: boolean
  /** Milliseconds until the same request would be granted, rounded up; 0 when granted. */
  readonly retryAfterMs: number
  /** Key of the bucket with the longest wait; undefined when granted. */
  readonly refusedBy: string | undefined
}

/** A sum that grows until its key expires. */
export interface Counter {
  readonly key: string
  /**
   * Amount to add; must be an integer. A negative amount subtracts: the sum stops at 0, and an expired sum is not
   * recreated.
   */
  readonly add: number
  /**
   * Limit that the sum must not exceed. When the sum has reached the limit, further additions are rejected. Undefined
   * means no limit.
   */
  readonly limit?: number | undefined
  /** New lifetime of the sum in milliseconds. */
  readonly ttlMs: number
  /** True for writes that untrusted clients can cause; see `SetOptions.yields`. */
  readonly yields?: boolean | undefined
}

export interface CountResult {
  /** False when a sum would have exceeded its limit. No counter was changed in that case. */
  readonly ok: boolean
  /** The sums in the order of the counters: after the addition, or the current sums when rejected. */
  readonly sums: readonly number[]
}

export interface Store {
  /** Replicas share `redis`, which survives restarts; `memory` is neither shared nor persistent. */
  readonly kind: 'memory' | 'redis'
  get(key: string): Promise<string | undefined>
  /** Reads a value and its version, which a later `swap` compares. */
  read(key: string): Promise<StoreEntry | undefined>
  /** Returns false when `onlyIf` did not hold and nothing was written. */
  set(key: string, value: string, options?: SetOptions): Promise<boolean>
  /** Reads and deletes atomically: exactly one of several concurrent callers receives the value. */
  take(key: string): Promise<string | undefined>
  /** Returns true when an entry was deleted. */
  delete(key: string): Promise<boolean>
  /** Sets the remaining lifetime to `ttlMs`. Returns false when the entry is absent. */
  touch(key: string, ttlMs: number): Promise<boolean>
  /**
   * Compare and set: writes `next` only if the entry is unchanged since `seen` (`undefined`: still absent). If `next` is undefined, the entry is deleted. Without `ttlMs`, the lifetime is unchanged. Returns false when another caller changed
   * the entry.
   */
  swap(key: string, seen: StoreEntry | undefined, next: string | undefined, ttlMs?: number): Promise<boolean>
  /** Takes `cost` (default 1) tokens from every bucket, or from no bucket when a bucket has too few tokens. */
  takeTokens(buckets: readonly Bucket[], cost?: number): Promise<BucketResult>
  /**
   * Adds to every counter, or to no counter when a counter would exceed its limit. Sums are capped at 9e15. Keys must
   * differ.
   */
  count(counters: readonly Counter[]): Promise<CountResult>
  /**
   * Returns the keys in pages; the work for each page is bounded. Pages may be empty, and a key may appear twice. A key
   * that exists during the whole scan is returned; a key that is written or deleted during the scan may or may not be
   * returned.
   */
  scan(): AsyncIterable<readonly string[]>
  /** Returns a view of the store that prefixes every key. Closing a view has no effect; close the root. */
  namespace(prefix: string): Store
  /** Resolves when the store responds; otherwise throws `STORE_DOWN`. Readiness probes call this method. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Rejects an invalid ttl, which is a programming error, in the same way for all implementations. */
export function checkTtl(ttlMs: number | undefined): void {
  if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs >= 1)) {
    throw new RangeError(`ttlMs must be a whole number of at least 1, got ${ttlMs}`)
  }
}

/** Rejects buckets that could never grant the request. */
export function checkBuckets(buckets: readonly Bucket[], cost: number): void {
  for (const { key, capacity, refillMs } of buckets) {
    if (!(capacity >= cost && refillMs > 0 && cost > 0)) {
      throw new RangeError(`bucket ${key}: capacity ${capacity}, refillMs ${refillMs}, cost ${cost}`)
    }
  }
}

/** Rejects counters that would lose precision. */
export function checkCounters(counters: readonly Counter[]): void {
  for (const { key, add, limit = 0, ttlMs } of counters) {
    checkTtl(ttlMs)
    if (!Number.isSafeInteger(add) || !Number.isSafeInteger(limit) || limit < 0)
      throw new RangeError(`counter ${key}: add ${add}, limit ${limit}`)
  }
}

/** Largest sum, far enough below 2^53 to allow for the Redis client's rounding error when it reads a number. */
const largestSum = 9e15

/** Returns the new sum; undefined when the sum would exceed the limit. */
export function addToSum({ add, limit }: Counter, sum: number): number | undefined {
  if (limit !== undefined && add >= 0 && (sum + add > limit || sum >= limit)) return undefined
  return Math.min(largestSum, Math.max(0, sum + add))
}
