/**
 * What the strategies with an obtained bearer token have in common: the cache key, the header, forgetting.
 */
import { hash } from 'node:crypto'
import type { Caller } from '../net/index.ts'
import type { OAuthClient, TokenSet } from '../oauth/index.ts'
import { CredentialCache, type Obtained, type Used } from './cache.ts'
import type { StrategyParts } from './config.ts'
import { credentialFailure } from './failure.ts'
import { dropCallerToken, type OutgoingRequest, type CredentialStrategy, setBearer } from './strategy.ts'
import { type SubjectToken, withSubjectToken } from './subject.ts'

/** Before expiry. */
const defaultMarginMs = 30_000

export interface TokenStrategyRules {
  readonly type: string
  /** Header for the token, lower case. Default authorization. */
  readonly headerName?: string | undefined
  readonly subject: SubjectToken
  /** What the token depends on beside caller and subject token: configuration and current secrets. */
  readonly fingerprint: () => string
  /** Gets a token for a subject token. */
  readonly obtain: (subjectToken: string) => Promise<TokenSet>
  /** Gets a token for the gateway itself (health checks); undefined sends nothing. */
  readonly obtainOwn?: (() => Promise<TokenSet>) | undefined
  readonly marginMs?: number | undefined
}

export class TokenStrategy implements CredentialStrategy {
  readonly type: string
  readonly perCaller = true
  readonly headerNames: readonly string[]
  readonly #rules: TokenStrategyRules
  readonly #parts: StrategyParts
  readonly #used = new WeakMap<OutgoingRequest, Used>()

  constructor(rules: TokenStrategyRules, parts: StrategyParts) {
    this.type = rules.type
    this.headerNames = [rules.headerName ?? 'authorization']
    this.#rules = rules
    this.#parts = parts
  }

  async apply(request: OutgoingRequest, caller: Caller | undefined, signal?: AbortSignal): Promise<void> {
    if (caller === undefined) return this.#applyOwn(request, signal)
    const { subject, obtain, headerName } = this.#rules
    const { upstream } = this.#parts
    await withSubjectToken(caller, subject, { upstream, signal }, (token) => {
      const key = this.#key(caller.key, hash('sha256', token, 'base64url'))
      return this.#put(request, key, () => obtained(obtain(token), { subject: true }), signal)
    })
    if (headerName !== undefined && headerName !== 'authorization') dropCallerToken(request.headers, caller)
  }

  refused(request: OutgoingRequest): boolean {
    const used = this.#used.get(request)
    return used !== undefined && this.#parts.cache.refused(used.key, used.credential)
  }

  async #applyOwn(request: OutgoingRequest, signal?: AbortSignal): Promise<void> {
    const { obtainOwn } = this.#rules
    if (!obtainOwn) return
    await this.#put(
      request,
      this.#key(undefined, undefined),
      () => obtained(obtainOwn(), { subject: false }),
      signal,
    )
  }

  #key(caller: string | undefined, subject: string | undefined): string {
    return CredentialCache.key(this.type, this.#rules.fingerprint(), caller, subject)
  }

  async #put(
    request: OutgoingRequest,
    key: string,
    obtain: () => Promise<Obtained>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { headerName, marginMs = defaultMarginMs } = this.#rules
    const told = (): Promise<Obtained> => tellObtained(this.#parts, this.type, obtain)
    const credential = await this.#parts.cache.get(key, marginMs, told, signal)
    setBearer(request.headers, credential['accessToken'] ?? '', headerName)
    this.#used.set(request, { key, credential })
  }
}

/** Obtains a credential and tells how that went. */
export async function tellObtained(
  { obtained }: Pick<StrategyParts, 'obtained'>,
  strategy: string,
  obtain: () => Promise<Obtained>,
): Promise<Obtained> {
  try {
    const result = await obtain()
    obtained(strategy, undefined)
    return result
  } catch (error) {
    obtained(strategy, error)
    throw error
  }
}

/** The tokens in the cache's form, failures in this module's classes. */
async function obtained(
  pending: Promise<TokenSet>,
  { subject }: { readonly subject: boolean },
): Promise<Obtained> {
  try {
    const tokens = await pending
    return { credential: { accessToken: tokens.accessToken }, expiresAt: tokens.expiresAt }
  } catch (error) {
    throw credentialFailure(error, { subject })
  }
}

/** A client from configured parts, or undefined when there is no id. */
export function clientFrom(id: string | undefined, secret: string | undefined): OAuthClient | undefined {
  return id ? { clientId: id, clientSecret: secret } : undefined
}
