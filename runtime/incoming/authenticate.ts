/**
 * The authentication stage: reads the Authorization header, then either sets the exchange's caller or throws.
 *
 * Throws CREDENTIALS_MISSING, CREDENTIALS_MALFORMED or INVALID_TOKEN with the challenge as a header, and
 * AUTH_UNAVAILABLE with Retry-After when a token cannot be checked. The stage does not send a response: the feature's
 * `recover` calls `sendChallenge`, so that the audit log contains the rejection. It does not decide what a caller may
 * do.
 * Source: RFC 6750, RFC 9110 section 11.4; docs/reference/specification/proxy-command.md#incoming (incoming),
 * docs/reference/specification/virtual-server.md#incomingAuth (config.incomingAuth).
 */
import { GatehouseError } from '../../schemas/index.ts'
import {
  type Caller,
  certificateThumbprint,
  type Exchange,
  type Log,
  type ProxyEnvironment,
  localTokenCheck,
  silentLog,
  type Stage,
  type TokenDigests,
} from '../net/index.ts'
import { type Keys, oauthCode, ProofRefused, sendOAuthError, TokenRefused } from '../oauth/index.ts'
import { type AuthScheme, type ChallengeError, challengeFor } from './challenge.ts'
import { type IncomingConfig, incomingViolations, type OidcConfig } from './config.ts'
import { advertisedIssuers, protectedResourceRoute } from './document.ts'
import { boundKey, type DpopParts, makeProofCheck, type ProofCheck, type ProvedRequest } from './dpop.ts'
import type { IncomingFetches } from './fetches.ts'
import { anonymousCaller, localCaller, ownerCaller } from './identity.ts'
import { makeIssuerChecks, type TokenCheck } from './issuers.ts'
import { OpenStreams } from './open-streams.ts'
import {
  type AuthenticationEvent,
  challengedAsDpop,
  credentialsOf,
  logOutageOnce,
  makeErrorTranslator,
  withChallenge,
} from './refusals.ts'

export interface Authenticator {
  /** For `Stages.authenticate`. */
  readonly stage: Stage<Exchange>
  /** For `Stages.route`: returns the stage for the protected-resource document; undefined for every other path. */
  readonly route: (exchange: Exchange) => Stage<Exchange> | undefined
  /** Returns the caller for the value of an Authorization header. Bound tokens require `request`. */
  authenticate(authorization: string | undefined, request?: AuthenticatedRequest): Caller | Promise<Caller>
  /** Returns the WWW-Authenticate value for an error from another module; undefined when the type is not oidc. */
  challenge(failure?: ChallengeError): string | undefined
  /**
   * For `Stages.recover`: sends a 401 as OAuth JSON with the challenge. For any other error, returns false and does not
   * send a response.
   */
  sendChallenge(exchange: Exchange, error: unknown): boolean
  /** Closes the connections, and ends the open streams of authenticated callers. */
  close(): Promise<void>
}

export interface AuthenticatedRequest extends ProvedRequest {
  /** Called with the nonce that the client should use for its next proof. */
  readonly onNonce?: ((nonce: string) => void) | undefined
}

export interface AuthenticatorParts {
  readonly log?: Log | undefined
  /** Receives the events instead of the log. */
  readonly observe?: ((event: AuthenticationEvent) => void) | undefined
  /** Clock in milliseconds. Default: Date.now. */
  readonly now?: (() => number) | undefined
  /**
   * Keys of this process for the first issuer (embedded authorization server). If set, the issuer's keys are not
   * fetched.
   */
  readonly keys?: Keys | undefined
  /**
   * Called for each caller whose token is valid. Returns false to reject the caller, because its grant was revoked
   * (embedded authorization server). May throw a GatehouseError if the check fails.
   */
  readonly isLive?: ((caller: Caller) => Promise<boolean>) | undefined
  readonly proxy?: ProxyEnvironment | undefined
  /**
   * True if the listener requests client certificates. Otherwise, tokens that are bound to a certificate are rejected.
   */
  readonly clientCertificates?: boolean | undefined
  /** Required if the configuration accepts tokens that are bound to a key. */
  readonly dpop?: DpopParts | undefined
  /** Replaces the fetch functions for the first issuer. The authenticator closes them. */
  readonly fetches?: IncomingFetches | undefined
  /**
   * Digests of tokens for programs of the user who runs this server (`gatehouse up`). These tokens are accepted in
   * addition to the issuers' tokens, and identify the caller as the owner.
   */
  readonly localTokens?: TokenDigests | undefined
}

/** Throws an INVALID_CONFIG error that lists all errors. */
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
  const refuse = makeErrorTranslator(config, parts.observe ?? logOutageOnce(log))
  const proofs = makeProofCheck(config, parts.dpop, now)
  const { clientCertificates = false } = parts
  const readsRequest = proofs !== undefined || clientCertificates

  /** Returns the caller if the request proves possession of the key that the token is bound to. */
  function confirmed(
    caller: Caller,
    scheme: AuthScheme,
    request: AuthenticatedRequest | undefined,
  ): Caller | Promise<Caller> {
    try {
      const jkt = boundKey(caller, { scheme, certificate: request?.certificate })
      return jkt === undefined ? caller : proved(caller, jkt, { proofs, request, refuse })
    } catch (error) {
      throw refuse(error)
    }
  }

  function verify(
    authorization: string | undefined,
    request: AuthenticatedRequest | undefined,
  ): Caller | Promise<Caller> {
    const { scheme, token } = credentialsOf(authorization, config)
    if (scheme === 'DPoP') return verifyBound(token, request)
    if (config.dpop?.mode === 'required') throw refuse(new TokenRefused('bearer'))
    const caller = checks.check(token)
    return caller instanceof Promise
      ? caller.then((found) => confirmed(found, scheme, request))
      : confirmed(caller, scheme, request)
  }

  async function verifyBound(token: string, request: AuthenticatedRequest | undefined): Promise<Caller> {
    try {
      return await confirmed(await checks.check(token), 'DPoP', request)
    } catch (error) {
      throw challengedAsDpop(error, config)
    }
  }

  const isLive = parts.isLive && issuers ? onlyFor(config.issuer, parts.isLive) : parts.isLive
  async function verifyLive(
    authorization: string | undefined,
    request: AuthenticatedRequest | undefined,
    stillLive: (caller: Caller) => Promise<boolean>,
  ): Promise<Caller> {
    const caller = await verify(authorization, request)
    if (await stillLive(caller)) return caller
    throw withChallenge('INVALID_TOKEN', config)
  }
  const streams = new OpenStreams({ now, isLive })
  const authenticateUser: Authenticator['authenticate'] = isLive
    ? (value, request) => verifyLive(value, request, isLive)
    : verify
  const authenticate = parts.localTokens
    ? withLocalTokens(parts.localTokens, authenticateUser)
    : authenticateUser

  return {
    stage(exchange) {
      exchange.callerStreams = streams
      const caller = authenticate(
        exchange.req.headers.authorization,
        readsRequest ? provedRequest(exchange) : undefined,
      )
      if (caller instanceof Promise) return setCaller(exchange, caller)
      exchange.caller = caller
      return undefined
    },
    route: protectedResourceRoute(config, {
      servers: advertisedIssuers(config, issuers, isEmbedded),
      clientCertificates,
    }),
    authenticate,
    challenge: (failure) => challengeFor(config, failure),
    sendChallenge: (exchange, error) => sendChallenge(exchange, error, config),
    close: async () => {
      streams.close()
      await checks.close()
    },
  }
}

/** Accepts the owner's tokens, and passes all other credentials to `authenticate`. */
function withLocalTokens(
  digests: TokenDigests,
  authenticate: Authenticator['authenticate'],
): Authenticator['authenticate'] {
  const isLocal = localTokenCheck(digests)
  const owner = ownerCaller()
  return (authorization, request) => (isLocal(authorization) ? owner : authenticate(authorization, request))
}

/** Checks the grants of callers from one issuer. This server has no grants for callers from other issuers. */
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

/** Checks the proof. Rejects with errors that clients may see. */
async function proved(
  caller: Caller,
  jkt: string,
  {
    proofs,
    request,
    refuse,
  }: {
    readonly proofs: ProofCheck | undefined
    readonly request: AuthenticatedRequest | undefined
    readonly refuse: (error: unknown) => unknown
  },
): Promise<Caller> {
  try {
    if (!proofs || !request) throw new ProofRefused('missing')
    const nonce = await proofs.check(caller, jkt, request)
    if (nonce !== undefined) request.onNonce?.(nonce)
    return caller
  } catch (error) {
    const needsNonce = proofs !== undefined && error instanceof ProofRefused && error.reason === 'nonce'
    if (needsNonce) request?.onNonce?.(await proofs.nonce())
    throw refuse(error)
  }
}

function provedRequest({ req, res, path }: Exchange): AuthenticatedRequest {
  const proof = req.headers['dpop']
  return {
    method: req.method ?? '',
    path,
    // Node joins repeated headers with a comma, and the result is not a valid proof.
    proof: typeof proof === 'string' ? proof : undefined,
    certificate: certificateThumbprint(req),
    onNonce(nonce) {
      res.setHeader('DPoP-Nonce', nonce)
      res.setHeader('Cache-Control', 'no-store')
    },
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
