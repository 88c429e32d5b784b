/**
 * The proxy's own login at its target, over its whole life: found necessary, done, renewed ahead of expiry, renewed
 * when the target refuses the token, widened when the target asks for more scopes, persisted for the next start.
 *
 * One renewal or login at a time; whoever needs it waits for the same one. A renewal that fails for a while leaves the
 * token in use as long as it lives. Interactive logins after the first are limited, so that a broken target cannot
 * make browser windows pop up.
 * Source: docs/specification/proxy-command.md#outgoing, "Outgoing"; MCP 2025-11-25 authorization ("Scope Challenge Handling").
 */
import { GatehouseError, isFields } from '../../../schemas/index.ts'
import type { TargetAddress } from '../../config/index.ts'
import type { Dispatcher } from '../../net/index.ts'
import {
  type Challenge,
  hintedClient,
  hintFor,
  isGrantRefused,
  isTransient,
  type OAuthClient,
  OAuthClientError,
  refreshGrant,
  refusesClient,
  type TokenSet,
} from '../../oauth/index.ts'
import type { TokenSource } from '../credential.ts'
import { detect } from './detect.ts'
import { type Located, locate, scopesOf } from './locate.ts'
import { type LoginClient, renewedClient } from './registration.ts'
import { waitAfterFailure } from './renewal-pace.ts'
import { signIn, type SignInParts } from './sign-in.ts'

export interface LoginParts extends SignInParts {
  readonly target: TargetAddress
  readonly dispatcher: Dispatcher
}

type Flight = 'login' | 'renew' | 'step-up'

/** All that is needed to use and renew a login. Plain JSON, persisted between runs. */
interface LoginState extends LoginClient {
  readonly located: Located
  readonly tokens: TokenSet
}

/** A token is not sent any more when it ends this soon. */
const marginMs = 10_000
/** A renewal in the background starts this long before the end. */
const aheadMs = 60_000
const maxStepUps = 3
/** Asking again for what was asked for already helps once at most: when the user had left a scope out. */
const maxRepeats = 1
const freshMs = 30_000
const minBetweenLoginsMs = 60_000
const stepUpWindowMs = 600_000
const longestTimerMs = 86_400_000

export class TargetLogin implements TokenSource {
  readonly #parts: LoginParts
  #session: LoginState | undefined
  /** The target was asked and wants nothing. */
  #open = false
  /** An offered login that failed is not offered again. */
  #gaveUp = false
  #failure: GatehouseError | undefined
  #flight: { readonly kind: Flight; readonly done: Promise<void> } | undefined
  #timer: NodeJS.Timeout | undefined
  #stepUps = 0
  /** Step-ups in a row that asked for nothing new. */
  #repeats = 0
  #steppedUpAt = Number.NEGATIVE_INFINITY
  #renewedAt = Number.NEGATIVE_INFINITY
  /** When a login was last begun because the target refused one. */
  #againAt = Number.NEGATIVE_INFINITY

  constructor(parts: LoginParts) {
    this.#parts = parts
  }

  /**
   * Reloads a persisted login, or finds out what the target wants and signs in. Resolves when requests can be served.
   * Rejects with OAuthClientError, GatehouseError or the signal's reason.
   */
  async start(): Promise<void> {
    await this.#once('login', () => this.#start())
  }

  async #start(): Promise<void> {
    const { settings, target, dispatcher, fetch, log } = this.#parts
    const persisted = this.#parts.persisted.read(this.#persistedName())
    if (isSession(persisted) && (await this.#reload(persisted))) return
    const typed = settings.issuer !== undefined || settings.authorizeUrl !== undefined
    if (settings.required && typed) return this.#signIn(`${target.origin}${target.path ?? '/mcp'}`, undefined)
    const found = await detect(target, dispatcher, fetch)
    if (found.kind === 'protected' || settings.required) return this.#signIn(found.url, found.challenge)
    if (found.kind === 'unknown')
      log.warn('the target does not answer: whether it wants authentication is not known yet')
    else log.info('the target wants no authentication')
    this.#open = true
  }

  /** The configured client; its secret may have changed since the login was persisted. */
  #configuredClient(): OAuthClient | undefined {
    const { clientId, clientSecret, provider } = this.#parts.settings
    if (clientId === undefined) return undefined
    return hintedClient(hintFor(provider), { clientId, clientSecret: clientSecret?.reveal() })
  }

  async #reload(persisted: LoginState): Promise<boolean> {
    const session = { ...persisted, client: this.#configuredClient() ?? persisted.client }
    this.#session = session
    if (!this.#isDue(session)) {
      this.#schedule()
      return true
    }
    try {
      await this.#refresh(session)
      return true
    } catch (error) {
      this.#parts.log.info('the persisted login is no longer valid', { err: error })
      this.#session = undefined
      this.#parts.persisted.remove(this.#persistedName())
      return false
    }
  }

  /**
   * The access token, or undefined when the target wants none. Throws BACKEND_UNAVAILABLE (with Retry-After) while a
   * login runs or the authorization server is away, BACKEND_AUTH_FAILED when somebody has to sign in again.
   */
  token(): string | undefined | Promise<string | undefined> {
    const session = this.#session
    if (session && !this.#isDue(session)) return session.tokens.accessToken
    if (!session && this.#open) return undefined
    return this.#awaitToken()
  }

  /** When the access token ends, Unix milliseconds; undefined when nobody said. */
  get expiresAt(): number | undefined {
    return this.#session?.tokens.expiresAt
  }

  /** The ID token of the login, when there is one. */
  get idToken(): string | undefined {
    return this.#session?.tokens.idToken
  }

  async #awaitToken(): Promise<string | undefined> {
    const session = this.#session
    if (!session) throw this.#failure ?? unavailable('the login to the target is not complete')
    await this.#renewOnce(session)
    return this.#session?.tokens.accessToken
  }

  /** True when a response with this status is for this login to act on. */
  concerns(status: number, challenge: Challenge | undefined): boolean {
    if (this.#gaveUp) return false
    if (status === 401) return this.#session !== undefined || (this.#open && challenge !== undefined)
    const widen = challenge?.params.get('error') === 'insufficient_scope' && challenge.params.has('scope')
    return status === 403 && widen && this.#session !== undefined && !this.#hasSteppedUpEnough(challenge)
  }

  /** The target refused `usedToken` at `url`: gets a better one. Throws like `token`. */
  async refused(
    status: number,
    challenge: Challenge | undefined,
    url: string,
    usedToken: string | undefined,
  ): Promise<void> {
    const session = this.#session
    // Somebody else renewed it meanwhile.
    if (session && usedToken !== undefined && session.tokens.accessToken !== usedToken) return
    if (status === 403) return this.#once('step-up', () => this.#stepUp(challenge, url))
    if (session?.tokens.refreshToken !== undefined && !this.#isFresh()) return this.#renewOnce(session)
    return this.#once('login', () => this.#signInAgain(url, challenge))
  }

  #hasSteppedUpEnough(challenge: Challenge): boolean {
    if (this.#parts.now() - this.#steppedUpAt >= stepUpWindowMs) return false
    return this.#stepUps >= maxStepUps || (this.#repeats >= maxRepeats && this.#isRepeat(scopesOf(challenge)))
  }

  #isRepeat(wanted: readonly string[]): boolean {
    return wanted.every((scope) => this.#session?.located.scopes.includes(scope))
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** Just renewed and refused all the same: another renewal would not help. */
  #isFresh(): boolean {
    return this.#parts.now() - this.#renewedAt < freshMs
  }

  #renewOnce(session: LoginState): Promise<void> {
    return this.#once('renew', async () => {
      if (this.#session !== session) return
      try {
        await this.#refresh(session)
      } catch (error) {
        // A client of our own that the server no longer knows: the refresh token was bound to it.
        const lost = this.#parts.settings.clientId === undefined && refusesClient(error)
        if (isGrantRefused(error) || lost) {
          this.#parts.persisted.remove(this.#persistedName())
          throw this.#fail('the login to the target has ended: sign in again by restarting the proxy', error)
        }
        if (isTransient(error) && !this.#isOver(session)) return
        this.#parts.log.warn('the access token could not be renewed', { err: error })
        throw unavailable('the token is temporarily unavailable', error)
      }
    })
  }

  async #refresh(session: LoginState): Promise<void> {
    const { located, tokens } = session
    if (tokens.refreshToken === undefined) {
      throw new OAuthClientError('refused', 'the login cannot be renewed', { error: 'invalid_grant' })
    }
    const client = await renewedClient(session, located, this.#parts)
    const renewed = await refreshGrant({
      server: located.server,
      client: client.client,
      refreshToken: tokens.refreshToken,
      resource: located.resource,
      fetch: this.#parts.fetch,
      signal: this.#parts.signal,
      now: this.#parts.now,
    })
    // The ID token of the login stays the proof of who signed in when a renewal brings none.
    this.#adopt({ ...session, ...client, tokens: { ...renewed, idToken: renewed.idToken ?? tokens.idToken } })
    this.#renewedAt = this.#parts.now()
  }

  async #stepUp(challenge: Challenge | undefined, url: string): Promise<void> {
    const now = this.#parts.now()
    const goesOn = now - this.#steppedUpAt < stepUpWindowMs
    const wanted = scopesOf(challenge)
    this.#stepUps = goesOn ? this.#stepUps + 1 : 1
    if (this.#isRepeat(wanted)) this.#repeats = goesOn ? this.#repeats + 1 : 1
    else this.#repeats = 0
    this.#steppedUpAt = now
    this.#parts.log.info('the target asks for more scopes', { scopes: wanted })
    await this.#signIn(url, challenge, [...(this.#session?.located.scopes ?? []), ...wanted])
  }

  async #signInAgain(url: string, challenge: Challenge | undefined): Promise<void> {
    const now = this.#parts.now()
    if (now - this.#againAt < minBetweenLoginsMs) {
      throw (
        this.#failure ?? new GatehouseError('BACKEND_AUTH_FAILED', { detail: 'the target refuses the login' })
      )
    }
    this.#againAt = now
    await this.#signIn(url, challenge)
  }

  /** `url` is as clients name it; a target with a path of its own has one endpoint. */
  async #signIn(url: string, challenge: Challenge | undefined, scopes?: readonly string[]): Promise<void> {
    const parts = this.#parts
    try {
      const found = await locate({
        settings: parts.settings,
        targetUri: uriOf(parts.target),
        url: parts.target.path === undefined ? url : uriOf(parts.target),
        challenge,
        fetch: parts.fetch,
        signal: parts.signal,
      })
      const located = scopes === undefined ? found : { ...found, scopes: [...new Set(scopes)] }
      const signedIn = await signIn(located, parts)
      this.#open = false
      this.#failure = undefined
      this.#adopt({ located, ...signedIn })
      parts.log.info('signed in to the target')
    } catch (error) {
      throw this.#fail('the login to the target failed', error)
    }
  }

  #adopt(session: LoginState): void {
    this.#session = session
    this.#parts.persisted.write(this.#persistedName(), session)
    this.#schedule()
  }

  /** Renews in the background, so that no request has to wait for it. */
  #schedule(): void {
    clearTimeout(this.#timer)
    const session = this.#session
    const { expiresAt, refreshToken } = session?.tokens ?? {}
    if (!session || expiresAt === undefined || refreshToken === undefined) return
    const life = expiresAt - this.#parts.now()
    const wait = Math.max(life - Math.min(aheadMs, life / 2), 0)
    this.#timer = setTimeout(() => void this.#renewInBackground(session), Math.min(wait, longestTimerMs))
    this.#timer.unref()
  }

  /** Failures are tried again for a while; a request that needs the token tries at once, and reports. */
  async #renewInBackground(session: LoginState, failures = 0, since = this.#parts.now()): Promise<void> {
    const { pace } = this.#parts.settings
    try {
      await this.#renewOnce(session)
    } catch (error) {
      // Somebody has to sign in again.
      if (error === this.#failure) return
    }
    if (this.#session !== session || this.#parts.signal.aborted) return
    const wait = waitAfterFailure(pace, failures + 1, this.#parts.now() - since)
    if (wait === undefined) return
    const again = (): void => void this.#renewInBackground(session, failures + 1, since)
    this.#timer = setTimeout(again, Math.min(wait, longestTimerMs))
    this.#timer.unref()
  }

  #isDue({ tokens }: LoginState): boolean {
    return tokens.expiresAt !== undefined && tokens.expiresAt - marginMs <= this.#parts.now()
  }

  #isOver({ tokens }: LoginState): boolean {
    return tokens.expiresAt !== undefined && tokens.expiresAt <= this.#parts.now()
  }

  #fail(text: string, cause: unknown): GatehouseError {
    const detail = cause instanceof GatehouseError ? `${text}: ${cause.message}` : text
    this.#failure =
      cause instanceof GatehouseError && cause.code === 'INVALID_CONFIG'
        ? cause
        : new GatehouseError('BACKEND_AUTH_FAILED', { detail, cause })
    this.#parts.log.warn(text, { err: cause })
    // Without the login the target is forwarded to as if nobody had offered one.
    if (this.#parts.settings.optional && !this.#session) {
      this.#open = true
      this.#gaveUp = true
    }
    return this.#failure
  }

  /** One at a time; those who want the same share it. */
  async #once(kind: Flight, run: () => Promise<void>): Promise<void> {
    while (this.#flight && this.#flight.kind !== kind) await this.#flight.done.catch(() => undefined)
    this.#flight ??= {
      kind,
      done: run().finally(() => {
        this.#flight = undefined
      }),
    }
    await this.#flight.done
  }

  #persistedName(): string {
    const { target, settings } = this.#parts
    const { issuer, tokenUrl, clientId, scopes, resource } = settings
    return JSON.stringify(['login', uriOf(target), issuer, tokenUrl, clientId, scopes, resource])
  }
}

function uriOf({ origin, path = '' }: TargetAddress): string {
  return origin + path
}

function unavailable(text: string, cause?: unknown): GatehouseError {
  return new GatehouseError('BACKEND_UNAVAILABLE', {
    detail: text,
    headers: { 'Retry-After': '10' },
    ...(cause === undefined ? {} : { cause }),
  })
}

function isSession(value: unknown): value is LoginState {
  return (
    isFields(value) && isFields(value['located']) && isFields(value['client']) && isFields(value['tokens'])
  )
}
