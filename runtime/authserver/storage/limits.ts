/**
 * Rate limits for untrusted clients, in one table.
 *
 * Buckets are in the store, so replicas share them. A request takes permits from the buckets of the caller and of the
 * server together or not at all, so a rejected client adds no keys. Limits per caller are generous, because all clients
 * behind an unlisted proxy count as one caller (server/client-address.ts). A rate per lifetime bounds pending requests
 * and unused registrations. A bucket with such a rate admits twice its capacity in the first lifetime: the initial
 * capacity and the refill.
 */
import { isIPv6 } from 'node:net'
import type { Bucket, Store } from '../../store/index.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { sha256 } from '../model/identifiers.ts'

const minute = 60_000
const day = 86_400_000

/** Lifetime of a registration that was never used. */
export const unusedClientMs = day
export const usedClientMs = 30 * day
/** Lifetime of a login in progress. */
export const loginMs = 10 * minute

interface Rate {
  readonly capacity: number
  readonly refillMs: number
}

interface Limit {
  /** Limits per network address, so that one address cannot exhaust the total. */
  readonly caller: readonly Rate[]
  /** Limits per host from which documents are fetched, per client, or per subject. */
  readonly host?: readonly Rate[]
  /** Limits per trusted issuer or trust domain. */
  readonly issuer?: readonly Rate[]
  /** Limits for the whole server. These limits bound the number of stored records. */
  readonly total: readonly Rate[]
}

export const limits = {
  authorize: {
    caller: [
      { capacity: 300, refillMs: minute },
      { capacity: 1_000, refillMs: loginMs },
    ],
    // At most 10,000 logins in flight.
    total: [{ capacity: 5_000, refillMs: loginMs }],
  },
  register: {
    caller: [
      { capacity: 30, refillMs: minute },
      { capacity: 600, refillMs: day },
    ],
    // At most 5,000 unused registrations. An update takes a permit from the same bucket.
    total: [{ capacity: 2_500, refillMs: day }],
  },
  /** Valid assertions of a declared client. `host` is the client id. Limits the number of stored marks. */
  assertion: {
    caller: [],
    host: [{ capacity: 600, refillMs: minute }],
    total: [],
  },
  /**
   * Valid assertions of clients with a metadata document. The number of these clients is unlimited, so a total limit
   * also applies.
   */
  describedAssertion: {
    caller: [{ capacity: 600, refillMs: minute }],
    host: [{ capacity: 600, refillMs: minute }],
    total: [{ capacity: 3_000, refillMs: minute }],
  },
  /**
   * Valid assertions of trusted issuers. `host` is the subject. The number of subjects is unlimited, so there is also a
   * limit per issuer. There is no limit that all callers share, because one issuer must not block another, not even
   * from the same address.
   */
  grantAssertion: {
    caller: [],
    host: [{ capacity: 600, refillMs: minute }],
    issuer: [{ capacity: 3_000, refillMs: minute }],
    total: [],
  },
  /** Fetches of metadata documents and clients' keys. */
  document: {
    caller: [{ capacity: 30, refillMs: minute }],
    host: [{ capacity: 10, refillMs: minute }],
    total: [{ capacity: 300, refillMs: minute }],
  },
} as const satisfies Record<string, Limit>

type LimitName = keyof typeof limits

/** Returns the address, or for IPv6 the /64 network, which is usually assigned to a single household or server. */
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

/**
 * Takes one permit each from the buckets of a network address, a host, an issuer and the server. Returns 0, or the
 * required wait in milliseconds.
 */
export async function takePermission(
  store: Store,
  name: LimitName,
  {
    caller,
    host,
    issuer,
  }: { readonly caller?: string | undefined; readonly host?: string; readonly issuer?: string },
): Promise<number> {
  const limit: Limit = limits[name]
  const buckets = (kind: string, rates: readonly Rate[] = [], owner?: string): readonly Bucket[] =>
    rates.map((rate, index) => ({
      key: `limit:${name}:${kind}${index}${owner === undefined ? '' : `:${sha256(owner)}`}`,
      ...rate,
    }))
  const all = [
    ...(caller === undefined ? [] : buckets('caller', limit.caller, callerKey(caller))),
    ...(host === undefined ? [] : buckets('host', limit.host, host)),
    ...(issuer === undefined ? [] : buckets('issuer', limit.issuer, issuer)),
    ...buckets('total', limit.total),
  ]
  return (await store.takeTokens(all)).retryAfterMs
}

/** Takes one permit. Throws OAuthError with 429 and Retry-After. */
export async function limitRate(store: Store, name: LimitName, caller: string): Promise<void> {
  const waitMs = await takePermission(store, name, { caller })
  if (waitMs > 0) throw tooManyRequests(waitMs)
}

export function tooManyRequests(waitMs: number): OAuthError {
  return new OAuthError('temporarily_unavailable', 'too many requests; try again later', {
    status: 429,
    headers: { 'Retry-After': String(Math.ceil(waitMs / 1000)) },
  })
}
