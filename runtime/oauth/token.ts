/**
 * Sends requests to a token endpoint, with one function per grant, and reads the responses.
 *
 * oauth4webapi builds the requests (client authentication, form encoding). This module reads the responses itself, for
 * two reasons. An id_token must be verified against keys (id-token.ts) instead of being trusted because it came over
 * TLS, and some servers' responses need a mapping. Nothing is cached here. A request is repeated only after a guessed
 * authentication method has failed, or if the server demands a DPoP proof or another nonce.
 * Source: RFC 6749 sections 4.1.3, 4.4, 5, 6; RFC 7636; RFC 8693; RFC 7523; RFC 8707; RFC 9449 sections 5 and 8.
 */
import * as oauth from 'oauth4webapi'
import {
  type OAuthCallOptions,
  type JsonRecord,
  optionalString,
  readJson,
  requiredString,
  send,
} from './call.ts'
import { chooseAuthMethod, clientAuth, mayRetryInBody, type OAuthClient } from './client/client.ts'
import { OAuthClientError, withoutSecrets } from './client-error.ts'
import type { Prover } from './dpop/prover.ts'
import { missingEndpoint, type ServerMetadata } from './metadata/server-metadata.ts'

/** The result of a token request. Contains secrets: never log it. */
export interface TokenSet {
  readonly accessToken: string
  /** Lower case, for instance `bearer` or `n_a`. `dpop`: bound to the key of the request's proof. */
  readonly tokenType: string
  /** Unix milliseconds; undefined when the server did not report an expiry. */
  readonly expiresAt?: number | undefined
  readonly refreshToken?: string | undefined
  /** As received, not verified. */
  readonly idToken?: string | undefined
  readonly scope?: string | undefined
  readonly issuedTokenType?: string | undefined
}

/**
 * Determines when to request a token that is bound to a key. `demanded`: only if the server rejects a request without a
 * proof. `offered` and `required`: always. With `required`, an unbound token is an error.
 */
export type ProofUse = 'demanded' | 'offered' | 'required'

export interface TokenProofOptions {
  readonly prover: Prover
  readonly use: ProofUse
}

export interface TokenRequestOptions extends OAuthCallOptions {
  readonly server: ServerMetadata
  /** Absent: the request identifies no client (some exchanges need none). */
  readonly client?: OAuthClient | undefined
  /** Returns Unix milliseconds. Default: Date.now. */
  readonly now?: (() => number) | undefined
  /** Converts a nonstandard response to standard members before it is read. */
  readonly map?: ((body: JsonRecord) => JsonRecord) | undefined
  /** Token types to accept in addition to bearer, in lower case (`n_a` for an assertion). */
  readonly tokenTypes?: readonly string[] | undefined
  /** Additional form parameters. */
  readonly extra?: Readonly<Record<string, string>> | undefined
  /** Absent: requests an unbound token. */
  readonly dpop?: TokenProofOptions | undefined
  /** Name that error messages use for the endpoint. Default: the token endpoint. */
  readonly endpointName?: string | undefined
}

const grantTypes = {
  tokenExchange: 'urn:ietf:params:oauth:grant-type:token-exchange',
  jwtBearer: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
} as const

export function codeGrant(
  options: TokenRequestOptions & {
    readonly code: string
    readonly redirectUri: string
    readonly codeVerifier: string
    readonly resource?: string | undefined
  },
): Promise<TokenSet> {
  return tokenRequest('authorization_code', options, {
    code: options.code,
    redirect_uri: options.redirectUri,
    code_verifier: options.codeVerifier,
    resource: options.resource,
  })
}

/**
 * Uses a refresh token. When the response does not contain a new refresh token, the old refresh token stays valid and
 * is returned.
 */
export async function refreshGrant(
  options: TokenRequestOptions & {
    readonly refreshToken: string
    readonly scopes?: readonly string[] | undefined
    readonly resource?: string | undefined
  },
): Promise<TokenSet> {
  const tokens = await tokenRequest('refresh_token', options, {
    refresh_token: options.refreshToken,
    scope: joinScopes(options.scopes),
    resource: options.resource,
  })
  return tokens.refreshToken === undefined ? { ...tokens, refreshToken: options.refreshToken } : tokens
}

export function clientCredentialsGrant(
  options: TokenRequestOptions & {
    readonly scopes?: readonly string[] | undefined
    readonly audience?: string | undefined
    readonly resource?: string | undefined
  },
): Promise<TokenSet> {
  return tokenRequest('client_credentials', options, {
    scope: joinScopes(options.scopes),
    audience: options.audience,
    resource: options.resource,
  })
}

/** Exchanges a token (RFC 8693). Token types are full URNs. */
export function tokenExchangeGrant(
  options: TokenRequestOptions & {
    readonly subjectToken: string
    readonly subjectTokenType: string
    readonly requestedTokenType?: string | undefined
    readonly actorToken?: string | undefined
    readonly actorTokenType?: string | undefined
    readonly audience?: string | undefined
    readonly resource?: string | undefined
    readonly scopes?: readonly string[] | undefined
  },
): Promise<TokenSet> {
  return tokenRequest(grantTypes.tokenExchange, options, {
    subject_token: options.subjectToken,
    subject_token_type: options.subjectTokenType,
    requested_token_type: options.requestedTokenType,
    actor_token: options.actorToken,
    actor_token_type: options.actorTokenType,
    audience: options.audience,
    resource: options.resource,
    scope: joinScopes(options.scopes),
  })
}

/**
 * Uses a JWT as an authorization grant (RFC 7523 section 2.1). With `extra`, also performs the on-behalf-of exchange.
 */
export function jwtBearerGrant(
  options: TokenRequestOptions & {
    readonly assertion: string
    readonly scopes?: readonly string[] | undefined
    readonly resource?: string | undefined
  },
): Promise<TokenSet> {
  return tokenRequest(grantTypes.jwtBearer, options, {
    assertion: options.assertion,
    scope: joinScopes(options.scopes),
    resource: options.resource,
  })
}

/**
 * Joins scopes with spaces. Returns undefined for an empty list, because an empty parameter has a different meaning.
 */
function joinScopes(scopes: readonly string[] | undefined): string | undefined {
  return scopes === undefined || scopes.length === 0 ? undefined : scopes.join(' ')
}

/** Parameters that must not appear in an error, because some servers repeat what they receive. */
const secretParameters = [
  'code',
  'code_verifier',
  'refresh_token',
  'subject_token',
  'actor_token',
  'assertion',
] as const

/** Rejects with OAuthClientError, or with the signal's reason. */
async function tokenRequest(
  grantType: string,
  options: TokenRequestOptions,
  parameters: Readonly<Record<string, string | undefined>>,
): Promise<TokenSet> {
  const { server, client, dpop } = options
  const what = nameOf(options)
  if (server.token_endpoint === undefined) throw missingEndpoint(server, 'token_endpoint')
  const form = new URLSearchParams(options.extra)
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) form.set(name, value)
  const method = client ? chooseAuthMethod(client, server.token_endpoint_auth_methods_supported) : 'none'
  const secrets = [client?.clientSecret, ...secretParameters.map((name) => parameters[name])]
  const request = async (used: typeof method, proof: ProofAttempt): Promise<TokenSet> => {
    const response = await oauth.genericTokenEndpointRequest(
      server,
      { client_id: client?.clientId ?? 'nobody' },
      client ? clientAuth(client, used) : () => {},
      grantType,
      form,
      {
        // Our fetch enforces https except for loopback; the library's check has no exception for loopback.
        [oauth.allowInsecureRequests]: true,
        [oauth.customFetch]: async (url, init) => {
          const headers = proof.isSent && dpop ? { dpop: dpop.prover.signTokenRequest(url) } : {}
          const answer = await send(what, url, { ...init, headers: { ...init.headers, ...headers } }, options)
          proof.hasNonce = dpop?.prover.noteTokenResponse(url, answer.headers) ?? false
          return answer
        },
      },
    )
    const tokens = readTokens(await readJson(what, response), options, proof)
    if (dpop?.use === 'required' && tokens.tokenType !== 'dpop')
      throw new OAuthClientError(
        'protocol',
        `${what} issued a token that is not bound to the key of the DPoP proof`,
      )
    return tokens
  }
  const attempt = (used: typeof method): Promise<TokenSet> => withProof(dpop, (proof) => request(used, proof))
  try {
    return await attempt(method)
  } catch (error) {
    if (!client || method !== 'client_secret_basic' || !mayRetryInBody(client, server, error))
      throw withoutSecrets(error, secrets)
    return attempt('client_secret_post').catch((second: unknown) => {
      throw withoutSecrets(second, secrets)
    })
  }
}

interface ProofAttempt {
  readonly isSent: boolean
  /** Set if the response contains a nonce. */
  hasNonce: boolean
}

/**
 * Sends a request, with or without a proof. Repeats the request once with a proof if the server demands one, and once
 * with the server's nonce.
 */
async function withProof(
  dpop: TokenProofOptions | undefined,
  request: (proof: ProofAttempt) => Promise<TokenSet>,
): Promise<TokenSet> {
  let isSent = dpop !== undefined && dpop.use !== 'demanded'
  let repeats = isSent ? 1 : 2
  for (;;) {
    const proof: ProofAttempt = { isSent, hasNonce: false }
    try {
      return await request(proof)
    } catch (error) {
      if (!dpop || repeats === 0 || !isProofDemanded(error, proof)) throw error
    }
    repeats--
    isSent = true
  }
}

function isProofDemanded(error: unknown, { isSent, hasNonce }: ProofAttempt): boolean {
  if (!(error instanceof OAuthClientError) || error.kind !== 'refused') return false
  if (error.error === 'use_dpop_nonce') return hasNonce || !isSent
  return error.error === 'invalid_dpop_proof' && !isSent
}

function nameOf({ endpointName }: TokenRequestOptions): string {
  return endpointName ?? 'the token endpoint'
}

function readTokens(raw: JsonRecord, options: TokenRequestOptions, proof: ProofAttempt): TokenSet {
  const what = nameOf(options)
  const body = options.map ? options.map(raw) : raw
  // Some providers omit token_type, which RFC 6749 section 5.1 requires. Tokens without a token_type are bearer tokens.
  const tokenType = optionalString(what, body, 'token_type')?.toLowerCase() ?? 'bearer'
  const isBound = tokenType === 'dpop' && proof.isSent
  if (tokenType !== 'bearer' && !isBound && !options.tokenTypes?.includes(tokenType)) {
    throw new OAuthClientError('protocol', `${what} issued a token of a type that we do not support`)
  }
  const lifetimeSec = lifetime(body['expires_in'])
  const now = options.now ?? Date.now
  return {
    accessToken: requiredString(what, body, 'access_token'),
    tokenType,
    expiresAt: lifetimeSec === undefined ? undefined : now() + lifetimeSec * 1000,
    refreshToken: optionalString(what, body, 'refresh_token'),
    idToken: optionalString(what, body, 'id_token'),
    scope: typeof body['scope'] === 'string' ? body['scope'] : undefined,
    issuedTokenType: optionalString(what, body, 'issued_token_type'),
  }
}

/** Returns the lifetime in seconds, or undefined for zero and invalid values. Some servers send a numeric string. */
function lifetime(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,12}$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined
}
