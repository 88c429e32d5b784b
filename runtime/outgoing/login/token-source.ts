/** The interface between a login at a target and the code that sends its token. */
import { GatehouseError } from '../../../schemas/index.ts'
import { type Challenge, type ProofKey, Prover } from '../../oauth/index.ts'
import type { AccessToken } from '../strategy.ts'

/** A request that the target rejected. */
export interface Rejection {
  /** 401 or 403. */
  readonly status: number
  readonly challenge: Challenge | undefined
  readonly url: string
  /** The access token in the request. */
  readonly usedToken: string | undefined
}

/** The source of the login token: the login itself, or the process that owns it. */
export interface TokenSource {
  /** Returns undefined when the target requires no token. Throws GatehouseError when no token is available. */
  token(): AccessToken | undefined | Promise<AccessToken | undefined>
  readonly idToken: string | undefined
  concerns(status: number, challenge: Challenge | undefined): boolean
  /** Obtains another token after a rejection. Throws like `token`. */
  refused(rejection: Rejection): Promise<void>
}

/** A login at a target, as a user or as a client without a user. */
export interface OwnLogin extends TokenSource {
  /** Resolves when requests can be served. Rejects with OAuthClientError, GatehouseError or the signal's reason. */
  start(): Promise<void>
  /** The key that the current token is bound to; undefined for a bearer token. */
  readonly proofKey: ProofKey | undefined
  /**
   * Time until which the token can be sent without calling `token` again, in Unix milliseconds; undefined for no limit.
   */
  readonly usableUntil: number | undefined
  close(): void
}

/** Creates the tokens of one login. The nonces of the target are kept as long as the key stays the same. */
export class LoginTokens {
  #prover: Prover | undefined
  #last: AccessToken | undefined

  /** Returns the token, bound to `key` if it is set. */
  tokenFor(value: string, key: ProofKey | undefined): AccessToken {
    const isSameKey = this.#prover?.key.d === key?.d
    if (this.#last?.value === value && isSameKey) return this.#last
    if (!isSameKey) this.#prover = key && new Prover(key)
    this.#last = { value, proof: this.#prover?.forToken(value) }
    return this.#last
  }
}

/** Returns the error for a rejected proof. Another token would not help. Undefined for any other rejection. */
export function proofRefusal(challenge: Challenge | undefined): GatehouseError | undefined {
  const error = challenge?.params.get('error')
  if (error !== 'invalid_dpop_proof' && error !== 'use_dpop_nonce') return undefined
  const advice = error === 'invalid_dpop_proof' ? '; check the clock of this machine' : ''
  return new GatehouseError('BACKEND_AUTH_FAILED', {
    detail: `the target rejects the DPoP proof: ${error}${advice}`,
  })
}
