/**
 * How often strangers may do what costs this server something, in one table.
 *
 * Buckets are in the store, so replicas share them. A caller's own bucket and the server's bucket are taken together or
 * not at all: a refused stranger leaves no trace, so keys cannot be grown without being served.
 * Per caller is generous, because behind a proxy that the host does not trust everybody is one caller.
 * Pending requests and unused registrations are bounded by "so many per lifetime" rather than by counting.
 */
import { isIPv6 } from 'node:net'
import type { Bucket, Store } from '../store/index.ts'
import { OAuthError } from './endpoints/oauth-error.ts'
import { hashed } from './tokens/opaque.ts'

const minute = 60_000
const day = 86_400_000

/** Life of a registration that was never used, and of a login that was begun. */
export const unusedClientMs = day
export const usedClientMs = 30 * day
export const loginMs = 10 * minute

interface Limit {
  readonly perCaller: { readonly capacity: number; readonly refillMs: number }
  /** Of the whole server; bounds what is stored. */
  readonly total: { readonly capacity: number; readonly refillMs: number }
}

export const limits = {
  authorize: {
    perCaller: { capacity: 300, refillMs: minute },
    total: { capacity: 10_000, refillMs: loginMs },
  },
  register: { perCaller: { capacity: 30, refillMs: minute }, total: { capacity: 5_000, refillMs: day } },
  /** Fetches of metadata documents, by the host that is asked. */
  document: { perCaller: { capacity: 10, refillMs: minute }, total: { capacity: 300, refillMs: minute } },
} as const satisfies Record<string, Limit>

export type LimitName = keyof typeof limits

/** One address; of IPv6 the network that one household or server gets. */
export function callerKey(address: string): string {
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (!isIPv6(bare)) return bare
  const [head = ''] = bare.split('%')
  const full = head.includes('::') ? expand(head) : head.split(':')
  return full.slice(0, 4).join(':')
}

function expand(address: string): readonly string[] {
  const [left = '', right = ''] = address.split('::')
  const start = left === '' ? [] : left.split(':')
  const end = right === '' ? [] : right.split(':')
  const gap = Math.max(0, 8 - start.length - end.length)
  return [...start, ...Array.from({ length: gap }, () => '0'), ...end]
}

/** Takes one permission. Returns the wait in milliseconds when refused, else 0. */
export async function take(store: Store, name: LimitName, caller: string): Promise<number> {
  const { perCaller, total } = limits[name]
  const buckets: readonly Bucket[] = [
    { key: `limit:${name}:${hashed(caller)}`, ...perCaller },
    { key: `limit:${name}`, ...total },
  ]
  return (await store.takeTokens(buckets)).retryAfterMs
}

/** As `take`, refusing with 429 and Retry-After. */
export async function limit(store: Store, name: LimitName, caller: string): Promise<void> {
  const waitMs = await take(store, name, callerKey(caller))
  if (waitMs === 0) return
  throw new OAuthError('temporarily_unavailable', 'too many requests; try again later', {
    status: 429,
    headers: { 'Retry-After': String(Math.ceil(waitMs / 1000)) },
  })
}
