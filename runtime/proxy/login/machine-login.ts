/**
 * The proxy's login to its target, without a user. Gets a token with the client's own secret or key
 * (client_credentials), with a token from the platform (jwt-bearer) or with a user's ID token (id-jag). Replaces the
 * token before it expires, or when the target rejects it.
 *
 * Only one token request runs at a time, and all callers wait for it. Nothing is stored, because the client can always
 * get another token. When a renewal fails, the token stays in use until it expires.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Dispatcher } from '../../net/index.ts'
import { type Challenge, OAuthClientError, type ProofKey, Prover, tokenRefusal } from '../../oauth/index.ts'
import {
  type AccessToken,
  detect,
  ExclusiveWork,
  type Located,
  LoginTokens,
  type OwnLogin,
  proofRefusal,
  type Rejection,
  scopesOf,
  StepUps,
  unavailable,
  uriOf,
} from '../../outgoing/index.ts'
import { locateForMachine, type MachineTokenParts, requestMachineToken } from './machine-token.ts'

export interface MachineLoginParts extends MachineTokenParts {
  readonly dispatcher: Dispatcher
}

interface HeldToken extends AccessToken {
  readonly proofKey: ProofKey | undefined
  /** Unix milliseconds; infinite when the server reports no expiry. */
  readonly renewAt: number
  readonly expiresAt: number
}

/** A token is renewed this long before it expires, or after half its lifetime if that is later. */
const aheadMs = 30_000
/**
 * A token that replaced a rejected token is not replaced again within this time, because the target would also reject
 * the next token.
 */
const freshMs = 5_000
/** Pause after a failed request. The longer pause follows a rejection, because a retry rarely helps. */
const pauseMs = { temporary: 1_000, rejected: 10_000, longest: 60_000 }

export class MachineLogin implements OwnLogin {
  readonly idToken = undefined
  readonly #parts: MachineLoginParts
  readonly #flights = new ExclusiveWork<'token'>()
  readonly #stepUps: StepUps
  /** The key that tokens are bound to, if the target or the authorization server requires bound tokens. */
  readonly #prover: Prover
  readonly #tokens = new LoginTokens()
  #located: Located | undefined
  #token: HeldToken | undefined
  /** The target requires no authentication. */
  #open = false
  #replacedAt = Number.NEGATIVE_INFINITY
  #failure: { readonly error: GatehouseError; readonly untilMs: number } | undefined

  constructor(parts: MachineLoginParts) {
    this.#parts = parts
    this.#stepUps = new StepUps(parts.now)
    this.#prover = new Prover(undefined, parts.now)
  }

  /** Detects the target's requirements and gets a token. */
  start(): Promise<void> {
    return this.#flights.once('token', () => this.#obtain())
  }

  /**
   * Returns the access token, or undefined when the target requires none. Throws BACKEND_UNAVAILABLE (with Retry-After)
   * while the authorization server is unavailable, and BACKEND_AUTH_FAILED when it rejects the client.
   */
  token(): AccessToken | undefined | Promise<AccessToken | undefined> {
    const token = this.#token
    if (token && this.#parts.now() < token.renewAt) return token
    if (!token && this.#open) return undefined
    return this.#renewed()
  }

  get usableUntil(): number | undefined {
    const renewAt = this.#token?.renewAt
    return renewAt === Number.POSITIVE_INFINITY ? undefined : renewAt
  }

  async #renewed(): Promise<AccessToken | undefined> {
    try {
      await this.#flights.once('token', () => this.#obtain())
    } catch (error) {
      if (!this.#token || this.#hasExpired(this.#token)) throw error
    }
    return this.#token
  }

  get proofKey(): ProofKey | undefined {
    return this.#token?.proofKey
  }

  /** True when this login handles a response with this status. */
  concerns(status: number, challenge: Challenge | undefined): boolean {
    if (status === 401) return this.#token !== undefined || challenge !== undefined
    return status === 403 && this.#newScopes(challenge).length > 0 && !this.#stepUps.isExhausted()
  }

  async refused({ status, challenge, url, usedToken }: Rejection): Promise<void> {
    const token = this.#token
    // Another request has already replaced the token.
    if (token && token.value !== usedToken) return
    if (status === 403) return this.#flights.once('token', () => this.#stepUp(challenge))
    const refusedProof = token?.proof && proofRefusal(challenge)
    if (refusedProof) throw refusedProof
    if (this.#parts.now() - this.#replacedAt < freshMs) {
      throw new GatehouseError('BACKEND_AUTH_FAILED', { detail: 'the target rejects the access token' })
    }
    await this.#flights.once('token', () => this.#replace(url, challenge))
  }

  close(): void {}

  async #obtain(): Promise<void> {
    await this.#attempt(async () => {
      this.#located ??= await this.#locate()
      if (this.#located) await this.#request(this.#located)
      else this.#open = true
    })
  }

  /** Discovers the server again, because the target may have moved to a different server. */
  async #replace(url: string, challenge: Challenge | undefined): Promise<void> {
    await this.#attempt(async () => {
      const located = await locateForMachine(this.#parts, url, challenge)
      await this.#request(located)
      this.#located = located
      this.#replacedAt = this.#parts.now()
    })
  }

  async #stepUp(challenge: Challenge | undefined): Promise<void> {
    const wanted = this.#newScopes(challenge)
    const located = this.#located
    if (!located || wanted.length === 0) return
    this.#stepUps.begin()
    this.#parts.log.info('the target requires more scopes', { scopes: wanted })
    await this.#attempt(async () => {
      const wider = { ...located, scopes: [...located.scopes, ...wanted] }
      await this.#request(wider)
      this.#located = wider
    })
  }

  /** Returns the required scopes that have not been requested yet. */
  #newScopes(challenge: Challenge | undefined): readonly string[] {
    const located = this.#located
    if (!located || challenge?.params.get('error') !== 'insufficient_scope') return []
    return scopesOf(challenge).filter((scope) => !located.scopes.includes(scope))
  }

  /** Returns undefined when the target requires no authentication, or does not respond. */
  async #locate(): Promise<Located | undefined> {
    const { settings, target, dispatcher, fetch, log } = this.#parts
    const isConfigured = settings.issuer !== undefined || settings.tokenUrl !== undefined
    if (settings.required && isConfigured)
      return locateForMachine(this.#parts, `${target.origin}${target.path ?? '/mcp'}`, undefined)
    const found = await detect(target, dispatcher, fetch)
    if (found.kind === 'protected' || settings.required)
      return locateForMachine(this.#parts, found.url, found.challenge)
    if (found.kind === 'unknown')
      log.warn('the target does not respond; cannot detect yet whether it requires authentication')
    else log.info('the target requires no authentication')
    return undefined
  }

  async #request(located: Located): Promise<void> {
    const tokens = await requestMachineToken(located, this.#parts, this.#prover)
    const proofKey = tokens.tokenType === 'dpop' ? this.#prover.key : undefined
    const now = this.#parts.now()
    const expiresAt = tokens.expiresAt ?? Number.POSITIVE_INFINITY
    const life = expiresAt - now
    this.#token = {
      ...this.#tokens.tokenFor(tokens.accessToken, proofKey),
      proofKey,
      expiresAt,
      renewAt: expiresAt - (life === Number.POSITIVE_INFINITY ? 0 : Math.min(aheadMs, life / 2)),
    }
    this.#open = false
    this.#parts.log.info('got an access token for the target', {
      target: uriOf(this.#parts.target),
      scopes: located.scopes,
    })
  }

  /** Caches a failure for a short time, so that not every caller causes another request. */
  async #attempt(run: () => Promise<void>): Promise<void> {
    const { signal, now, log } = this.#parts
    if (this.#failure && now() < this.#failure.untilMs) throw this.#failure.error
    try {
      await run()
      this.#failure = undefined
    } catch (error) {
      if (signal.aborted) throw error
      const isTemporary = tokenRefusal(error) === 'temporary'
      const failure = failureOf(error, isTemporary)
      const retryAfterMs = error instanceof OAuthClientError ? (error.retryAfterSec ?? 0) * 1000 : 0
      const pause = Math.max(isTemporary ? pauseMs.temporary : pauseMs.rejected, retryAfterMs)
      this.#failure = { error: failure, untilMs: now() + Math.min(pause, pauseMs.longest) }
      log.warn('could not get an access token for the target', { err: error })
      throw failure
    }
  }

  #hasExpired({ expiresAt }: HeldToken): boolean {
    return expiresAt <= this.#parts.now()
  }
}

function failureOf(cause: unknown, isTemporary: boolean): GatehouseError {
  const text = 'could not get an access token for the target'
  const detail = cause instanceof GatehouseError ? `${text}: ${cause.message}` : text
  return isTemporary
    ? unavailable(detail, cause)
    : new GatehouseError('BACKEND_AUTH_FAILED', { detail, cause })
}
