/**
 * How often untrusted clients may do what costs this server something, in one table.
 *
 * Buckets are in the store, so replicas share them. A caller's own buckets and the server's are taken together or
 * not at all: a refused untrusted client leaves no trace, so keys cannot be grown without being served.
 * Per caller is generous, because behind a proxy that was not named everybody is one caller (client-address.ts).
 * Pending requests and unused registrations are bounded by "so many per lifetime" rather than by counting. A bucket that
 * refills in a lifetime lets twice its capacity through in the first one: a burst, and what is refilled meanwhile.
 */
import { isIPv6 } from 'node:net'
import type { Bucket, Store } from '../../store/index.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { sha256 } from '../model/identifiers.ts'

const minute = 60_000
const day = 86_400_000

/** Life of a registration that was never used, and of a login that was begun. */
export const unusedClientMs = day
export const usedClientMs = 30 * day
export const loginMs = 10 * minute

interface Rate {
  readonly capacity: number
  readonly refillMs: number
}

interface Limit {
  /** Nobody alone can use up what is there for all. */
  readonly caller: readonly Rate[]
  /** Of the host that is asked, where one is. */
  readonly host?: readonly Rate[]
  /** Of the whole server; bounds what is stored. */
  readonly total: readonly Rate[]
}

export const limits = {
  authorize: {
    caller: [
      { capacity: 300, refillMs: minute },
      { capacity: 1_000, refillMs: loginMs },
    ],
    // At most 10 000 logins in flight.
    total: [{ capacity: 5_000, refillMs: loginMs }],
  },
  register: {
    caller: [
      { capacity: 30, refillMs: minute },
      { capacity: 600, refillMs: day },
    ],
    // At most 5 000 unused registrations; an update counts like one.
    total: [{ capacity: 2_500, refillMs: day }],
  },
  /** Fetches of metadata documents. */
  document: {
    caller: [{ capacity: 30, refillMs: minute }],
    host: [{ capacity: 10, refillMs: minute }],
    total: [{ capacity: 300, refillMs: minute }],
  },
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

export interface Taker {
  /** Network address; undefined where nobody in particular asks. */
  readonly caller: string | undefined
  readonly host?: string
}

/** Takes one permission. Returns the wait in milliseconds when refused, else 0. */
export async function take(store: Store, name: LimitName, { caller, host }: Taker): Promise<number> {
  const limit: Limit = limits[name]
  const buckets = (kind: string, rates: readonly Rate[] = [], who?: string): readonly Bucket[] =>
    rates.map((rate, index) => ({
      key: `limit:${name}:${kind}${index}${who === undefined ? '' : `:${sha256(who)}`}`,
      ...rate,
    }))
  const all = [
    ...(caller === undefined ? [] : buckets('caller', limit.caller, callerKey(caller))),
    ...(host === undefined ? [] : buckets('host', limit.host, host)),
    ...buckets('total', limit.total),
  ]
  return (await store.takeTokens(all)).retryAfterMs
}

/** As `take`, refusing with 429 and Retry-After. */
export async function limit(store: Store, name: LimitName, caller: string): Promise<void> {
  const waitMs = await take(store, name, { caller })
  if (waitMs === 0) return
  throw new OAuthError('temporarily_unavailable', 'too many requests; try again later', {
    status: 429,
    headers: { 'Retry-After': String(Math.ceil(waitMs / 1000)) },
  })
}
