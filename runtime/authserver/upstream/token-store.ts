/**
 * The upstream tokens of callers, at request time: found by the session that the caller's token names, checked to be
 * the caller's own, refreshed ahead of expiry, one refresh at a time across replicas.
 *
 * One provider's failure is that provider's alone. A refused refresh (`invalid_grant`), or the end of a token that came
 * without a refresh token, means that the user must sign in there again; silence of the provider does not: a token that
 * is still valid is used until it ends. Where nothing works without the token (the only provider, or one that is
 * `required`), the grant ends with it: else the client would go on refreshing a grant that opens nothing.
 * Source: docs/specification/external-auth.md#upstreamInject (upstreamInject, tokenExchange, primaryUpstreamProvider); RFC 6749 section 6; RFC 9700
 * section 4.14 (providers revoke on double use, hence the lock).
 */
import { LRUCache } from 'lru-cache'
import { GatehouseError, ModuleError } from '../../../schemas/index.ts'
import { abortable, type Caller, type Log } from '../../net/index.ts'
import { isTransient, OAuthClientError } from '../../oauth/index.ts'
import {
  accountAdvice,
  type UpstreamToken,
  type UpstreamTokens as UpstreamTokensOfCallers,
} from '../../outgoing/index.ts'
import { sessionHash } from '../../observe/index.ts'
import { type AuthServerEvent, shownClient } from '../events.ts'
import type { StoredRow, UpstreamTokensRecord } from '../storage/records.ts'
import { rowKey, type Seen, type State } from '../storage/state.ts'
import { type IssuedClaims, sessionClaims, type Sessions } from '../tokens/sessions.ts'
import { exclusively, newestRefreshToken, replaceRefreshToken } from './refresh-tokens.ts'
import type { Upstream } from './upstream.ts'

export interface StoredUpstreamTokens extends UpstreamTokensOfCallers {
  /** Names in the order of the configuration. */
  readonly providers: readonly string[]
  /** The provider whose token the policy engine reads. */
  readonly primary: string
  /**
   * The caller's token at a provider (default: the primary one), renewed if need be; undefined when the caller has
   * none there. Rejects with UPSTREAM_TOKEN_MISSING when the user must sign in again, AUTH_UNAVAILABLE or
   * STORE_DOWN when provider or store do not answer, NOT_FOUND for a provider that is not configured.
   */
  get(caller: Caller, provider?: string, signal?: AbortSignal): Promise<UpstreamToken | undefined>
  required(caller: Caller, provider?: string, signal?: AbortSignal): Promise<UpstreamToken | undefined>
}

export interface UpstreamTokenParts {
  readonly upstreams: readonly Upstream[]
  readonly primary: string | undefined
  readonly state: State
  readonly sessions: Sessions
  /** The page of connected accounts. */
  readonly accountsUrl: string
  readonly now: () => number
  readonly log: Log
  readonly emit: (event: AuthServerEvent) => void
}

/** Tokens are renewed this long before they end, but never in the first half of their life. */
const aheadMs = 60_000
/** After a provider was silent, it is not asked again for the same row. */
const pauseMs = 10_000
/** A login that is being completed names its providers a moment before their tokens are there. */
const completingMs = 5_000
const saveTries = 3

/** Nothing can be had for the user at this provider any more; `sure` false: a moment later it might. */
class Gone extends ModuleError {
  readonly sure: boolean

  constructor(cause?: unknown, sure = true) {
    super('the sign-in at the provider has ended', cause === undefined ? {} : { cause })
    this.sure = sure
  }
}

export function makeUpstreamTokenStore(parts: UpstreamTokenParts): StoredUpstreamTokens {
  const { state, now, upstreams, sessions, accountsUrl } = parts
  const providers = upstreams.map((upstream) => upstream.name)
  const primary = parts.primary ?? providers[0] ?? ''
  const running = new Map<string, Promise<StoredRow>>()
  const paused = new LRUCache<string, number>({ max: 10_000 })
  const missingSince = new LRUCache<string, number>({ max: 10_000 })

  async function get(
    caller: Caller,
    provider: string,
    signal: AbortSignal | undefined,
    { isRequired }: { readonly isRequired: boolean },
  ): Promise<UpstreamToken | undefined> {
    signal?.throwIfAborted()
    const upstream = upstreams.find((candidate) => candidate.name === provider)
    if (!upstream)
      throw new GatehouseError('NOT_FOUND', { detail: `there is no upstream provider "${provider}"` })
    const claims = sessionClaims(caller)
    if (!claims) return undefined
    const [row, live] = await Promise.all([
      state.rows.get(rowKey(claims.tsid, provider)),
      sessions.isLive(claims),
    ])
    if (!live || (row && !isOwn(row, claims))) return undefined
    try {
      if (!row) return await absent(claims.tsid, provider)
      // One requester may give up; the refresh goes on for the others, and because the provider has rotated already.
      return view(await abortable(fresh(claims.tsid, row, upstream), signal))
    } catch (error) {
      if (!(error instanceof Gone)) throw error
      throw await signInAgain(error, claims.tsid, provider, { isRequired })
    }
  }

  /** Undefined for a provider that the user has not connected; rejects with Gone when its tokens are lost. */
  async function absent(sessionId: string, provider: string): Promise<undefined> {
    const session = await sessions.get(sessionId)
    if (!session || (upstreams.length > 1 && !session.providers.includes(provider))) return undefined
    const id = rowKey(sessionId, provider)
    const since = missingSince.get(id) ?? now()
    missingSince.set(id, since)
    throw new Gone(undefined, now() - since >= completingMs)
  }

  /** What the caller is told; where nothing works without the token, the grant has ended then. */
  async function signInAgain(
    gone: Gone,
    sessionId: string,
    provider: string,
    { isRequired }: { readonly isRequired: boolean },
  ): Promise<GatehouseError> {
    const { cause } = gone
    if (!isRequired) {
      const detail = `the sign-in at ${provider} has ended: ${accountAdvice('renew', provider, accountsUrl)}`
      return new GatehouseError('UPSTREAM_TOKEN_MISSING', { detail, cause })
    }
    const ended = gone.sure ? await sessions.endBecause(sessionId, provider) : undefined
    if (ended) {
      parts.emit({
        type: 'grant_ended',
        outcome: 'success',
        clientId: shownClient(ended.clientId),
        userId: ended.userId,
        sessionHash: sessionHash(sessionId),
        upstream: provider,
        reason: 'the sign-in at the provider has ended',
      })
    }
    const detail = `the sign-in at ${provider} has ended: ask the user to sign in again from this client`
    return new GatehouseError('UPSTREAM_TOKEN_MISSING', { detail, cause })
  }

  async function fresh(sessionId: string, row: StoredRow, upstream: Upstream): Promise<StoredRow> {
    const id = rowKey(sessionId, upstream.name)
    if (!isDue(row, now())) return row
    const usable = isUsable(row, now())
    if (usable && (row.refreshToken === undefined || now() < (paused.get(id) ?? 0))) return row
    try {
      return await flight(id, row, upstream)
    } catch (error) {
      if (usable && isPassing(error)) {
        paused.set(id, now() + pauseMs)
        return row
      }
      throw error
    }
  }

  /** One refresh per row in this process; the lock makes it one per user and provider over all replicas. */
  function flight(id: string, row: StoredRow, upstream: Upstream): Promise<StoredRow> {
    const known = running.get(id)
    if (known) return known
    const mine = exclusively(state, row, () => renew(id, upstream)).finally(() => running.delete(id))
    running.set(id, mine)
    return mine
  }

  async function renew(id: string, upstream: Upstream): Promise<StoredRow> {
    const seen = await state.rows.read(id)
    if (!seen) throw new Gone()
    // Another replica was faster.
    if (!isDue(seen.value, now())) return seen.value
    const { userId, clientId } = seen.value
    let tokens: UpstreamTokensRecord
    try {
      tokens = await refreshed(seen.value, upstream)
    } catch (error) {
      parts.log.warn('an upstream token could not be refreshed', { upstream: upstream.name, err: error })
      if (!isFinal(error)) throw unavailable(error)
      return lost(id, seen, error)
    }
    const next: StoredRow = { ...tokens, userId, clientId }
    await save(id, seen, next)
    parts.emit({ type: 'upstream_refreshed', outcome: 'success', clientId, userId, upstream: upstream.name })
    return next
  }

  /** With the row's refresh token, and when that is refused or absent with the newest one of the same account. */
  async function refreshed(row: StoredRow, upstream: Upstream): Promise<UpstreamTokensRecord> {
    const others = async (): Promise<string | undefined> =>
      newestRefreshToken(state, await sessions.of(row.userId), row, row.refreshToken)
    try {
      return await upstream.refresh(row)
    } catch (error) {
      const refreshToken = isFinal(error) ? await others() : undefined
      if (refreshToken === undefined) throw error
      return await upstream.refresh({ ...row, refreshToken })
    }
  }

  /** Refused was the token from before: what the user has connected since is not touched by that. */
  async function lost(id: string, seen: Seen<StoredRow>, cause: unknown): Promise<StoredRow> {
    if (!(await state.rows.swap(id, seen, undefined))) {
      const row = await state.rows.get(id)
      if (!row) throw new Gone(cause)
      if (isDue(row, now())) throw unavailable(cause)
      return row
    }
    const { clientId, userId, provider, refreshToken } = seen.value
    parts.emit({
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
  async function save(id: string, seen: Seen<StoredRow>, next: StoredRow): Promise<void> {
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
        parts.log.error('a refreshed upstream token could not be stored', {
          upstream: next.provider,
          err: error,
        })
        return
      }
    }
  }

  return {
    providers,
    primary,
    accountsUrl,
    get: (caller, provider = primary, signal) =>
      get(caller, provider, signal, { isRequired: upstreams.length === 1 }),
    required: (caller, provider = primary, signal) => get(caller, provider, signal, { isRequired: true }),
  }
}

/** Nobody gets a token that was stored for another user or for another client. */
function isOwn(row: StoredRow, claims: IssuedClaims): boolean {
  return row.userId === claims.sub && row.clientId === claims.client_id
}

function isUsable({ expiresAtMs }: StoredRow, nowMs: number): boolean {
  return expiresAtMs === undefined || expiresAtMs > nowMs
}

function isDue(row: StoredRow, nowMs: number): boolean {
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
    error instanceof OAuthClientError &&
    error.kind === 'refused' &&
    error.error !== undefined &&
    !ours.has(error.error)
  )
}

function isPassing(error: unknown): boolean {
  return isTransient(error) || error instanceof GatehouseError
}

function unavailable(cause: unknown): GatehouseError {
  return new GatehouseError('AUTH_UNAVAILABLE', { headers: { 'retry-after': '5' }, cause })
}

function view(row: StoredRow): UpstreamToken {
  return {
    accessToken: row.accessToken,
    ...(row.idToken === undefined ? {} : { idToken: row.idToken }),
    ...(row.expiresAtMs === undefined ? {} : { expiresAt: row.expiresAtMs }),
  }
}
