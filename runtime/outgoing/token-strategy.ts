/**
 * The base of the strategies that obtain a bearer token. It caches the token, sets the header and drops rejected
 * tokens.
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../schemas/index.ts'
import type { Caller } from '../net/index.ts'
import type { TokenSet } from '../oauth/index.ts'
import { CredentialCache, type ObtainedCredential, type UsedCredential } from './cache.ts'
import type { StrategyParts } from './config.ts'
import { credentialFailure } from './failure.ts'
import { dropCallerToken, type OutgoingRequest, type CredentialStrategy, setBearer } from './strategy.ts'
import { type SubjectToken, withSubjectToken } from './subject.ts'

/**
 * Pauses after a failed request for the gateway's own token, which all callers need. Otherwise, a caller could cause
 * one request per call. A retry rarely changes a rejection.
 */
const pauseMs = { temporary: 1_000, rejected: 10_000 }

/** Milliseconds before expiry at which a token is replaced. */
const defaultMarginMs = 30_000

export interface TokenStrategyRules {
  readonly type: string
  /** Header for the token, in lower case. Default authorization. */
  readonly headerName?: string | undefined
  /** Obtains a token for a subject token. Undefined: all requests carry the gateway's own token. */
  readonly forCaller?:
    | {
        readonly subject: SubjectToken
        readonly obtain: (subjectToken: string) => Promise<TokenSet>
      }
    | undefined
  /** Returns everything else that the token depends on: the configuration and the current secrets. */
  readonly fingerprint: () => string
  /** Names of the settings for the gateway's client, for errors. */
  readonly settings: string
  /** Obtains a token for the gateway itself. Undefined: requests without a caller carry no token. */
  readonly obtainOwn?: (() => Promise<TokenSet>) | undefined
  readonly marginMs?: number | undefined
}

export class TokenStrategy implements CredentialStrategy {
  readonly type: string
  readonly perCaller: boolean
  readonly headerNames: readonly string[]
  readonly #rules: TokenStrategyRules
  readonly #parts: StrategyParts
  readonly #used = new WeakMap<OutgoingRequest, UsedCredential>()
  #failure: { readonly key: string; readonly error: GatehouseError; readonly untilMs: number } | undefined

  constructor(rules: TokenStrategyRules, parts: StrategyParts) {
    this.type = rules.type
    this.perCaller = rules.forCaller !== undefined
    this.headerNames = [rules.headerName ?? 'authorization']
    this.#rules = rules
    this.#parts = parts
  }

  async apply(request: OutgoingRequest, caller: Caller | undefined, signal?: AbortSignal): Promise<void> {
    const { forCaller, headerName, settings } = this.#rules
    if (caller === undefined || !forCaller) return this.#applyOwn(request, signal)
    const { subject, obtain } = forCaller
    const { upstream } = this.#parts
    await withSubjectToken(caller, subject, { upstream, signal }, (token) => {
      const key = this.#key(caller.key, hash('sha256', token, 'base64url'))
      return this.#put(request, key, () => toCredential(obtain(token), { subject: true, settings }), signal)
    })
    if (headerName !== undefined && headerName !== 'authorization') dropCallerToken(request.headers, caller)
  }

  refused(request: OutgoingRequest): boolean {
    const used = this.#used.get(request)
    return used !== undefined && this.#parts.cache.refused(used.key, used.credential)
  }

  async #applyOwn(request: OutgoingRequest, signal?: AbortSignal): Promise<void> {
    const { obtainOwn, settings } = this.#rules
    if (!obtainOwn) return
    const key = this.#key(undefined, undefined)
    const obtain = async (): Promise<ObtainedCredential> => {
      const failure = this.#failure
      if (failure?.key === key && this.#parts.now() < failure.untilMs) throw failure.error
      try {
        return await toCredential(obtainOwn(), { subject: false, settings })
      } catch (error) {
        if (error instanceof GatehouseError) this.#failure = { key, error, untilMs: this.#pauseEnd(error) }
        throw error
      }
    }
    await this.#put(request, key, obtain, signal)
  }

  #pauseEnd({ code }: GatehouseError): number {
    const isTemporary = code === 'BACKEND_AUTH_UNAVAILABLE'
    return this.#parts.now() + (isTemporary ? pauseMs.temporary : pauseMs.rejected)
  }

  #key(caller: string | undefined, subject: string | undefined): string {
    return CredentialCache.key(this.type, this.#rules.fingerprint(), caller, subject)
  }

  async #put(
    request: OutgoingRequest,
    key: string,
    obtain: () => Promise<ObtainedCredential>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { headerName, marginMs = defaultMarginMs } = this.#rules
    const obtainAndReport = (): Promise<ObtainedCredential> => reportObtained(this.#parts, this.type, obtain)
    const credential = await this.#parts.cache.get(key, marginMs, obtainAndReport, signal)
    setBearer(request.headers, credential['accessToken'] ?? '', headerName)
    this.#used.set(request, { key, credential })
  }
}

/** Obtains a credential and reports success or failure. */
export async function reportObtained(
  { obtained }: Pick<StrategyParts, 'obtained'>,
  strategy: string,
  obtain: () => Promise<ObtainedCredential>,
): Promise<ObtainedCredential> {
  try {
    const result = await obtain()
    obtained(strategy, undefined)
    return result
  } catch (error) {
    obtained(strategy, error)
    throw error
  }
}

/** Converts tokens to a cache entry, and failures to this module's errors. */
async function toCredential(
  pending: Promise<TokenSet>,
  from: Parameters<typeof credentialFailure>[1],
): Promise<ObtainedCredential> {
  try {
    const tokens = await pending
    return { credential: { accessToken: tokens.accessToken }, expiresAt: tokens.expiresAt }
  } catch (error) {
    throw credentialFailure(error, from)
  }
}
