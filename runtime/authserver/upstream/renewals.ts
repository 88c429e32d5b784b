/**
 * Renews stored tokens from a provider before they expire. Only one refresh runs at a time for each row in this
 * process, and for each user and provider across all replicas.
 *
 * A rejected refresh invalidates the tokens (oauth/refusals/token-refusal.ts). During a provider outage, a valid token
 * stays in use until it expires.
 * Source: RFC 6749 section 6; RFC 9700 section 4.14 (providers revoke on double use, hence the lock).
 */
import { LRUCache } from 'lru-cache'
import { GatehouseError, ModuleError } from '../../../schemas/index.ts'
import type { Log } from '../../net/index.ts'
import { endsRefreshToken, tokenRefusal } from '../../oauth/index.ts'
import { type AuthServerEvent, makeEvent } from '../model/events.ts'
import type { StoredRow, UpstreamTokensRecord } from '../model/records.ts'
import { type SeenRecord, type State } from '../storage/state.ts'
import type { Sessions } from '../tokens/sessions.ts'
import {
  findNewestRefreshToken,
  lockRefreshTokens,
  replaceRefreshToken,
} from '../tokens/upstream-refresh-tokens.ts'
import type { Upstream } from './upstream.ts'

export interface RenewalParts {
  readonly state: State
  readonly sessions: Sessions
  readonly now: () => number
  readonly log: Log
  readonly emit: (event: AuthServerEvent) => void
}

/** Tokens are renewed this long before they expire, but not in the first half of their lifetime. */
const aheadMs = 60_000
/**
 * Pause before the next request for the same row, after the provider failed to respond or rejected this server rather
 * than the token.
 */
const pauseMs = 10_000
const saveTries = 3

/** The user has no usable token from this provider. `sure` is false when a usable token may appear shortly. */
export class UpstreamTokenGone extends ModuleError {
  readonly sure: boolean

  constructor(cause?: unknown, { sure = true }: { readonly sure?: boolean } = {}) {
    super('the sign-in session with the provider has ended', cause === undefined ? {} : { cause })
    this.sure = sure
  }
}

export class Renewals {
  readonly #parts: RenewalParts
  readonly #running = new Map<string, Promise<StoredRow>>()
  readonly #paused = new LRUCache<string, { readonly untilMs: number; readonly error: unknown }>({
    max: 10_000,
  })

  constructor(parts: RenewalParts) {
    this.#parts = parts
  }

  /**
   * Returns the row. Renews it first if it is about to expire or if its access token was rejected. Rejects with
   * UpstreamTokenGone or with AUTH_UNAVAILABLE.
   */
  async renewIfDue(
    id: string,
    row: StoredRow,
    { upstream, isRefused }: { readonly upstream: Upstream; readonly isRefused: boolean },
  ): Promise<StoredRow> {
    const { now } = this.#parts
    if (!isDue(row, now()) && !isRefused) return row
    const usable = isUsable(row, now()) && !isRefused
    const paused = this.#paused.get(id)
    const isPaused = paused !== undefined && now() < paused.untilMs
    if (usable && (row.refreshToken === undefined || isPaused)) return row
    // Without a usable token, a provider that has recovered must be queried immediately. A provider that rejects this
    // server would reject it again.
    if (isPaused && rejectsThisServer(paused.error)) throw paused.error
    try {
      return await this.#renewOnce(id, row, {
        upstream,
        refusedToken: isRefused ? row.accessToken : undefined,
      })
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
      this.#paused.set(id, { untilMs: now() + pauseMs, error })
      if (usable) return row
      throw error
    }
  }

  /**
   * Runs one refresh per row in this process. The lock limits refreshes to one per user and provider across all
   * replicas.
   */
  #renewOnce(
    id: string,
    row: StoredRow,
    { upstream, refusedToken }: { readonly upstream: Upstream; readonly refusedToken: string | undefined },
  ): Promise<StoredRow> {
    const known = this.#running.get(id)
    if (known) return known
    const renewal = lockRefreshTokens(this.#parts.state, row, () => this.#renew(id, upstream, refusedToken))
    const running = renewal.finally(() => this.#running.delete(id))
    this.#running.set(id, running)
    return running
  }

  async #renew(id: string, upstream: Upstream, refusedToken: string | undefined): Promise<StoredRow> {
    const { state, log, emit, now } = this.#parts
    const seen = await state.rows.read(id)
    if (!seen) throw new UpstreamTokenGone()
    // Another replica may have renewed the row already.
    const isRefused = seen.value.accessToken === refusedToken
    if (!isDue(seen.value, now()) && !isRefused) return seen.value
    const { userId, clientId } = seen.value
    let tokens: UpstreamTokensRecord
    try {
      tokens = await this.#refresh(seen.value, upstream)
    } catch (error) {
      log.warn('failed to refresh an upstream token', { upstream: upstream.name, err: error })
      if (!endsRefreshToken(error)) throw unavailable(error)
      // The backend may be wrong to reject an unexpired token. Without a refresh token, keeping the access token has no
      // downside.
      if (isRefused && seen.value.refreshToken === undefined)
        throw new UpstreamTokenGone(error, { sure: false })
      return this.#dropRejected(id, seen, error)
    }
    const next: StoredRow = { ...tokens, userId, clientId }
    await this.#save(id, seen, next)
    emit(makeEvent('upstream_refreshed', { clientId, userId, upstream: upstream.name }))
    return next
  }

  /**
   * Uses the row's refresh token. If that token is rejected or absent, uses the newest refresh token for the same
   * account.
   */
  async #refresh(row: StoredRow, upstream: Upstream): Promise<UpstreamTokensRecord> {
    const { state, sessions } = this.#parts
    try {
      return await upstream.refresh(row)
    } catch (error) {
      if (!endsRefreshToken(error)) throw error
      const except = row.refreshToken
      const others = await sessions.of(row.userId)
      const refreshToken = await findNewestRefreshToken(state, others, { account: row, except })
      if (refreshToken === undefined) throw error
      return await upstream.refresh({ ...row, refreshToken })
    }
  }

  /** Deletes the rejected tokens. Keeps a row whose account the user has connected in the meantime. */
  async #dropRejected(id: string, seen: SeenRecord<StoredRow>, cause: unknown): Promise<StoredRow> {
    const { state, emit, now } = this.#parts
    if (!(await state.rows.swap(id, seen, undefined))) {
      const row = await state.rows.get(id)
      if (!row) throw new UpstreamTokenGone(cause)
      if (isDue(row, now())) throw unavailable(cause)
      return row
    }
    const { clientId, userId, provider, refreshToken } = seen.value
    const reason =
      refreshToken === undefined ? 'the token has expired and there is no refresh token' : undefined
    emit(makeEvent('upstream_refused', { clientId, userId, upstream: provider, reason }))
    throw new UpstreamTokenGone(cause)
  }

  /**
   * Stores the renewed tokens. Retries, because the provider may have rotated the refresh token, and losing the new
   * token would end the connection. Keeps a row that has changed in the meantime (a new login, or the end of the
   * session).
   */
  async #save(id: string, seen: SeenRecord<StoredRow>, next: StoredRow): Promise<void> {
    const { state, sessions, log } = this.#parts
    const { refreshToken: old } = seen.value
    const rotated = next.refreshToken
    for (let tries = 1; ; tries++) {
      try {
        await state.rows.swap(id, seen, next)
        if (old !== undefined && rotated !== undefined && rotated !== old)
          await replaceRefreshToken(state, await sessions.of(next.userId), {
            account: next,
            old,
            next: rotated,
          })
        return
      } catch (error) {
        if (tries < saveTries) continue
        const upstream = next.provider
        return log.error('storing a refreshed upstream token failed', { upstream, err: error })
      }
    }
  }
}

function isUsable({ expiresAtMs }: StoredRow, nowMs: number): boolean {
  return expiresAtMs === undefined || expiresAtMs > nowMs
}

function isDue(row: StoredRow, nowMs: number): boolean {
  if (row.expiresAtMs === undefined) return false
  const lifeMs = row.expiresAtMs - row.obtainedAtMs
  return row.expiresAtMs - nowMs <= Math.min(aheadMs, lifeMs / 2)
}

/** True when the provider rejected this server rather than the token, for example, because of its client secret. */
function rejectsThisServer(error: unknown): boolean {
  const refusal = error instanceof Error ? tokenRefusal(error.cause) : undefined
  return refusal !== undefined && refusal !== 'temporary'
}

function unavailable(cause: unknown): GatehouseError {
  return new GatehouseError('AUTH_UNAVAILABLE', { headers: { 'retry-after': '5' }, cause })
}
