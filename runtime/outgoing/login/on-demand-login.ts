/**
 * A user's login at one backend, for a server on the user's own machine. Sends the token, renews it, and reports when
 * the user must sign in. The user starts the login with a browser; any number of browsers may open the same login, and
 * one of them completes it.
 *
 * A login is required once the backend rejects a request with a Bearer or DPoP challenge, or with a plain 401 when it
 * publishes a protected-resource document.
 */
import type { GatehouseError } from '../../../schemas/index.ts'
import { type OAuthSettings, parseTarget } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import { discoverResource, OAuthClientError, tokenChallenge } from '../../oauth/index.ts'
import { type OutgoingRequest, setToken } from '../strategy.ts'
import { type LoginFetch, makeLoginFetch } from './fetches.ts'
import { TargetLogin } from './login.ts'
import { type OnDemand, signInRequired } from './login-parts.ts'
import { persistInDirectory, persistNothing } from './persisted.ts'

export interface OnDemandLoginParts extends OnDemand {
  readonly url: URL
  readonly settings: OAuthSettings
  /** PEM certificates to trust in addition to the system's certificates. */
  readonly ca: string | undefined
  readonly log: Log
  readonly now: () => number
}

/** The next step of a login that a browser requested. */
export type SignInStep =
  /** The browser must open this URL, which works once. */
  | { readonly kind: 'open'; readonly url: string }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed' }
  /** Another process is signing in, or the authorization server has not responded yet. */
  | { readonly kind: 'wait' }

interface OpenedLogin {
  readonly login: TargetLogin
  readonly fetch: LoginFetch
}

/** A login that is in progress. */
interface Attempt {
  /** Settles with the function that returns the URL for one browser. */
  readonly presented: Promise<() => string>
  readonly done: Promise<void>
}

const limitMs = 10_000
/** How long a browser waits for the authorization server. */
const maxWaitMs = 20_000
/** Time after which a missing protected-resource document is requested from the backend again. */
const absentMs = 60_000

export class OnDemandLogin {
  readonly #parts: OnDemandLoginParts
  readonly #stop = new AbortController()
  readonly #opened: Promise<OpenedLogin>
  #login: TargetLogin | undefined
  #attempt: Attempt | undefined
  #present: ((enter: () => string) => void) | undefined
  #absentUntil = 0

  constructor(parts: OnDemandLoginParts) {
    this.#parts = parts
    this.#opened = this.#open()
  }

  async #open(): Promise<OpenedLogin> {
    const { url, settings, ca, log, now, address, onChange } = this.#parts
    const target = parseTarget(url.href, { withPath: true })
    const fetch = await makeLoginFetch({ target, typed: [], ca })
    const { keep } = settings
    const login = new TargetLogin({
      settings,
      target,
      fetch: fetch.fetch,
      log,
      now,
      signal: this.#stop.signal,
      persisted: keep ? persistInDirectory(keep.dir, keep.password, log) : persistNothing,
      needIdToken: false,
      notify() {},
      open: async () => false,
      present: (enter) => this.#present?.(enter),
      onDemand: { address, onChange },
    })
    await login.start()
    this.#login = login
    return { login, fetch }
  }

  /** True while the user must sign in, for everything or for requests that need more scopes. */
  get isWaiting(): boolean {
    return this.#login?.isWaiting ?? false
  }

  /** Returns BACKEND_SIGN_IN_REQUIRED while the user must sign in. */
  get signInError(): GatehouseError | undefined {
    return this.isWaiting ? signInRequired(this.#parts.address()) : undefined
  }

  /** Adds the token, if there is one. Rejects with BACKEND_SIGN_IN_REQUIRED or an error of `TargetLogin.token`. */
  async apply(request: OutgoingRequest): Promise<void> {
    // The client's own credential takes precedence.
    if (request.headers['authorization'] !== undefined) return
    const { login } = await this.#opened
    const token = await login.token()
    if (token !== undefined) setToken(request, token)
  }

  /**
   * Handles a response with the status 401 or 403. Resolves to true if another attempt may succeed, and to false if the
   * response does not concern the login. Rejects with BACKEND_SIGN_IN_REQUIRED or an error of `TargetLogin.token`.
   */
  async rejected(
    { headers }: Pick<OutgoingRequest, 'headers'>,
    status: number,
    authenticate: string | string[] | undefined,
  ): Promise<boolean> {
    const { login, fetch } = await this.#opened
    const usedToken = /^(?:Bearer|DPoP) (.*)$/.exec(headers['authorization'] ?? '')?.[1]
    const challenge = tokenChallenge(authenticate)
    const isOurs =
      login.concerns(status, challenge) ||
      (status === 401 && authenticate === undefined && (await this.#isProtected(fetch)))
    if (!isOurs) return false
    await login.refused({ status, challenge, url: this.#parts.url.href, usedToken })
    return true
  }

  async #isProtected({ fetch }: LoginFetch): Promise<boolean> {
    const { url, now } = this.#parts
    if (now() < this.#absentUntil) return false
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(limitMs)])
    try {
      const document = await discoverResource(url.href, { fetch, signal })
      if (document && document.authorizationServers.length > 0) return true
    } catch (error) {
      if (!(error instanceof OAuthClientError) && !signal.aborted) throw error
    }
    this.#absentUntil = now() + absentMs
    return false
  }

  /** Starts the login for one browser, or joins the login in progress. */
  async begin(): Promise<SignInStep> {
    const { login } = await this.#opened
    // An attempt continues for a moment after the login, while it closes its callback address.
    if (!login.isWaiting) return { kind: 'done' }
    const { presented, done } = (this.#attempt ??= this.#start(login))
    const timeout = AbortSignal.timeout(maxWaitMs)
    return Promise.race<SignInStep>([
      presented.then((enter) => ({ kind: 'open', url: enter() })),
      done.then(
        () => ({ kind: 'done' }),
        () => ({ kind: 'failed' }),
      ),
      new Promise((resolve) => timeout.addEventListener('abort', () => resolve({ kind: 'wait' }))),
    ])
  }

  #start(login: TargetLogin): Attempt {
    const { promise: presented, resolve } = Promise.withResolvers<() => string>()
    // When the server rejects a client, the login switches to another client and calls `#present` again.
    let current: (() => string) | undefined
    this.#present = (enter) => {
      current = enter
      resolve(() => (current ?? enter)())
    }
    const done = login.signIn().finally(() => {
      this.#attempt = undefined
    })
    // The login has logged the reason.
    done.catch(() => undefined)
    return { presented, done }
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the server is shutting down'))
    const { login, fetch } = await this.#opened
    login.close()
    await fetch.close()
  }
}
