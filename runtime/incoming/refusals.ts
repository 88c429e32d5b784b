/**
 * Reads the Authorization header, and converts the reasons for a rejection to errors with a challenge.
 * Source: RFC 6750 section 3, RFC 9110 section 11.4, RFC 9449 section 7.1.
 */
import { GatehouseError } from '../../schemas/index.ts'
import type { Log } from '../net/index.ts'
import { maxTokenLength, OAuthClientError, oauthCode, ProofRefused, TokenRefused } from '../oauth/index.ts'
import { annotateDenial } from '../observe/index.ts'
import { type AuthScheme, challengeFor } from './challenge.ts'
import { acceptsProofs, type OidcConfig } from './config.ts'

/**
 * Result of a token check: the token was rejected, checks are failing, or checks are working again. `reason` is a short
 * code.
 */
export type AuthenticationEvent =
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly reason: string; readonly error: unknown }
  | { readonly kind: 'available' }

/** Returns the token and its scheme. Throws with a challenge. */
export function credentialsOf(
  authorization: string | undefined,
  config: OidcConfig,
): { readonly scheme: AuthScheme; readonly token: string } {
  if (authorization === undefined || authorization.trim() === '') {
    throw new GatehouseError('CREDENTIALS_MISSING', { headers: { 'www-authenticate': challengeFor(config) } })
  }
  const [, name = '', rest] = /^(bearer|dpop)(?: +(.*))?$/i.exec(authorization.trim()) ?? []
  const scheme = name.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer'
  const isAccepted = scheme === 'Bearer' || acceptsProofs(config)
  if (isAccepted && rest !== undefined && /^[A-Za-z0-9\-._~+/]+=*$/.test(rest)) return { scheme, token: rest }
  const isEmpty = isAccepted && /^(bearer|dpop) *$/i.test(authorization.trim())
  throw withChallenge('CREDENTIALS_MALFORMED', config, {
    detail: isEmpty ? 'empty token in authorization header' : undefined,
    scheme,
  })
}

type Unauthorized = 'CREDENTIALS_MALFORMED' | 'INVALID_TOKEN' | 'DPOP_PROOF_INVALID' | 'DPOP_NONCE_REQUIRED'

export function withChallenge(
  code: Unauthorized,
  config: OidcConfig,
  {
    detail,
    cause,
    scheme,
  }: {
    readonly detail?: string | undefined
    readonly cause?: unknown
    readonly scheme?: AuthScheme | undefined
  } = {},
): GatehouseError {
  const bare = new GatehouseError(code, detail === undefined ? {} : { detail })
  const failure = { error: oauthCode(bare) ?? 'invalid_token', description: bare.message, scheme }
  return new GatehouseError(code, {
    detail: bare.message,
    headers: { 'www-authenticate': challengeFor(config, failure) },
    cause,
  })
}

/** Moves the error to the challenge for the scheme DPoP. */
export function challengedAsDpop(error: unknown, config: OidcConfig): unknown {
  if (!(error instanceof GatehouseError) || error.code !== 'INVALID_TOKEN') return error
  return withChallenge(error.code, config, { detail: error.message, cause: error.cause, scheme: 'DPoP' })
}

/** Returns an observer that logs an outage once instead of on every request. */
export function logOutageOnce(log: Log): (event: AuthenticationEvent) => void {
  let reported: unknown
  return (event) => {
    if (event.kind === 'refused') log.debug('access token refused', { reason: event.reason })
    else if (event.kind === 'available') log.info('access tokens can be checked again')
    else if (event.error !== reported) {
      reported = event.error
      log.warn('access tokens cannot be checked', { reason: event.reason, err: event.error })
    }
  }
}

/**
 * Reasons that a client can act on. All other reasons appear only in the log, because they would help an attacker forge
 * tokens.
 */
const refusalTexts: Readonly<Partial<Record<TokenRefused['reason'], string>>> = {
  expired: 'the access token has expired',
  bearer: 'this server accepts only access tokens that are bound to a key, with a DPoP proof',
  bound: 'the access token is bound to a key: it requires a proof of possession',
  unbound: 'the access token is not bound to a key',
  certificate:
    'the access token is bound to a TLS client certificate, which this connection did not present to this server',
  too_long: `the access token is longer than ${maxTokenLength.toLocaleString('en-US')} characters, the limit of this server`,
}

/** Returns a function that converts the verifier's errors to errors for clients. */
export function makeErrorTranslator(
  config: OidcConfig,
  observe: (event: AuthenticationEvent) => void,
): (error: unknown) => unknown {
  return (error) => {
    if (error instanceof TokenRefused) {
      observe({ kind: 'refused', reason: error.reason })
      annotateDenial(`token_${error.reason}`)
      return withChallenge('INVALID_TOKEN', config, { detail: refusalTexts[error.reason], cause: error })
    }
    if (error instanceof ProofRefused) {
      observe({ kind: 'refused', reason: `proof_${error.reason}` })
      annotateDenial(`proof_${error.reason}`)
      const code = error.reason === 'nonce' ? 'DPOP_NONCE_REQUIRED' : 'DPOP_PROOF_INVALID'
      return withChallenge(code, config, { cause: error, scheme: 'DPoP' })
    }
    if (error instanceof OAuthClientError) {
      observe({ kind: 'unavailable', reason: error.kind, error })
      const seconds = Math.min(Math.max(error.retryAfterSec ?? 5, 1), 300)
      return new GatehouseError('AUTH_UNAVAILABLE', {
        headers: { 'retry-after': String(seconds) },
        cause: error,
      })
    }
    return error
  }
}
