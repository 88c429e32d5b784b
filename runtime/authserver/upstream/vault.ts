/**
 * The upstream tokens of callers, at request time: found by the session that the caller's token names, checked to be
 * the caller's own, refreshed ahead of expiry, one refresh at a time across replicas.
 *
 * One provider's failure is that provider's alone. A refused refresh (`invalid_grant`) means the person must sign in
 * again; silence of the provider does not: a token that is still valid is used until it ends.
 * Source: spec document 2 (upstreamInject, tokenExchange, primaryUpstreamProvider); RFC 6749 section 6; RFC 9700
 * section 4.14 (providers revoke on double use, hence the lock).
 */
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Caller, Log } from '../../net/index.ts'
import { isTransient, OAuthFault } from '../../oauth/index.ts'
import type { UpstreamToken, UpstreamTokens as UpstreamTokensOfCallers } from '../../outgoing/index.ts'
import { withLock } from '../../store/index.ts'
import type { AuthServerEvent } from '../events.ts'
import type { Row, UpstreamTokens } from '../storage/records.ts'
import type { Seen, State } from '../storage/state.ts'
import { hashed } from '../tokens/opaque.ts'
import { type Claims, rowKey, sessionClaims, type Sessions } from '../tokens/sessions.ts'
import type { Upstream } from './upstream.ts'

export interface UpstreamTokenSource extends UpstreamTokensOfCallers {
  /** Names in the order of the configuration. */
  readonly providers: readonly string[]
  /** The provider whose token the policy engine reads. */
  readonly primary: string
  /**
   * The caller's token at a provider (default: the primary one), renewed if need be; undefined when the caller has
   * none there. Rejects with UPSTREAM_TOKEN_MISSING when the person must sign in again, AUTH_UNAVAILABLE or
   * STORE_DOWN when provider or store do not answer, NOT_FOUND for a provider that is not configured.
   */
  get(caller: Caller, provider?: string, signal?: AbortSignal): Promise<UpstreamToken | undefined>
}

export interface VaultParts {
  readonly upstreams: readonly Upstream[]
  readonly primary: string | undefined
  readonly state: State
  readonly sessions: Sessions
  readonly now: () => number
  readonly log: Log
  readonly emit: (event: AuthServerEvent) => void
}

/** Tokens are renewed this long before they end, but never in the first half of their life. */
const aheadMs = 60_000
/** After a provider was silent, it is not asked again for the same row. */
const pauseMs = 10_000
const lock = { ttlMs: 45_000, waitMs: 40_000 }
const saveTries = 3

export function makeVault(parts: VaultParts): UpstreamTokenSource {
  const { state, now, upstreams } = parts
  const providers = upstreams.map((upstream) => upstream.name)
  const primary = parts.primary ?? providers[0] ?? ''
  const running = new Map<string, Promise<Row>>()
  const paused = new LRUCache<string, number>({ max: 10_000 })

  async function get(
    caller: Caller,
    provider = primary,
    signal?: AbortSignal,
  ): Promise<UpstreamToken | undefined> {
    signal?.throwIfAborted()
    const upstream = upstreams.find((candidate) => candidate.name === provider)
    if (!upstream)
      throw new GatehouseError('NOT_FOUND', { detail: `there is no upstream provider "${provider}"` })
    const claims = sessionClaims(caller)
    if (!claims) return undefined
    const [row, live] = await Promise.all([
      state.rows.get(rowKey(claims.tsid, provider)),
      parts.sessions.isLive(claims),
    ])
    if (!row || !live || !isOwn(row, claims)) return undefined
    return view(await abortable(fresh(claims.tsid, row, upstream), signal))
  }

  async function fresh(sessionId: string, row: Row, upstream: Upstream): Promise<Row> {
    const id = rowKey(sessionId, upstream.name)
    if (!isDue(row, now())) return row
    const usable = row.expiresAtMs === undefined || row.expiresAtMs > now()
    if (row.refreshToken === undefined) {
      if (usable) return row
      throw signInAgain()
    }
    if (usable && now() < (paused.get(id) ?? 0)) return row
    try {
      return await flight(id, sessionId, upstream)
    } catch (error) {
      if (usable && isPassing(error)) {
        paused.set(id, now() + pauseMs)
        return row
      }
      throw error
    }
  }

  /** One refresh per row in this process; the lock makes it one over all replicas. */
  function flight(id: string, sessionId: string, upstream: Upstream): Promise<Row> {
    const known = running.get(id)
    if (known) return known
    const mine = withLock(state.store, `upstream:${hashed(id)}`, lock, () =>
      renew(id, sessionId, upstream),
    ).finally(() => running.delete(id))
    running.set(id, mine)
    return mine
  }

  async function renew(id: string, sessionId: string, upstream: Upstream): Promise<Row> {
    const seen = await state.rows.read(id)
    if (!seen) throw signInAgain()
    // Another replica was faster.
    if (!isDue(seen.value, now())) return seen.value
    const about = { clientId: seen.value.clientId, userId: seen.value.userId, upstream: upstream.name }
    let tokens: UpstreamTokens
    try {
      tokens = await upstream.refresh(seen.value)
    } catch (error) {
      parts.log.warn('an upstream token could not be refreshed', { upstream: upstream.name, err: error })
      if (!isFinal(error)) throw unavailable(error)
      if (!(await state.rows.swap(id, seen, undefined))) return renewedMeanwhile(id, error)
      parts.emit({ type: 'upstream_refused', outcome: 'failure', ...about })
      // With the only provider gone nothing is left to be signed in with: the client's refresh token ends too, so that
      // it asks its person instead of refreshing for ever.
      if (upstreams.length === 1) await parts.sessions.endSession(sessionId)
      throw signInAgain(error)
    }
    const { userId, clientId } = seen.value
    const next: Row = { ...tokens, userId, clientId }
    await save(id, seen, next)
    parts.emit({ type: 'upstream_refreshed', outcome: 'success', ...about })
    return next
  }

  /** Refused was the token from before: what the person has connected since is not touched by that. */
  async function renewedMeanwhile(id: string, cause: unknown): Promise<Row> {
    const row = await state.rows.get(id)
    if (!row) throw signInAgain(cause)
    if (isDue(row, now())) throw unavailable(cause)
    return row
  }

  /**
   * The provider has rotated: losing the new token would end the connection, so the store gets several chances. A row
   * that changed meanwhile (a new login, or the end of the session) is left as it is; its life is the session's.
   */
  async function save(id: string, seen: Seen<Row>, next: Row): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await state.rows.swap(id, seen, next)
        return
      } catch (error) {
        if (tries < saveTries) continue
        parts.log.error('a refreshed upstream token could not be stored', {
          upstream: next.provider,
          err: error,
        })
        return
      }
    }
  }

  return { providers, primary, get }
}

/** Nobody gets a token that was stored for another person or for another client. */
function isOwn(row: Row, claims: Claims): boolean {
  return row.userId === claims.sub && row.clientId === claims.client_id
}

function isDue(row: Row, nowMs: number): boolean {
  if (row.expiresAtMs === undefined) return false
  const lifeMs = row.expiresAtMs - row.obtainedAtMs
  return row.expiresAtMs - nowMs <= Math.min(aheadMs, lifeMs / 2)
}

/** Refusals that blame this server rather than the tokens: signing in again would not help. */
const ours: ReadonlySet<string> = new Set([
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_request',
  'invalid_scope',
])

/** The provider says that the grant is gone, in whatever words. */
function isFinal(error: unknown): boolean {
  return (
    error instanceof OAuthFault &&
    error.kind === 'refused' &&
    error.error !== undefined &&
    !ours.has(error.error)
  )
}

function isPassing(error: unknown): boolean {
  return isTransient(error) || (error instanceof GatehouseError && error.code !== 'UPSTREAM_TOKEN_MISSING')
}

function signInAgain(cause?: unknown): GatehouseError {
  return new GatehouseError('UPSTREAM_TOKEN_MISSING', cause === undefined ? {} : { cause })
}

function unavailable(cause: unknown): GatehouseError {
  return new GatehouseError('AUTH_UNAVAILABLE', { headers: { 'retry-after': '5' }, cause })
}

function view(row: Row): UpstreamToken {
  return {
    accessToken: row.accessToken,
    ...(row.idToken === undefined ? {} : { idToken: row.idToken }),
    ...(row.expiresAtMs === undefined ? {} : { expiresAt: row.expiresAtMs }),
  }
}

/** One asker may give up; the refresh goes on for the others, and because the provider has rotated already. */
async function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  let stop: (() => void) | undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    if (stop) signal.removeEventListener('abort', stop)
  }
}
