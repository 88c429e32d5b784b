/**
 * A user's login at a target: detects that a login is needed, signs in, renews the token, and requests more scopes when
 * the target requires them. Persists the login for the next start.
 *
 * Only one renewal or login runs at a time, and all callers wait for it. When a renewal fails temporarily, the token
 * stays in use until it expires. A rejected renewal ends the login, and the refresh token is not used again. Several
 * processes may share one persisted login. Only one process renews the login at a time, and the other processes adopt
 * the renewed login. Logins after the first are limited, so that a broken target cannot open browser windows
 * repeatedly. With `onDemand`, no login starts until the user requests a login.
 * Source: docs/reference/specification/proxy-command.md#outgoing; MCP 2025-11-25 ("Scope Challenge Handling").
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type Challenge, endsRefreshToken, type ProofKey, tokenRefusal } from '../../oauth/index.ts'
import type { AccessToken } from '../strategy.ts'
import { LoginTokens, type OwnLogin, proofRefusal, type Rejection } from './token-source.ts'
import { aheadMs, BackgroundRenewal } from './background-renewal.ts'
import { detect } from './detect.ts'
import { ExclusiveWork } from './file-lock.ts'
import { scopesOf } from './locate.ts'
import {
  type LoginParts,
  loginPauses,
  type OnDemand,
  signInRequired,
  type WantedLogin,
} from './login-parts.ts'
import { renewLogin, signInFor } from './new-login.ts'
import {
  isDue,
  isKeptLogin,
  isOver,
  keyOf,
  laterState,
  type KeptLogin,
  marginMs,
  findKeptLogin,
  persistedName,
  persistedNames,
  unavailable,
  uriOf,
  withRequiredProof,
} from './kept-login.ts'
import { configuredClient } from './registration.ts'
import { StepUps } from './step-ups.ts'

export class TargetLogin implements OwnLogin {
  readonly #parts: LoginParts
  /** Name under which the login is persisted. Replaced when the login is found under another name. */
  #name: string
  #session: KeptLogin | undefined
  /** The target requires no authentication. */
  #open = false
  /** A login that has already failed is not offered again. */
  #gaveUp = false
  #failure: GatehouseError | undefined
  /** The login that ended, kept because another process may sign in again. */
  #lost: KeptLogin | undefined
  /** Set when a renewal was rejected even though the login may still be valid. */
  #refusal: { readonly error: GatehouseError; readonly untilMs: number } | undefined
  readonly #flights = new ExclusiveWork<'login' | 'renew' | 'step-up'>()
  readonly #background: BackgroundRenewal
  readonly #stepUps: StepUps
  readonly #tokens = new LoginTokens()
  /** The login that waits for the user. */
  #wanted: WantedLogin | undefined
  #renewedAt = Number.NEGATIVE_INFINITY
  /** Time of the last login that was started because the target rejected the previous login. */
  #againAt = Number.NEGATIVE_INFINITY

  constructor(parts: LoginParts) {
    this.#parts = parts
    this.#name = persistedName(parts.target, parts.settings)
    this.#stepUps = new StepUps(parts.now)
    this.#background = new BackgroundRenewal(parts.settings.pace, parts.now)
  }

  /** Reloads a persisted login, or detects the target's requirements and signs in. */
  async start(): Promise<void> {
    await this.#flights.once('login', () => this.#start())
  }

  async #start(): Promise<void> {
    const { settings, target, dispatcher, fetch, log, onDemand } = this.#parts
    const persisted = this.#findKept()
    if (onDemand || !dispatcher) {
      // A request renews the login if necessary.
      if (persisted) this.#take(persisted)
      else this.#open = true
      return
    }
    if (persisted && (await this.#reload(persisted))) return
    const typed = settings.issuer !== undefined || settings.authorizeUrl !== undefined
    if (settings.required && typed)
      return this.#signInOnce({ url: `${target.origin}${target.path ?? '/mcp'}`, challenge: undefined })
    const found = await detect(target, dispatcher, fetch)
    if (found.kind === 'protected' || settings.required) return this.#signInOnce(found)
    if (found.kind === 'unknown')
      log.warn('the target does not respond; cannot detect yet whether it requires authentication')
    else log.info('the target requires no authentication')
    this.#open = true
  }

  #findKept(): KeptLogin | undefined {
    const { persisted, target, settings } = this.#parts
    const found = findKeptLogin(persisted, persistedNames(target, settings))
    if (found) this.#name = found.name
    return found?.login
  }

  /** Signs in, or adopts the login from another process that is signing in. */
  #signInOnce(wanted: WantedLogin): Promise<void> {
    const { persisted, signal, settings, notify } = this.#parts
    const name = this.#name
    const before = persisted.read(name)
    const onWait = (): void => notify('Another process is signing in to this server. Waiting for its login')
    const signIn = async (): Promise<void> => {
      const later = laterState(persisted.read(name), isKeptLogin(before) ? before : undefined)
      return later ? this.#take(later) : this.#signIn(wanted)
    }
    const longestMs = settings.timeoutMs + aheadMs
    return persisted.exclusively(`${name} sign-in`, signal, signIn, { longestMs, onWait })
  }

  /** True while the user must sign in, for everything or for requests that need more scopes. */
  get isWaiting(): boolean {
    return this.#wanted !== undefined
  }

  /**
   * Performs the login that waits for the user. If the login fails, this method rejects, and the login remains pending.
   */
  async signIn(): Promise<void> {
    if (this.#wanted) await this.#signInOnce(this.#wanted)
  }

  /** Throws BACKEND_SIGN_IN_REQUIRED. */
  #waitForUser(wanted: WantedLogin, { address, onChange }: OnDemand): never {
    const isNew = this.#wanted === undefined
    this.#wanted = wanted
    if (isNew) onChange()
    throw signInRequired(address())
  }

  async #reload(persisted: KeptLogin): Promise<boolean> {
    this.#take(persisted)
    const session = this.#session
    if (!session || !this.#isDue(session)) return true
    try {
      await this.#renew(session, { isRefused: false })
      return true
    } catch (error) {
      this.#parts.log.info('the persisted login is unusable', { err: error })
      this.#session = undefined
      this.#open = false
      this.#gaveUp = false
      return false
    }
  }

  /** Adopts a persisted login. */
  #take(persisted: KeptLogin): void {
    this.#session = { ...persisted, client: configuredClient(this.#parts.settings) ?? persisted.client }
    this.#lost = undefined
    this.#failure = undefined
    this.#open = false
    this.#schedule()
    this.#stopWaiting()
  }

  #stopWaiting(): void {
    if (!this.#wanted) return
    this.#wanted = undefined
    this.#parts.onDemand?.onChange()
  }

  /**
   * Returns the access token, or undefined when the target requires none. Throws BACKEND_UNAVAILABLE (with Retry-After)
   * while a login is in progress or the authorization server is unavailable, and BACKEND_AUTH_FAILED when the operator
   * must sign in again.
   */
  token(): AccessToken | undefined | Promise<AccessToken | undefined> {
    const session = this.#session
    if (session && !this.#isDue(session)) return this.#tokenOf(session)
    if (!session && this.#open) return undefined
    return this.#awaitToken()
  }

  #tokenOf(session: KeptLogin): AccessToken {
    return this.#tokens.tokenFor(session.tokens.accessToken, keyOf(session))
  }

  get proofKey(): ProofKey | undefined {
    return this.#session && keyOf(this.#session)
  }

  get usableUntil(): number | undefined {
    const expiresAt = this.#session?.tokens.expiresAt
    return expiresAt === undefined ? undefined : expiresAt - marginMs
  }

  /** The login's ID token, if any. */
  get idToken(): string | undefined {
    return this.#session?.tokens.idToken
  }

  async #awaitToken(): Promise<AccessToken | undefined> {
    const session = this.#session
    if (!session) {
      if (this.#lost && this.#takeNewer(this.#lost)) return this.token()
      throw this.#failure ?? unavailable('the login to the target is not complete')
    }
    await this.#renewOnce(session, { isRefused: false })
    return this.#session && this.#tokenOf(this.#session)
  }

  /** True when this login handles a response with this status. */
  concerns(status: number, challenge: Challenge | undefined): boolean {
    if (this.#gaveUp) return false
    if (status === 401) {
      const isLost = !this.#open && this.#failure !== undefined
      return this.#session !== undefined || isLost || (this.#open && challenge !== undefined)
    }
    const widen = challenge?.params.get('error') === 'insufficient_scope' && challenge.params.has('scope')
    return (
      status === 403 &&
      widen &&
      this.#session !== undefined &&
      !this.#stepUps.isExhausted(this.#isRepeat(scopesOf(challenge)))
    )
  }

  async refused({ status, challenge, url, usedToken }: Rejection): Promise<void> {
    let session = this.#session
    // Another request has already renewed the token.
    if (session && usedToken !== undefined && session.tokens.accessToken !== usedToken) return
    if (status === 403) return this.#flights.once('step-up', () => this.#stepUp(challenge, url))
    const refusedProof = session?.proofKey && proofRefusal(challenge)
    if (refusedProof) throw refusedProof
    const isProofRequired = challenge?.proof === 'required' && this.#parts.settings.dpop !== 'off'
    if (session && !session.proofKey && isProofRequired) this.#session = session = withRequiredProof(session)
    if (!session && !this.#open && this.#failure) throw this.#failure
    const isFresh = this.#parts.now() - this.#renewedAt < loginPauses.freshMs
    if (session?.tokens.refreshToken !== undefined && !isFresh)
      return this.#renewOnce(session, { isRefused: true })
    return this.#flights.once('login', () => this.#signInAgain(url, challenge))
  }

  #isRepeat(wanted: readonly string[]): boolean {
    return wanted.every((scope) => this.#session?.located.scopes.includes(scope))
  }

  close(): void {
    this.#background.stop()
  }

  /** `isRefused` is true if the target rejected the access token, which is unusable even though it has not expired. */
  #renewOnce(session: KeptLogin, options: { readonly isRefused: boolean }): Promise<void> {
    return this.#flights.once('renew', () => this.#renew(session, options))
  }

  #renew(session: KeptLogin, { isRefused }: { readonly isRefused: boolean }): Promise<void> {
    const { persisted, signal, now } = this.#parts
    return persisted.exclusively(this.#name, signal, async () => {
      if (this.#session !== session) return
      if (this.#takeNewer(session) && !this.#isDue(this.#session)) return
      if (this.#refusal && now() < this.#refusal.untilMs) throw this.#refusal.error
      try {
        this.#adopt(await renewLogin(this.#session, this.#parts))
        this.#renewedAt = now()
      } catch (error) {
        this.#renewalFailed(this.#session, error, isRefused)
      }
    })
  }

  /** Adopts the login and returns true if another process has since renewed it. */
  #takeNewer(session: KeptLogin | undefined): boolean {
    const found = this.#session ? this.#parts.persisted.read(this.#name) : this.#findKept()
    const later = laterState(found, session)
    if (later) this.#take(later)
    return later !== undefined
  }

  /**
   * Handles a failed renewal. Throws unless the access token is usable until it expires, or another process has
   * renewed the login.
   */
  #renewalFailed(session: KeptLogin, error: unknown, isRefused: boolean): void {
    const { persisted, settings, target, log, now, onDemand } = this.#parts
    // The server no longer recognizes a client that we registered; the refresh token was bound to it.
    const isClientLost = settings.clientId === undefined && tokenRefusal(error) === 'client'
    if (endsRefreshToken(error) || isClientLost) {
      if (this.#takeNewer(session)) return
      persisted.remove(this.#name)
      const isUsable = !isRefused && !this.#isDue(session)
      const { refreshToken: _, ...tokens } = session.tokens
      this.#session = isUsable ? { ...session, tokens } : undefined
      this.#lost = session
      if (onDemand) {
        log.warn('the login has ended', { err: error })
        if (isUsable) return
        // The target may accept some requests without a login.
        this.#open = true
        this.#waitForUser({ url: uriOf(target), challenge: undefined }, onDemand)
      }
      throw this.#fail('the login to the target has ended; restart the proxy to sign in again', error)
    }
    const isTemporary = tokenRefusal(error) === 'temporary'
    if (isTemporary && !isRefused && !isOver(session, now())) return
    log.warn('renewing the access token failed', { err: error })
    const failure = unavailable('the token is temporarily unavailable', error)
    if (!isTemporary) this.#refusal = { error: failure, untilMs: now() + loginPauses.refusedMs }
    throw failure
  }

  async #stepUp(challenge: Challenge | undefined, url: string): Promise<void> {
    const { log, onDemand } = this.#parts
    const wanted = scopesOf(challenge)
    const scopes = [...(this.#session?.located.scopes ?? []), ...wanted]
    if (onDemand) this.#waitForUser({ url, challenge, scopes }, onDemand)
    this.#stepUps.begin(this.#isRepeat(wanted))
    log.info('the target requires more scopes', { scopes: wanted })
    await this.#signIn({ url, challenge, scopes })
  }

  async #signInAgain(url: string, challenge: Challenge | undefined): Promise<void> {
    const { onDemand } = this.#parts
    if (onDemand) {
      if (!this.#takeNewer(this.#session ?? this.#lost)) this.#waitForUser({ url, challenge }, onDemand)
      return
    }
    const now = this.#parts.now()
    if (now - this.#againAt < loginPauses.betweenMs) {
      if (this.#failure) throw this.#failure
      throw new GatehouseError('BACKEND_AUTH_FAILED', { detail: 'the target rejects the login' })
    }
    this.#againAt = now
    await this.#signIn({ url, challenge })
  }

  async #signIn(wanted: WantedLogin): Promise<void> {
    const skipped: string[] = []
    try {
      await signInFor(wanted, this.#parts, { skipped, adopt: (login) => this.#adopt(login) })
    } catch (error) {
      throw this.#fail(['the login to the target failed', ...skipped].join('; '), error)
    }
  }

  #adopt(signedIn: KeptLogin): void {
    const before = signedIn.savedAtMs ?? this.#lost?.savedAtMs ?? 0
    // The clock may have been set back, but the later state must have the later time.
    const session = { ...signedIn, savedAtMs: Math.max(this.#parts.now(), before + 1) }
    this.#session = session
    this.#open = false
    this.#failure = undefined
    this.#refusal = undefined
    this.#parts.persisted.write(this.#name, session)
    this.#schedule()
    this.#stopWaiting()
  }

  /** Renews the login in the background, so that no request has to wait. */
  #schedule(): void {
    const session = this.#session
    const { expiresAt, refreshToken } = session?.tokens ?? {}
    if (!session || expiresAt === undefined || refreshToken === undefined) return this.#background.stop()
    this.#background.schedule(expiresAt, async () => {
      try {
        await this.#renewOnce(session, { isRefused: false })
      } catch (error) {
        // The user must sign in again.
        if (error === this.#failure) return 'done'
      }
      return this.#session === session && !this.#parts.signal.aborted ? 'retry' : 'done'
    })
  }

  #isDue(session: KeptLogin): boolean {
    return isDue(session, this.#parts.now())
  }

  #fail(text: string, cause: unknown): GatehouseError {
    const detail = cause instanceof GatehouseError ? `${text}: ${cause.message}` : text
    this.#failure =
      cause instanceof GatehouseError && cause.code === 'INVALID_CONFIG'
        ? cause
        : new GatehouseError('BACKEND_AUTH_FAILED', { detail, cause })
    this.#parts.log.warn(text, { err: cause })
    // Without a session, an optional login is skipped and requests are forwarded.
    if (this.#parts.settings.optional && !this.#session) {
      this.#open = true
      this.#gaveUp = true
    }
    return this.#failure
  }
}
