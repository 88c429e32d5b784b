/**
 * Authenticates the proxy to its target, with its own login or a strategy from runtime/outgoing (fixed bearer token,
 * token exchange and others).
 *
 * A credential adds header lines to an attempt once everything else about the attempt is final. The credential is
 * renewed when the target rejects it. Headers from the configuration override the credential.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type Caller, localIssuer, makeCaller } from '../../net/index.ts'
import { tokenChallenge } from '../../oauth/index.ts'
import type { AccessToken, CredentialStrategy, OutgoingRequest, TokenSource } from '../../outgoing/index.ts'
import type { ProxyExchange } from './exchange.ts'

type HeaderValue = string | string[] | undefined

export interface TargetCredential {
  /** Lowercase names of the headers that the credential sets. Client headers with these names are never forwarded. */
  readonly headerNames: readonly string[]
  /** True when the proxy owns the credential, so that clients must not see the target's challenges. */
  readonly ownsAuthorization: boolean
  /**
   * Returns the header lines (name, value, …) for the attempt, which `request` describes on demand. Throws
   * GatehouseError when no credential is available; the request is then not sent.
   */
  lines(
    exchange: ProxyExchange,
    request: () => OutgoingRequest,
  ): readonly string[] | Promise<readonly string[]>
  /** True when a response with this status (401, 403) and challenge concerns this credential. */
  concerns(status: number, challenge: HeaderValue): boolean
  /**
   * Called when the target rejected the credential at `url`. Renews the credential for the next call of `lines`, or
   * throws GatehouseError.
   */
  renew(exchange: ProxyExchange, status: number, challenge: HeaderValue, url: string): Promise<void>
}

const noLines: readonly string[] = []

/**
 * The proxy's own login. A client's own credential is forwarded if the target does not require a login, or if the login
 * is optional.
 */
export function loginCredential(login: TokenSource, offered = false): TargetCredential {
  function linesFor(
    exchange: ProxyExchange,
    token: AccessToken | undefined,
    request: () => OutgoingRequest,
  ): readonly string[] {
    exchange.usedToken = token?.value
    exchange.proof = token?.proof
    if (token) {
      if (!token.proof) return ['Authorization', `Bearer ${token.value}`]
      const { method, url } = request()
      return ['Authorization', `DPoP ${token.value}`, 'DPoP', token.proof.sign(method, url)]
    }
    return exchange.caller === undefined ? clientLines(exchange) : noLines
  }
  return {
    headerNames: ['authorization', 'dpop'],
    ownsAuthorization: !offered,
    lines(exchange, request) {
      if (offered && exchange.caller === undefined && exchange.req.headers.authorization !== undefined) {
        return linesFor(exchange, undefined, request)
      }
      const token = login.token()
      return token instanceof Promise
        ? token.then((value) => linesFor(exchange, value, request))
        : linesFor(exchange, token, request)
    },
    concerns: (status, challenge) => login.concerns(status, tokenChallenge(challenge)),
    renew: ({ usedToken }, status, challenge, url) =>
      login.refused({ status, challenge: tokenChallenge(challenge), url, usedToken }),
  }
}

/** Returns the lines with the client's own credential, if it sent one. */
function clientLines({ req }: ProxyExchange): readonly string[] {
  const { authorization, dpop } = req.headers
  if (authorization === undefined) return noLines
  return ['Authorization', authorization, ...(typeof dpop === 'string' ? ['DPoP', dpop] : [])]
}

/**
 * Returns a credential that a strategy adds. Without incoming authentication, the strategy uses the bearer token that
 * the client sent.
 */
export function strategyCredential(strategy: CredentialStrategy): TargetCredential {
  async function linesFor(exchange: ProxyExchange, request: OutgoingRequest): Promise<readonly string[]> {
    exchange.outgoing = request
    await strategy.apply(request, callerOf(exchange), exchange.signal)
    const { proof } = request
    exchange.proof = proof
    const lines = strategy.headerNames.flatMap((name) => {
      const value = request.headers[name]
      return value === undefined ? [] : [name, value]
    })
    return proof ? [...lines, 'DPoP', proof.sign(request.method, request.url)] : lines
  }
  return {
    headerNames: strategy.headerNames,
    ownsAuthorization: true,
    lines: (exchange, request) => linesFor(exchange, request()),
    concerns: (status) => status === 401,
    async renew(exchange, _status, challenge) {
      if (exchange.outgoing && strategy.refused(exchange.outgoing, challenge)) return
      throw new GatehouseError('BACKEND_AUTH_FAILED', {
        detail: 'the target rejected the proxy’s credential',
      })
    },
  }
}

/** A client without a verified identity is untrusted, with or without a token. */
function callerOf({ caller, req }: ProxyExchange): Caller {
  if (caller) return caller
  const token = /^bearer +(\S+)$/i.exec(req.headers.authorization ?? '')?.[1]
  return makeCaller({
    issuer: localIssuer,
    subject: 'unchecked',
    claims: {},
    ...(token === undefined ? {} : { token }),
  })
}
