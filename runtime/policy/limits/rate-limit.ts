/**
 * Rate limits for tool calls: refilling token buckets for the whole server and per user, each across all tools and for
 * single tools.
 *
 * A call takes a token from every applicable bucket, or from none. On Redis, this is one atomic operation that uses the
 * server's clock and is shared by all replicas. With the memory store, limits apply only to this process. Users are
 * identified by issuer and subject. The limiter counts only tools/call.
 *
 * It runs after parsing and before authorization. While the store is unavailable, calls are not counted (or are
 * rejected, as configured), without waiting for the store each time.
 * Source: docs/reference/specification/virtual-server.md#rateLimiting, config.rateLimiting; ARCHITECTURE.md, "A tool
 * call".
 */
import {
  GatehouseError,
  parseDuration,
  type RateLimitBucket,
  type RateLimitConfig,
} from '../../../schemas/index.ts'
import type { JsonObject } from '../../mcp/index.ts'
import type { Caller } from '../../net/index.ts'
import type { Bucket, BucketResult, Store } from '../../store/index.ts'
import { makeOutage, type OutageEvent } from './outage.ts'
import { hash } from 'node:crypto'

export type LimitScope = 'shared' | 'per_user'
export type LimitedOperation = 'server' | 'tool'

/** Rate limiter events, for metrics. */
export type RateLimitEvent =
  | {
      /**
       * A granted call causes one event per bucket; a rejected call causes one event, for the bucket that rejected it.
       */
      readonly kind: 'decision'
      readonly decision: 'allowed' | 'rejected'
      readonly scope: LimitScope
      readonly operationType: LimitedOperation
    }
  | OutageEvent
  /** A call was allowed without being counted. */
  | { readonly kind: 'fail_open' }

export interface RateLimiterOptions {
  readonly config: RateLimitConfig
  /** Store for the buckets. The limiter appends `rl:{namespace:server}:` to its key prefix. */
  readonly store: Store
  readonly namespace: string
  readonly server: string
  /** How calls are handled during an outage. Default: allow. */
  readonly whenStoreDown?: 'allow' | 'refuse' | undefined
  /** Timeout for calls to the store. Default: 1 s. */
  readonly timeoutMs?: number | undefined
  /** Returns the time in milliseconds, for pauses after failures and for latency. Default: Date.now. */
  readonly now?: (() => number) | undefined
  readonly observe?: ((event: RateLimitEvent) => void) | undefined
}

/** The reason why a call is rejected. */
export interface LimitRefusal {
  /** Whole seconds (at least 1) after which all buckets have tokens again, if no other calls take them. */
  readonly retryAfterSeconds: number
  readonly scope: LimitScope
  readonly operationType: LimitedOperation
}

export interface RateLimiter {
  /**
   * Takes tokens for a request. Returns undefined when the request may continue. Rejects only with STORE_DOWN, when
   * calls are configured to be rejected while the store is down.
   */
  take(caller: Caller, method: string, params: JsonObject): Promise<LimitRefusal | undefined>
}

interface Limit extends Bucket {
  readonly scope: LimitScope
  readonly operationType: LimitedOperation
}

/** Creates the limiter. Throws INVALID_CONFIG for a refillPeriod that is not a valid duration. */
export function makeRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { now = Date.now, observe = () => {}, timeoutMs, whenStoreDown = 'allow' } = options
  const store = options.store.namespace(`rl:{${options.namespace}:${options.server}}:`)
  const limitsOf = makeLimits(options.config)
  const calls = whenStoreDown === 'refuse' ? 'refused' : 'allowed'
  const outage = makeOutage({ calls, timeoutMs, now, observe })

  /** Result for a call that could not be counted. */
  function uncounted(cause: unknown): undefined {
    if (whenStoreDown === 'refuse')
      throw new GatehouseError('STORE_DOWN', { detail: 'rate limits cannot be checked at the moment', cause })
    observe({ kind: 'fail_open' })
    return undefined
  }

  function read(limits: readonly Limit[], taken: BucketResult): LimitRefusal | undefined {
    const refusing = limits.find(({ key }) => key === taken.refusedBy)
    const decision = taken.ok ? 'allowed' : 'rejected'
    for (const { scope, operationType } of refusing ? [refusing] : limits)
      observe({ kind: 'decision', decision, scope, operationType })
    if (taken.ok) return undefined
    return {
      retryAfterSeconds: Math.max(1, Math.ceil(taken.retryAfterMs / 1000)),
      scope: refusing?.scope ?? 'shared',
      operationType: refusing?.operationType ?? 'server',
    }
  }

  return {
    async take(caller, method, params) {
      if (method !== 'tools/call') return undefined
      const limits = limitsOf(caller, params.text('name'))
      if (limits.length === 0) return undefined
      const asked = await outage.ask(() => store.takeTokens(limits))
      return 'value' in asked ? read(limits, asked.value) : uncounted(asked.error)
    },
  }
}

/** Returns the rejection as an error: JSON-RPC 429 with data, HTTP 429 with Retry-After. */
export function rateLimitError({ retryAfterSeconds }: LimitRefusal): GatehouseError {
  return new GatehouseError('RATE_LIMITED', {
    data: { retryAfterSeconds },
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}

/** A call's buckets, in this order: server, tool, user, user and tool. */
function makeLimits(config: RateLimitConfig): (caller: Caller, tool: string | undefined) => readonly Limit[] {
  const shared = bucket(config.shared)
  const perUser = bucket(config.perUser)
  const tools = new Map(
    (config.tools ?? []).map((tool) => [
      tool.name,
      { shared: bucket(tool.shared), perUser: bucket(tool.perUser) },
    ]),
  )
  return function limitsOf(caller, name) {
    const tool = name === undefined ? undefined : tools.get(name)
    const limits: Limit[] = []
    if (shared) limits.push({ ...shared, key: 'shared', scope: 'shared', operationType: 'server' })
    if (tool?.shared)
      limits.push({ ...tool.shared, key: `shared:tool:${name}`, scope: 'shared', operationType: 'tool' })
    if (!perUser && !tool?.perUser) return limits
    const user = userKey(caller)
    if (perUser) limits.push({ ...perUser, key: `user:${user}`, scope: 'per_user', operationType: 'server' })
    if (tool?.perUser)
      limits.push({
        ...tool.perUser,
        key: `user-tool:${name}:${user}`,
        scope: 'per_user',
        operationType: 'tool',
      })
    return limits
  }
}

function bucket(config: RateLimitBucket | undefined): Omit<Bucket, 'key'> | undefined {
  return config && { capacity: config.maxTokens, refillMs: parseDuration(config.refillPeriod) }
}

/** Returns a user's key in stores: a digest of issuer and subject that does not reveal the user. */
export function userKey({ issuer, subject }: Caller): string {
  return hash('sha256', `${issuer}\0${subject}`, 'base64url')
}
