/**
 * Quotas on the use of tools per hour, day or month, in calls, result bytes or cost.
 *
 * Before a call is sent, it counts against every matching quota and budget, or against none if a budget blocks the
 * call. Bytes and reported costs are known only afterwards, and are added without waiting. A call that was not sent is
 * subtracted from the counters again. The counters are in the store, keyed by period, so they survive restarts, reloads
 * and clock changes. When the store is unavailable, calls are not counted, as with rate limits.
 * Source: docs/guides/quotas.md.
 */
import { GatehouseError, type Quota } from '../../../schemas/index.ts'
import type { Counter, CountResult, Store } from '../../store/index.ts'
import { makeOutage } from '../limits/outage.ts'
import { holdersOf, overflowHolder } from './holders.ts'
import { type Costs, matchesQuota, priceOf } from './matching.ts'
import type { QuotaCall, QuotaEvent, Quotas, QuotaState, QuotaUse, Reservation } from './types.ts'
import { type Period, periodOf } from './window.ts'

export interface QuotaOptions {
  readonly quotas: readonly Quota[]
  readonly costs?: Costs | undefined
  readonly groupClaimName?: string | undefined
  /** Store for the counters. The quotas append `quota:{namespace:server}:` to its key prefix. */
  readonly store: Store
  readonly namespace: string
  readonly server: string
  /** Returns the time in milliseconds since the epoch, which determines the period. */
  readonly now: () => number
  /** Timeout for calls to the store. Default: 1 s. */
  readonly timeoutMs?: number | undefined
  readonly observe: (event: QuotaEvent) => void
}

/** Fraction of a budget that must be used before the caller and the operators are notified. */
export const nearShare = 0.8

/** Additional lifetime of counters after their period, because late calls may be subtracted again and clocks differ. */
const lateMs = 3_600_000

/** A budget that a call uses. */
interface Share {
  readonly quota: Quota
  readonly period: Period
  readonly counter: Counter
}

interface Counted {
  readonly shares: readonly Share[]
  readonly result: CountResult
}

export function makeQuotas(options: QuotaOptions): Quotas {
  const { quotas, costs = {}, groupClaimName, now, observe, timeoutMs } = options
  const store = options.store.namespace(`quota:{${options.namespace}:${options.server}}:`)
  const outage = makeOutage({ calls: 'allowed', timeoutMs, now, observe })
  let writing: Promise<void> = Promise.resolve()

  function sharesOf(call: QuotaCall): readonly Share[] {
    const nowMs = now()
    const known = new Map<Quota['per'], readonly string[]>()
    return quotas
      .filter((quota) => matchesQuota(quota, call))
      .flatMap((quota) => {
        const period = periodOf(quota.window, nowMs)
        const add = initialAmount(quota, costs, call)
        // Limits the number of groups, because a token may contain thousands of them.
        const holders = known.get(quota.per) ?? holdersOf(quota.per, call.caller, groupClaimName)
        known.set(quota.per, holders)
        return holders.map((holder) => shareOf(quota, period, { holder, add, nowMs }))
      })
  }

  async function count(shares: readonly Share[]): Promise<Counted> {
    try {
      return { shares, result: await store.count(shares.map(({ counter }) => counter)) }
    } catch (error) {
      if (!isFull(error) || store.kind !== 'memory') throw error
      observe({ kind: 'full' })
      const shared = sharedOnOverflow(shares, now())
      return { shares: shared, result: await store.count(shared.map(({ counter }) => counter)) }
    }
  }

  function observeUse(shares: readonly Share[], sums: readonly number[]): void {
    for (const [i, { quota, period }] of shares.entries())
      observe({ kind: 'used', quota, period, share: (sums[i] ?? 0) / quota.limit })
  }

  function refusal({ shares, result: { sums } }: Counted): GatehouseError {
    const states = shares
      .map((share, i) => ({ share, sum: sums[i] ?? 0 }))
      .filter(({ share: { counter }, sum }) => isOver(counter, sum))
    const { share, sum } = states.reduce((a, b) => (b.share.period.endMs > a.share.period.endMs ? b : a))
    observeUse(shares, sums)
    observe({ kind: 'exceeded', quota: share.quota, enforced: true })
    return exceededError(share, stateOf(share, sum), now())
  }

  /** Adds without waiting. Updates made by one process are applied in order. */
  function addLater(counters: readonly Counter[]): void {
    if (counters.length === 0) return
    const before = writing
    const added = outage.ask(async () => {
      try {
        await store.count(counters)
      } catch (error) {
        // A full store is not an outage: the next call may use existing counters.
        if (!isFull(error)) throw error
        observe({ kind: 'full' })
      }
    })
    writing = before.then(async () => {
      if (!('value' in (await added))) observe({ kind: 'fail_open' })
    })
  }

  function reservation({ shares, result }: Counted): Reservation {
    return {
      readsCost: shares.some(({ quota }) => quota.unit === 'cost'),
      settle(use) {
        const more = shares.map((share) => additionalAmount(share, use))
        const sums = result.sums.map((sum, i) => Math.max(0, sum + (more[i] ?? 0)))
        addLater(
          shares.flatMap(({ counter: { key, ttlMs } }, i) => (more[i] ? [{ key, add: more[i], ttlMs }] : [])),
        )
        // Subtracts a call that was not sent, and does not report it as usage.
        if (use.sent) observeUse(shares, sums)
        return shares.flatMap((share, i) => {
          const { limit, action } = share.quota
          const sum = sums[i] ?? 0
          return action === 'block' && sum / limit >= nearShare ? [stateOf(share, sum)] : []
        })
      },
    }
  }

  return {
    async reserve(call) {
      const wanted = sharesOf(call)
      if (wanted.length === 0) return undefined
      const asked = await outage.ask(() => count(wanted))
      if (!('value' in asked)) {
        observe({ kind: 'fail_open' })
        return undefined
      }
      const { shares, result } = asked.value
      if (!result.ok) throw refusal(asked.value)
      for (const [i, { quota }] of shares.entries())
        if (quota.action === 'warn' && (result.sums[i] ?? 0) > quota.limit)
          observe({ kind: 'exceeded', quota, enforced: false })
      return reservation(asked.value)
    },
    settled: () => writing,
  }
}

function shareOf(
  quota: Quota,
  period: Period,
  { holder, add, nowMs }: { readonly holder: string; readonly add: number; readonly nowMs: number },
): Share {
  const { name, unit, per, action, limit } = quota
  return {
    quota,
    period,
    counter: {
      key: `${name}:${per}:${unit}:${period.label}:${holder}`,
      add,
      limit: action === 'block' ? limit : undefined,
      ttlMs: period.endMs - nowMs + lateMs,
      // Marks budgets that untrusted clients can create: clients control the number of users, but not the number of
      // quotas.
      yields: per !== 'server' && holder !== overflowHolder,
    },
  }
}

/** Keeps the server-wide budgets, and replaces all other budgets with one shared budget per quota. */
function sharedOnOverflow(shares: readonly Share[], nowMs: number): readonly Share[] {
  const shared = shares.map((share) => {
    const { quota, period, counter } = share
    if (quota.per === 'server') return share
    return shareOf(quota, period, { holder: overflowHolder, add: counter.add, nowMs })
  })
  return [...new Map(shared.map((share) => [share.counter.key, share])).values()]
}

/** Returns the amount to count before the call's result is known. */
function initialAmount({ unit }: Quota, costs: Costs, { backend, tool }: QuotaCall): number {
  if (unit === 'calls') return 1
  return unit === 'cost' ? priceOf(costs, backend, tool) : 0
}

function additionalAmount({ quota, counter }: Share, { sent, bytes, cost }: QuotaUse): number {
  if (!sent) return 0 - counter.add
  if (quota.unit === 'resultBytes') return bytes
  return quota.unit === 'cost' && cost !== undefined ? cost - counter.add : 0
}

function isOver({ add, limit }: Counter, sum: number): boolean {
  return limit !== undefined && (sum >= limit || sum + add > limit)
}

function isFull(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'STORE_FULL'
}

function stateOf({ quota, period }: Share, sum: number): QuotaState {
  const { name, per, unit, window, limit } = quota
  return {
    quota: name,
    per,
    unit,
    window,
    limit,
    remaining: Math.max(0, limit - sum),
    resetsAt: new Date(period.endMs).toISOString(),
  }
}

/** Returns the error: JSON-RPC 429 with the budget's state. */
function exceededError({ period, counter }: Share, state: QuotaState, nowMs: number): GatehouseError {
  const { quota, remaining, limit, unit, resetsAt } = state
  const retryAfterSeconds = Math.max(1, Math.ceil((period.endMs - nowMs) / 1_000))
  const needed = unit === 'cost' ? counter.add : undefined
  const requirement = needed === undefined ? '' : `, and the call needs ${needed}`
  return new GatehouseError('QUOTA_EXCEEDED', {
    detail: `Quota exceeded: ${quota} has ${remaining} of ${limit} ${unit} left until ${resetsAt}${requirement}`,
    data: { ...state, ...(needed === undefined ? {} : { needed }), retryAfterSeconds },
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
