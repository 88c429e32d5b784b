/**
 * Renews the stored tokens of a provider before they expire: one refresh at a time for each row in this process, and
 * for each user and provider across all replicas.
 *
 * A refused refresh ends the tokens (oauth/refusals/token-refusal.ts). A provider that does not respond does not end
 * them: a valid token stays in use until it expires.
 * Source: RFC 6749 section 6; RFC 9700 section 4.14 (providers revoke on double use, hence the lock).
 */
import { LRUCache } from 'lru-cache'
import { GatehouseError, ModuleError } from '../../../schemas/index.ts'
import type { Log } from '../../net/index.ts'
import { endsRefreshToken, tokenRefusal } from '../../oauth/index.ts'
import type { AuthServerEvent } from '../model/events.ts'
import type { StoredRow, UpstreamTokensRecord } from '../model/records.ts'
import { type Seen, type State } from '../storage/state.ts'
import type { Sessions } from '../tokens/sessions.ts'
import { exclusively, newestRefreshToken, replaceRefreshToken } from '../tokens/upstream-refresh-tokens.ts'
import type { Upstream } from './upstream.ts'
import { upstreamRowKey } from '../model/identifiers.ts'

export interface RenewalParts {
  readonly state: State
  readonly sessions: Sessions
  readonly now: () => number
  readonly log: Log
  readonly emit: (event: AuthServerEvent) => void
}

/** Tokens are renewed this long before they end, but never in the first half of their life. */
const aheadMs = 60_000
/**
 * Pause before the next request for the same row, after the provider did not respond or rejected this server rather
 * than the token.
 */
const pauseMs = 10_000
const saveTries = 3

/** The user has no usable token at this provider; `sure` false: there may be one in a moment. */
export class Gone extends ModuleError {
  readonly sure: boolean

  constructor(cause?: unknown, { sure = true }: { readonly sure?: boolean } = {}) {
    super('the sign-in at the provider has ended', cause === undefined ? {} : { cause })
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
   * Returns the row, renewed when it is about to expire or its access token was refused. Rejects with Gone or with
   * AUTH_UNAVAILABLE.
   */
  async fresh(
    sessionId: string,
    row: StoredRow,
    upstream: Upstream,
    { isRefused }: { readonly isRefused: boolean },
  ): Promise<StoredRow> {
    const { now } = this.#parts
    const id = upstreamRowKey(sessionId, upstream.name)
    if (!isDue(row, now()) && !isRefused) return row
    const usable = isUsable(row, now()) && !isRefused
    const paused = this.#paused.get(id)
    const isPaused = paused !== undefined && now() < paused.untilMs
    if (usable && (row.refreshToken === undefined || isPaused)) return row
    // Without a usable token, a provider that has recovered must be asked at once. A provider that rejects this
    // server would only do so again.
    if (isPaused && isRefusalOfUs(paused.error)) throw paused.error
    try {
      return await this.#flight(id, row, upstream, isRefused ? row.accessToken : undefined)
    } catch (error) {
      if (!isPassing(error)) throw error
      this.#paused.set(id, { untilMs: now() + pauseMs, error })
      if (usable) return row
      throw error
    }
  }

  /** One refresh per row in this process; the lock makes it one per user and provider over all replicas. */
  #flight(
    id: string,
    row: StoredRow,
    upstream: Upstream,
    refusedToken: string | undefined,
  ): Promise<StoredRow> {
    const known = this.#running.get(id)
    if (known) return known
    const mine = exclusively(this.#parts.state, row, () => this.#renew(id, upstream, refusedToken)).finally(
      () => this.#running.delete(id),
    )
    this.#running.set(id, mine)
    return mine
  }

  async #renew(id: string, upstream: Upstream, refusedToken: string | undefined): Promise<StoredRow> {
    const { state, log, emit, now } = this.#parts
    const seen = await state.rows.read(id)
    if (!seen) throw new Gone()
    // Another replica was faster.
    const isRefused = seen.value.accessToken === refusedToken
    if (!isDue(seen.value, now()) && !isRefused) return seen.value
    const { userId, clientId } = seen.value
    let tokens: UpstreamTokensRecord
    try {
      tokens = await this.#refreshed(seen.value, upstream)
    } catch (error) {
      log.warn('an upstream token could not be refreshed', { upstream: upstream.name, err: error })
      if (!endsRefreshToken(error)) throw unavailable(error)
      // The backend may be wrong to refuse an unexpired token. Without a refresh token, keeping the access token
      // costs nothing.
      if (isRefused && seen.value.refreshToken === undefined) throw new Gone(error, { sure: false })
      return this.#lost(id, seen, error)
    }
    const next: StoredRow = { ...tokens, userId, clientId }
    await this.#save(id, seen, next)
    emit({ type: 'upstream_refreshed', outcome: 'success', clientId, userId, upstream: upstream.name })
    return next
  }

  /** With the row's refresh token, and when that is refused or absent with the newest one of the same account. */
  async #refreshed(row: StoredRow, upstream: Upstream): Promise<UpstreamTokensRecord> {
    const others = async (): Promise<string | undefined> =>
      newestRefreshToken(this.#parts.state, await this.#parts.sessions.of(row.userId), row, row.refreshToken)
    try {
      return await upstream.refresh(row)
    } catch (error) {
      const refreshToken = endsRefreshToken(error) ? await others() : undefined
      if (refreshToken === undefined) throw error
      return await upstream.refresh({ ...row, refreshToken })
    }
  }

  /** Drops the refused tokens; what the user has connected since then stays. */
  async #lost(id: string, seen: Seen<StoredRow>, cause: unknown): Promise<StoredRow> {
    const { state, emit, now } = this.#parts
    if (!(await state.rows.swap(id, seen, undefined))) {
      const row = await state.rows.get(id)
      if (!row) throw new Gone(cause)
      if (isDue(row, now())) throw unavailable(cause)
      return row
    }
    const { clientId, userId, provider, refreshToken } = seen.value
    emit({
      type: 'upstream_refused',
      outcome: 'failure',
      clientId,
      userId,
      upstream: provider,
      ...(refreshToken === undefined
        ? { reason: 'the token has expired and came without a refresh token' }
        : {}),
    })
    throw new Gone(cause)
  }

  /**
   * The provider has rotated: losing the new token would end the connection, so the store gets several chances. A row
   * that changed meanwhile (a new login, or the end of the session) is left as it is; its life is the session's.
   */
  async #save(id: string, seen: Seen<StoredRow>, next: StoredRow): Promise<void> {
    const { state, sessions, log } = this.#parts
    const { refreshToken: old } = seen.value
    const rotated = next.refreshToken
    for (let tries = 1; ; tries++) {
      try {
        await state.rows.swap(id, seen, next)
        if (old !== undefined && rotated !== undefined && rotated !== old)
          await replaceRefreshToken(state, await sessions.of(next.userId), next, old, rotated)
        return
      } catch (error) {
        if (tries < saveTries) continue
        log.error('a refreshed upstream token could not be stored', {
          upstream: next.provider,
          err: error,
        })
        return
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

function isPassing(error: unknown): boolean {
  return error instanceof GatehouseError
}

/** True when the provider rejected this server rather than the token, for example because of its client secret. */
function isRefusalOfUs(error: unknown): boolean {
  const refusal = error instanceof Error ? tokenRefusal(error.cause) : undefined
  return refusal !== undefined && refusal !== 'temporary'
}

function unavailable(cause: unknown): GatehouseError {
  return new GatehouseError('AUTH_UNAVAILABLE', { headers: { 'retry-after': '5' }, cause })
}
