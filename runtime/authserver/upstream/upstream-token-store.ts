/**
 * Provides callers' upstream tokens at request time. A row is found through the session in the caller's token, checked
 * against the caller, and renewed before it expires (renewals.ts).
 *
 * A failure of one provider does not affect other providers. After a rejected refresh, or once a token without a
 * refresh token has expired, the user must sign in to the provider again. The loss of a required token (from the only
 * provider, or requested as `required`) also ends the grant. Otherwise the client would keep refreshing a useless
 * grant.
 * Source: docs/reference/specification/external-auth.md#upstreamInject (upstreamInject, tokenExchange,
 * primaryUpstreamProvider).
 */
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../schemas/index.ts'
import { abortable, type Caller } from '../../net/index.ts'
import {
  accountAdvice,
  type UpstreamToken,
  type UpstreamTokens as UpstreamTokensOfCallers,
} from '../../outgoing/index.ts'
import { makeEvent } from '../model/events.ts'
import { isOffered } from '../model/offered.ts'
import type { StoredRow } from '../model/records.ts'
import { isDelegated } from '../tokens/delegated-tokens.ts'
import { isAsserted } from '../tokens/asserted-tokens.ts'
import { machineClaims } from '../tokens/machine-tokens.ts'
import { type SessionClaims, sessionClaims } from '../tokens/session-claims.ts'
import { type RenewalParts, Renewals, UpstreamTokenGone } from './renewals.ts'
import type { Upstream } from './upstream.ts'
import { sha256, upstreamRowKey } from '../model/identifiers.ts'

export interface StoredUpstreamTokens extends UpstreamTokensOfCallers {
  /** Names in configured order. */
  readonly providers: readonly string[]
  /** The provider whose token the policy engine reads. */
  readonly primary: string
  /**
   * Returns the caller's token from a provider (default: the primary one), renewed if necessary; undefined when the
   * caller has none. Rejects with UPSTREAM_TOKEN_MISSING when the user must sign in again, and with AUTH_UNAVAILABLE or
   * STORE_DOWN when the provider or the store does not respond. Also rejects with NOT_FOUND for a provider that is not
   * configured, and with USER_REQUIRED for a declared client, even when it acts for a user.
   */
  get(caller: Caller, provider?: string, signal?: AbortSignal): Promise<UpstreamToken | undefined>
  /** For policies. Also returns the user's token when a declared client acts for the user. */
  required(caller: Caller, provider?: string, signal?: AbortSignal): Promise<UpstreamToken | undefined>
}

interface UpstreamTokenParts extends RenewalParts {
  readonly upstreams: readonly Upstream[]
  readonly primary: string | undefined
  /** URL of the connected accounts page. */
  readonly accountsUrl: string
}

/**
 * Minimum time between two renewals of a token that a backend rejected. Limits the load caused by a backend that
 * rejects every token.
 */
const refusalPauseMs = 30_000
/** A rejected token that cannot be renewed is used again after this time, because the backend may have been wrong. */
const refusedMs = 300_000

/** A completed login stores the names of its providers a moment before their tokens. */
const completingMs = 5_000

export class UpstreamTokenStore implements StoredUpstreamTokens {
  readonly providers: readonly string[]
  readonly primary: string
  readonly accountsUrl: string
  readonly #parts: UpstreamTokenParts
  readonly #renewals: Renewals
  /** Digest of each row's rejected access token. */
  readonly #refused = new LRUCache<string, { readonly digest: string; readonly atMs: number }>({
    max: 10_000,
  })
  readonly #missingSince = new LRUCache<string, number>({ max: 10_000 })

  constructor(parts: UpstreamTokenParts) {
    this.#parts = parts
    this.#renewals = new Renewals(parts)
    this.providers = parts.upstreams.map((upstream) => upstream.name)
    this.primary = parts.primary ?? this.providers[0] ?? ''
    this.accountsUrl = parts.accountsUrl
  }

  async get(
    caller: Caller,
    provider = this.primary,
    signal?: AbortSignal,
  ): Promise<UpstreamToken | undefined> {
    if (isDelegated(caller.claims)) throw new GatehouseError('USER_REQUIRED', { detail: delegatedText })
    return this.#get(caller, provider, { signal, isRequired: this.#parts.upstreams.length === 1 })
  }

  required(
    caller: Caller,
    provider = this.primary,
    signal?: AbortSignal,
  ): Promise<UpstreamToken | undefined> {
    return this.#get(caller, provider, { signal, isRequired: true })
  }

  async isWithheld(caller: Caller, provider: string): Promise<boolean> {
    const claims = sessionClaims(caller)
    const session = claims && (await this.#parts.sessions.get(claims.tsid))
    return session !== undefined && !isOffered(session, provider)
  }

  refused(caller: Caller, provider: string, accessToken: string): boolean {
    const claims = sessionClaims(caller)
    if (!claims) return false
    const id = upstreamRowKey(claims.tsid, provider)
    const { now } = this.#parts
    const digest = sha256(accessToken)
    const last = this.#refused.get(id)
    if (last && now() - last.atMs < refusalPauseMs) return last.digest === digest
    this.#refused.set(id, { digest, atMs: now() })
    return true
  }

  /** True when the row still contains the rejected token. */
  #isRefused(id: string, { accessToken }: StoredRow): boolean {
    const refused = this.#refused.get(id)
    if (!refused || this.#parts.now() - refused.atMs >= refusedMs) return false
    return refused.digest === sha256(accessToken)
  }

  async #get(
    caller: Caller,
    provider: string,
    { signal, isRequired }: { readonly signal: AbortSignal | undefined; readonly isRequired: boolean },
  ): Promise<UpstreamToken | undefined> {
    signal?.throwIfAborted()
    const { state, sessions, upstreams, now } = this.#parts
    const upstream = upstreams.find((candidate) => candidate.name === provider)
    if (!upstream)
      throw new GatehouseError('NOT_FOUND', { detail: `unknown upstream provider "${provider}"` })
    if (isAsserted(caller.claims) || machineClaims(caller)) throw new GatehouseError('USER_REQUIRED')
    const claims = sessionClaims(caller)
    if (!claims) return undefined
    const id = upstreamRowKey(claims.tsid, provider)
    const [row, live] = await Promise.all([state.rows.get(id), sessions.isLive(claims)])
    if (!live || (row && !isOwn(row, claims))) return undefined
    try {
      if (!row) return await this.#checkAbsent(claims.tsid, provider)
      // One caller may abort. The refresh continues, because other callers may be waiting for it, and because the
      // provider has already rotated the token.
      const isRefused = this.#isRefused(id, row)
      const fresh = this.#renewals.renewIfDue(id, row, { upstream, isRefused })
      const renewed = await abortable(fresh, signal)
      // Some providers return the same token again. Do not renew such a token a second time.
      if (isRefused) this.#refused.set(id, { digest: '', atMs: now() })
      return toUpstreamToken(renewed)
    } catch (error) {
      if (!(error instanceof UpstreamTokenGone)) throw error
      throw await this.#endSignIn(error, claims.tsid, { provider, isRequired })
    }
  }

  /** Returns undefined for a provider that the user has not connected. Rejects when the provider's tokens are lost. */
  async #checkAbsent(sessionId: string, provider: string): Promise<undefined> {
    const { sessions, upstreams, now } = this.#parts
    const session = await sessions.get(sessionId)
    if (!session || (upstreams.length > 1 && !session.providers.includes(provider))) return undefined
    const id = upstreamRowKey(sessionId, provider)
    const since = this.#missingSince.get(id) ?? now()
    this.#missingSince.set(id, since)
    throw new UpstreamTokenGone(undefined, { sure: now() - since >= completingMs })
  }

  /** Ends the grant of a required token. Returns the error for the caller. */
  async #endSignIn(
    { cause, sure }: UpstreamTokenGone,
    sessionId: string,
    { provider, isRequired }: { readonly provider: string; readonly isRequired: boolean },
  ): Promise<GatehouseError> {
    // Do not end a login that may still be valid: the user only needs to reconnect this provider.
    if (!isRequired || !sure) {
      const detail = `the sign-in session with ${provider} has ended: ${accountAdvice('renew', provider, this.#parts.accountsUrl)}`
      return new GatehouseError('UPSTREAM_TOKEN_MISSING', { detail, cause })
    }
    const ended = await this.#parts.sessions.endBecause(sessionId, provider)
    if (ended) {
      const about = { clientId: ended.clientId, userId: ended.userId, sessionId, upstream: provider }
      const reason = 'the sign-in session with the provider has ended'
      this.#parts.emit(makeEvent('grant_ended', { ...about, reason }))
    }
    const detail = `the sign-in session with ${provider} has ended: ask the user to sign in again from this client`
    return new GatehouseError('UPSTREAM_TOKEN_MISSING', { detail, cause })
  }
}

/** The user allowed only the session's client to use the provider's tokens. */
const delegatedText =
  "this backend requires the user's own token; the caller acts for the user with a delegated token"

/** False for a token stored for another user or another client. */
function isOwn(row: StoredRow, claims: SessionClaims): boolean {
  return row.userId === claims.sub && row.clientId === claims.client_id
}

function toUpstreamToken(row: StoredRow): UpstreamToken {
  return {
    accessToken: row.accessToken,
    ...(row.idToken === undefined ? {} : { idToken: row.idToken }),
    ...(row.expiresAtMs === undefined ? {} : { expiresAt: row.expiresAtMs }),
  }
}
