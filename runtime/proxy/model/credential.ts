/**
 * What authenticates the proxy to its target: its own login, or a strategy of runtime/outgoing (fixed bearer token,
 * token exchange and the others).
 *
 * A credential adds header lines to one attempt, after everything else about it is final, and is asked again when the
 * target refuses it. Headers that are injected by configuration win over it.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type Caller, localIssuer, makeCaller } from '../../net/index.ts'
import { type Challenge, findChallenge, parseChallenges } from '../../oauth/index.ts'
import type { OutgoingRequest, CredentialStrategy } from '../../outgoing/index.ts'
import type { ProxyExchange } from './exchange.ts'

/** Where the token of the proxy's own login comes from: the login itself, or the process that holds it. */
export interface TokenSource {
  /** Undefined: the target wants none. Throws GatehouseError when there is none to be had. */
  token(): string | undefined | Promise<string | undefined>
  readonly idToken: string | undefined
  concerns(status: number, challenge: Challenge | undefined): boolean
  refused(
    status: number,
    challenge: Challenge | undefined,
    url: string,
    usedToken: string | undefined,
  ): Promise<void>
}

type HeaderValue = string | string[] | undefined

export interface TargetCredential {
  /** Lower-case names of the headers it sets; a client's headers of these names are never forwarded. */
  readonly headerNames: readonly string[]
  /** True when the proxy holds the credential itself: the target's challenges are not shown to clients then. */
  readonly ownsAuthorization: boolean
  /**
   * Header lines (name, value, …) for the attempt. `request` describes it, made on demand. Throws GatehouseError when
   * there is no credential to be had; the request is not sent then.
   */
  lines(
    exchange: ProxyExchange,
    request: () => OutgoingRequest,
  ): readonly string[] | Promise<readonly string[]>
  /** True when a response with this status (401, 403) and challenge is about this credential. */
  concerns(status: number, challenge: HeaderValue): boolean
  /** The target refused the credential at `url`: makes the next `lines` better, or throws GatehouseError. */
  renew(exchange: ProxyExchange, status: number, challenge: HeaderValue, url: string): Promise<void>
}

const noLines: readonly string[] = []

/**
 * The proxy's own login. A client's own credential passes as long as the target wants no login, and always where the
 * login is only offered.
 */
export function loginCredential(login: TokenSource, offered = false): TargetCredential {
  function linesFor(exchange: ProxyExchange, token: string | undefined): readonly string[] {
    exchange.usedToken = token
    if (token !== undefined) return ['Authorization', `Bearer ${token}`]
    const own = exchange.req.headers.authorization
    return own === undefined || exchange.caller !== undefined ? noLines : ['Authorization', own]
  }
  return {
    headerNames: ['authorization'],
    ownsAuthorization: !offered,
    lines(exchange) {
      if (offered && exchange.caller === undefined && exchange.req.headers.authorization !== undefined) {
        return linesFor(exchange, undefined)
      }
      const token = login.token()
      return token instanceof Promise
        ? token.then((value) => linesFor(exchange, value))
        : linesFor(exchange, token)
    },
    concerns: (status, challenge) => login.concerns(status, bearerOf(challenge)),
    renew: (exchange, status, challenge, url) =>
      login.refused(status, bearerOf(challenge), url, exchange.usedToken),
  }
}

function bearerOf(challenge: HeaderValue): ReturnType<typeof findChallenge> {
  return findChallenge(parseChallenges(challenge), 'bearer', 'resource_metadata')
}

/** A strategy. Where nobody is authenticated, the bearer token that the client sent stands for it. */
export function strategyCredential(strategy: CredentialStrategy): TargetCredential {
  async function linesFor(exchange: ProxyExchange, request: OutgoingRequest): Promise<readonly string[]> {
    exchange.outgoing = request
    await strategy.apply(request, callerOf(exchange), exchange.signal)
    return strategy.headerNames.flatMap((name) => {
      const value = request.headers[name]
      return value === undefined ? [] : [name, value]
    })
  }
  return {
    headerNames: strategy.headerNames,
    ownsAuthorization: true,
    lines: (exchange, request) => linesFor(exchange, request()),
    concerns: (status) => status === 401,
    async renew(exchange) {
      if (exchange.outgoing && strategy.refused(exchange.outgoing)) return
      throw new GatehouseError('BACKEND_AUTH_FAILED', {
        detail: 'the target refuses the credential of the proxy',
      })
    },
  }
}

/** Everybody without a checked identity is an untrusted client with a token, or without one. */
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
