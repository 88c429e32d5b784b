/**
 * The authentication stage: reads the Authorization header, then either sets the exchange's caller or throws.
 *
 * Throws CREDENTIALS_MISSING, CREDENTIALS_MALFORMED or INVALID_TOKEN with the challenge as a header, and
 * AUTH_UNAVAILABLE with Retry-After when a token cannot be checked. It sends no response: the feature's `recover`
 * calls `sendChallenge`, so that the audit log contains the rejection. It does not decide what a caller may do.
 * Source: RFC 6750, RFC 9110 section 11.4; docs/reference/specification/proxy-command.md#incoming (incoming),
 * docs/reference/specification/virtual-server.md#incomingAuth (config.incomingAuth).
 */
import { GatehouseError } from '../../schemas/index.ts'
import {
  type Caller,
  type Exchange,
  type Log,
  type ProxyEnvironment,
  silentLog,
  type Stage,
} from '../net/index.ts'
import { type Keys, OAuthClientError, oauthCode, sendOAuthError, TokenRefused } from '../oauth/index.ts'
import { annotateDenial } from '../observe/index.ts'
import { type ChallengeError, challengeFor } from './challenge.ts'
import { type IncomingConfig, incomingViolations, type OidcConfig } from './config.ts'
import { advertisedIssuers, protectedResourceRoute } from './document.ts'
import type { IncomingFetches } from './fetches.ts'
import { anonymousCaller, localCaller } from './identity.ts'
import { makeIssuerChecks, type TokenCheck } from './issuers.ts'
import { OpenStreams } from './open-streams.ts'
import { maxTokenLength } from './verifier.ts'

export interface Authenticator {
  /** For `Stages.authenticate`. */
  readonly stage: Stage<Exchange>
  /** For `Stages.route`: returns the stage for the protected-resource document; undefined for every other path. */
  readonly route: (exchange: Exchange) => Stage<Exchange> | undefined
  /** Returns the caller for an Authorization header value. */
  authenticate(authorization: string | undefined): Caller | Promise<Caller>
  /** Returns the WWW-Authenticate value for an error from another module; undefined when the type is not oidc. */
  challenge(failure?: ChallengeError): string | undefined
  /**
   * For `Stages.recover`: sends a 401 as OAuth JSON with the challenge. Returns false for other errors, without a
   * response.
   */
  sendChallenge(exchange: Exchange, error: unknown): boolean
  /** Closes the connections, and ends the open streams of authenticated callers. */
  close(): Promise<void>
}

/**
 * Result of a token check: the token was rejected, checks are failing, or checks are working again. `reason` is a short
 * code.
 */
export type AuthenticationEvent =
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly reason: string; readonly error: unknown }
  | { readonly kind: 'available' }

export interface AuthenticatorParts {
  readonly log?: Log | undefined
  /** Receives the events instead of the log. */
  readonly observe?: ((event: AuthenticationEvent) => void) | undefined
  /** Clock in milliseconds. Default: Date.now. */
  readonly now?: (() => number) | undefined
  /** Keys of this process for the first issuer (embedded authorization server). If set, its keys are not fetched. */
  readonly keys?: Keys | undefined
  /**
   * Called for each caller whose token is valid. Returns false to reject the caller, because its grant was revoked
   * (embedded authorization server). May throw a GatehouseError if the check fails.
   */
  readonly isLive?: ((caller: Caller) => Promise<boolean>) | undefined
  readonly proxy?: ProxyEnvironment | undefined
  /** Replaces the fetches of the first issuer. The authenticator closes them. */
  readonly fetches?: IncomingFetches | undefined
}

/** Throws INVALID_CONFIG, listing all errors. */
export function makeAuthenticator(config: IncomingConfig, parts: AuthenticatorParts = {}): Authenticator {
  switch (config.type) {
    case 'anonymous':
      return fixedAuthenticator(anonymousCaller())
    case 'local':
      return fixedAuthenticator(localCaller(config.username))
    case 'oidc':
      return oidcAuthenticator(config, parts)
    default:
      throw new GatehouseError('INVALID_CONFIG', {
        detail: 'incomingAuth.type: must be oidc, local or anonymous',
      })
  }
}

function fixedAuthenticator(caller: Caller): Authenticator {
  return {
    stage(exchange) {
      exchange.caller = caller
    },
    route: () => undefined,
    authenticate: () => caller,
    challenge: () => undefined,
    sendChallenge: () => false,
    close: async () => {},
  }
}

function oidcAuthenticator(
  incoming: Extract<IncomingConfig, { type: 'oidc' }>,
  parts: AuthenticatorParts,
): Authenticator {
  const isEmbedded = parts.keys !== undefined
  const problems = incomingViolations(incoming, { ownKeys: isEmbedded })
  if (problems.length > 0) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: problems.map((line) => `incomingAuth.${line}`).join('\n'),
    })
  }
  const { oidc: config, issuers } = incoming
  const now = parts.now ?? Date.now
  const { keys, proxy, fetches, log = silentLog } = parts
  const checks = makeIssuerChecks(incoming, {
    keys,
    now,
    proxy,
    log,
    fetches,
    report: (check) => reporting(check, config, parts.observe ?? logOutageOnce(log)),
  })
  const verify = (authorization: string | undefined): Caller | Promise<Caller> =>
    checks.check(bearerToken(authorization, config))

  const isLive = parts.isLive && issuers ? onlyFor(config.issuer, parts.isLive) : parts.isLive
  async function verifyLive(
    authorization: string | undefined,
    stillLive: (caller: Caller) => Promise<boolean>,
  ): Promise<Caller> {
    const caller = await verify(authorization)
    if (await stillLive(caller)) return caller
    throw withChallenge('INVALID_TOKEN', config)
  }
  const streams = new OpenStreams({ now, isLive })
  const authenticate = isLive ? (value: string | undefined) => verifyLive(value, isLive) : verify

  return {
    stage(exchange) {
      exchange.callerStreams = streams
      const caller = authenticate(exchange.req.headers.authorization)
      if (caller instanceof Promise) return setCaller(exchange, caller)
      exchange.caller = caller
      return undefined
    },
    route: protectedResourceRoute(config, advertisedIssuers(config, issuers, isEmbedded)),
    authenticate,
    challenge: (failure) => challengeFor(config, failure),
    sendChallenge: (exchange, error) => sendChallenge(exchange, error, config),
    close: async () => {
      streams.close()
      await checks.close()
    },
  }
}

/** Checks the grants of callers from one issuer. Callers from other issuers have no grant here. */
function onlyFor(
  issuer: string | undefined,
  isLive: (caller: Caller) => Promise<boolean>,
): (caller: Caller) => Promise<boolean> {
  return async (caller) => caller.issuer !== issuer || (await isLive(caller))
}

/** Converts errors from one issuer's token check, and reports when its checks start to fail and when they recover. */
function reporting(
  check: TokenCheck,
  config: OidcConfig,
  observe: (event: AuthenticationEvent) => void,
): TokenCheck {
  let isDown = false
  const translate = makeErrorTranslator(config, (event) => {
    isDown ||= event.kind === 'unavailable'
    observe(event)
  })
  function reportAvailable(caller: Caller): Caller {
    if (isDown) {
      isDown = false
      observe({ kind: 'available' })
    }
    return caller
  }
  return (token) => {
    try {
      const caller = check(token)
      return caller instanceof Promise
        ? caller.then(reportAvailable, (error: unknown) => Promise.reject(translate(error)))
        : reportAvailable(caller)
    } catch (error) {
      throw translate(error)
    }
  }
}

async function setCaller(exchange: Exchange, caller: Promise<Caller>): Promise<void> {
  exchange.caller = await caller
}

/** Returns the bearer token from a header value. The scheme is case-insensitive (RFC 9110). */
function bearerToken(authorization: string | undefined, config: OidcConfig): string {
  if (authorization === undefined || authorization.trim() === '') {
    throw new GatehouseError('CREDENTIALS_MISSING', { headers: { 'www-authenticate': challengeFor(config) } })
  }
  const [, rest] = /^bearer(?: +(.*))?$/i.exec(authorization.trim()) ?? [undefined, undefined]
  if (rest !== undefined && /^[A-Za-z0-9\-._~+/]+=*$/.test(rest)) return rest
  const detail = /^bearer *$/i.test(authorization.trim()) ? 'empty token in authorization header' : undefined
  throw withChallenge('CREDENTIALS_MALFORMED', config, detail)
}

function withChallenge(
  code: 'CREDENTIALS_MALFORMED' | 'INVALID_TOKEN',
  config: OidcConfig,
  detail?: string,
  cause?: unknown,
): GatehouseError {
  const bare = new GatehouseError(code, detail === undefined ? {} : { detail })
  const failure = { error: oauthCode(bare) ?? 'invalid_token', description: bare.message }
  return new GatehouseError(code, {
    detail: bare.message,
    headers: { 'www-authenticate': challengeFor(config, failure) },
    cause,
  })
}

/** Returns an observer that logs an outage once instead of on every request. */
function logOutageOnce(log: Log): (event: AuthenticationEvent) => void {
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
  too_long: `the access token is longer than ${maxTokenLength.toLocaleString('en-US')} characters, the limit of this server`,
}

/** Returns a function that converts the verifier's errors to errors for clients. */
function makeErrorTranslator(
  config: OidcConfig,
  observe: (event: AuthenticationEvent) => void,
): (error: unknown) => unknown {
  return (error) => {
    if (error instanceof TokenRefused) {
      observe({ kind: 'refused', reason: error.reason })
      annotateDenial(`token_${error.reason}`)
      return withChallenge('INVALID_TOKEN', config, refusalTexts[error.reason], error)
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

/**
 * Sends a 401 with a challenge. Adds the challenge to errors from later stages, such as a token exchange that rejected
 * the caller's token.
 */
function sendChallenge(exchange: Exchange, error: unknown, config: OidcConfig): boolean {
  const code = oauthCode(error)
  if (!(error instanceof GatehouseError) || error.status !== 401 || code === undefined) return false
  if (exchange.responded) return true
  const challenged =
    error.headers['www-authenticate'] === undefined
      ? new GatehouseError(error.code, {
          detail: error.message,
          headers: {
            ...error.headers,
            'www-authenticate': challengeFor(config, { error: code, description: error.message }),
          },
        })
      : error
  sendOAuthError(exchange.res, challenged)
  return true
}
