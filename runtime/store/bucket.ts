/**
 * Arithmetic for a refilling token bucket, without a clock or storage.
 *
 * scripts.ts implements the same arithmetic in Lua, and shared contract tests check that the two agree.
 * Source: docs/reference/specification/virtual-server.md#rateLimiting, rateLimiting.
 */
import type { Bucket, BucketResult } from './store.ts'

export interface Level {
  readonly tokens: number
  /** Milliseconds since the epoch at which the bucket contained `tokens`. */
  readonly atMs: number
}

/** Returns the current number of tokens in the bucket. A clock that was set back adds no tokens. */
export function levelAt(bucket: Bucket, last: Level | undefined, nowMs: number): number {
  if (!last) return bucket.capacity
  const gained = (Math.max(0, nowMs - last.atMs) * bucket.capacity) / bucket.refillMs
  return Math.min(bucket.capacity, last.tokens + gained)
}

/** Returns the milliseconds until `cost` tokens are available. */
function waitMs(bucket: Bucket, tokens: number, cost: number): number {
  // The small term prevents rounding noise from adding a whole millisecond.
  return Math.ceil(((cost - tokens) * bucket.refillMs) / bucket.capacity - 1e-6)
}

/** Decides for all buckets at once: grants the request only when every bucket has enough tokens. */
export function decideBuckets(
  buckets: readonly Bucket[],
  tokens: readonly number[],
  cost: number,
): BucketResult {
  let retryAfterMs = 0
  let refusedBy: string | undefined
  for (const [index, bucket] of buckets.entries()) {
    const have = tokens[index] ?? 0
    if (have >= cost) continue
    const wait = Math.max(1, waitMs(bucket, have, cost))
    if (wait > retryAfterMs) {
      retryAfterMs = wait
      refusedBy = bucket.key
    }
  }
  return { ok: refusedBy === undefined, retryAfterMs, refusedBy }
}
