/**
 * The base of the strategies that obtain an access token. The base caches the token, sets the header and drops rejected
 * tokens. If the backend or the token endpoint requires a bound token, the token is bound to a key (DPoP).
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../schemas/index.ts'
import type { Caller } from '../net/index.ts'
import { tokenChallenge, type TokenProofOptions, type TokenSet } from '../oauth/index.ts'
import { CredentialCache, type ObtainedCredential, type UsedCredential } from './cache.ts'
import type { StrategyParts } from './config.ts'
import { credentialFailure } from './failure.ts'
import {
  type AccessToken,
  dropCallerToken,
  type OutgoingRequest,
  type CredentialStrategy,
  setBearer,
  setToken,
} from './strategy.ts'
import { type SubjectToken, withSubjectToken } from './subject.ts'

/**
 * Pauses after a failed request for the gateway's own token, which all callers need. Otherwise, a caller could cause
 * one request per call. A retry rarely succeeds after a rejection.
 */
const pauseMs = { temporary: 1_000, rejected: 10_000 }

/** Milliseconds before expiry at which a token is replaced. */
const defaultMarginMs = 30_000

export interface TokenStrategyRules {
  readonly type: string
  /** Header for the token, in lower case. Default authorization. */
  readonly headerName?: string | undefined
  /** Obtains a token for a subject token. Undefined: all requests contain the gateway's own token. */
  readonly forCaller?:
    | {
        readonly subject: SubjectToken
        readonly obtain: (subjectToken: string, dpop: TokenProofOptions | undefined) => Promise<TokenSet>
      }
    | undefined
  /** Returns everything else that the token depends on: the configuration and the current secrets. */
  readonly fingerprint: () => string
  /** Names of the settings for the gateway's client, for errors. */
  readonly settings: string
  /** Obtains a token for the gateway itself. Undefined: requests without a caller contain no token. */
  readonly obtainOwn?: ((dpop: TokenProofOptions | undefined) => Promise<TokenSet>) | undefined
  readonly marginMs?: number | undefined
}

export class TokenStrategy implements CredentialStrategy {
  readonly type: string
  readonly perCaller: boolean
  readonly headerNames: readonly string[]
  readonly #rules: TokenStrategyRules
  readonly #parts: StrategyParts
  readonly #used = new WeakMap<OutgoingRequest, UsedCredential<AccessToken>>()
  #failure: { readonly key: string; readonly error: GatehouseError; readonly untilMs: number } | undefined

  constructor(rules: TokenStrategyRules, parts: StrategyParts) {
    this.type = rules.type
    this.perCaller = rules.forCaller !== undefined
    this.#rules = rules
    this.#parts = parts
    this.headerNames = this.#mayBind ? ['authorization', 'dpop'] : [rules.headerName ?? 'authorization']
  }

  /** The standard defines proofs only for a token in the Authorization header. */
  get #mayBind(): boolean {
    const { headerName = 'authorization' } = this.#rules
    return headerName === 'authorization'
  }

  async apply(request: OutgoingRequest, caller: Caller | undefined, signal?: AbortSignal): Promise<void> {
    const { forCaller, headerName, settings } = this.#rules
    if (caller === undefined || !forCaller) return this.#applyOwn(request, signal)
    const { subject, obtain } = forCaller
    const { upstream } = this.#parts
    const dpop = this.#proofOptions(request)
    await withSubjectToken(caller, subject, { upstream, signal }, (token) => {
      const key = this.#key(dpop, caller.key, hash('sha256', token, 'base64url'))
      const obtainToken = () => toCredential(obtain(token, dpop), dpop, { subject: true, settings })
      return this.#put(request, key, obtainToken, signal)
    })
    if (headerName !== undefined && headerName !== 'authorization') dropCallerToken(request.headers, caller)
  }

  refused(request: OutgoingRequest, authenticate?: string | readonly string[]): boolean {
    const used = this.#used.get(request)
    if (used === undefined) return false
    const { tokens, provers } = this.#parts
    const isProofRequired = tokenChallenge(authenticate)?.proof === 'required'
    if (this.#mayBind && !used.credential.proof && isProofRequired && provers.require(request.url))
      return true
    return tokens.refused(used.key, used.credential)
  }

  #proofOptions({ url }: OutgoingRequest): TokenProofOptions | undefined {
    return this.#mayBind ? this.#parts.provers.optionsFor(url) : undefined
  }

  async #applyOwn(request: OutgoingRequest, signal?: AbortSignal): Promise<void> {
    const { obtainOwn, settings } = this.#rules
    if (!obtainOwn) return
    const dpop = this.#proofOptions(request)
    const key = this.#key(dpop, undefined, undefined)
    const obtain = async (): Promise<ObtainedCredential<AccessToken>> => {
      const failure = this.#failure
      if (failure?.key === key && this.#parts.now() < failure.untilMs) throw failure.error
      try {
        return await toCredential(obtainOwn(dpop), dpop, { subject: false, settings })
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

  #key(dpop: TokenProofOptions | undefined, caller: string | undefined, subject: string | undefined): string {
    const bound = dpop?.use === 'required' ? dpop.prover.jkt : undefined
    return CredentialCache.key(this.type, this.#rules.fingerprint(), caller, subject, bound)
  }

  async #put(
    request: OutgoingRequest,
    key: string,
    obtain: () => Promise<ObtainedCredential<AccessToken>>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { headerName, marginMs = defaultMarginMs } = this.#rules
    const obtainAndReport = () => reportObtained(this.#parts, this.type, obtain)
    const credential = await this.#parts.tokens.get(key, marginMs, obtainAndReport, signal)
    if (this.#mayBind) setToken(request, credential)
    else setBearer(request.headers, credential.value, headerName)
    this.#used.set(request, { key, credential })
  }
}

/** Obtains a credential and reports success or failure. */
export async function reportObtained<Credential extends object>(
  { obtained }: Pick<StrategyParts, 'obtained'>,
  strategy: string,
  obtain: () => Promise<ObtainedCredential<Credential>>,
): Promise<ObtainedCredential<Credential>> {
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
  dpop: TokenProofOptions | undefined,
  from: Parameters<typeof credentialFailure>[1],
): Promise<ObtainedCredential<AccessToken>> {
  try {
    const { accessToken: value, tokenType, expiresAt } = await pending
    const proof = tokenType === 'dpop' ? dpop?.prover.forToken(value) : undefined
    return { credential: { value, proof }, expiresAt }
  } catch (error) {
    throw credentialFailure(error, from)
  }
}
