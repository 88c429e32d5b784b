/**
 * The front-channel half of the code flow: builds the authorization URL and validates the redirect back.
 *
 * Stateless: the caller keeps the state, verifier and nonce between the two steps.
 * Source: RFC 6749 section 4.1, RFC 7636, RFC 8707 section 2, RFC 9207, OpenID Connect Core section 3.1.2.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { randomBuffer } from '../net/index.ts'
import { OAuthClientError } from './client-error.ts'
import { peerWords } from './refusals/peer-words.ts'
import type { ServerMetadata } from './metadata/server-metadata.ts'

/** The random values of a login. Keep these values until the redirect arrives. */
export interface LoginSecrets {
  readonly state: string
  readonly codeVerifier: string
  /** S256 hash of the verifier. */
  readonly codeChallenge: string
  readonly nonce: string
}

export function makeLoginSecrets(): LoginSecrets {
  const codeVerifier = randomBuffer(32).toString('base64url')
  return {
    state: randomBuffer(16).toString('base64url'),
    codeVerifier,
    codeChallenge: s256(codeVerifier),
    nonce: randomBuffer(16).toString('base64url'),
  }
}

/** Returns the S256 challenge for a verifier (RFC 7636 section 4.2). */
export function s256(verifier: string): string {
  return hash('sha256', verifier, 'base64url')
}

export interface AuthorizationRequest {
  readonly endpoint: string
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes?: readonly string[] | undefined
  /** Name of the scopes parameter, for providers that do not use `scope`. */
  readonly scopeParamName?: string | undefined
  readonly state: string
  readonly codeChallenge: string
  readonly nonce?: string | undefined
  readonly resource?: string | undefined
  /** Additional parameters. A parameter that this function sets itself causes a TypeError. */
  readonly extra?: Readonly<Record<string, string>> | undefined
}

/** Parameters that the configuration must not add. */
export const managedParameters: ReadonlySet<string> = new Set([
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'nonce',
])

/**
 * Returns the URL to open in the browser. Keeps the endpoint's own query parameters, except parameters that this
 * function sets.
 */
export function authorizationUrl(request: AuthorizationRequest): URL {
  const url = new URL(request.endpoint)
  const set = (name: string, value: string | undefined) => {
    if (value !== undefined) url.searchParams.set(name, value)
  }
  for (const [name, value] of Object.entries(request.extra ?? {})) {
    if (managedParameters.has(name)) throw new TypeError(`the parameter ${name} is reserved`)
    url.searchParams.set(name, value)
  }
  set('response_type', 'code')
  set('client_id', request.clientId)
  set('redirect_uri', request.redirectUri)
  if (request.scopes !== undefined && request.scopes.length > 0) {
    set(request.scopeParamName ?? 'scope', request.scopes.join(' '))
  }
  set('state', request.state)
  set('code_challenge', request.codeChallenge)
  set('code_challenge_method', 'S256')
  set('nonce', request.nonce)
  set('resource', request.resource)
  return url
}

/** True when the redirect belongs to this login. Compares in constant time. Check this before anything else. */
export function isOurState(params: URLSearchParams, state: string): boolean {
  const given = params.getAll('state')
  const [value] = given
  return given.length === 1 && value !== undefined && isEqualSecret(value, state)
}

/** Compares a value from a client with a secret in constant time. */
export function isEqualSecret(given: string, secret: string): boolean {
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', secret, 'buffer'))
}

/**
 * Returns the code from a redirect whose state matched. Throws OAuthClientError: `protocol` for a wrong, missing or
 * repeated `iss` or a missing or repeated code, and `refused` with the error code when the server sent an error.
 *
 * Without `issuer` (configured endpoints, unknown issuer), the comparison is skipped.
 */
export function readAuthorizationCode(
  params: URLSearchParams,
  server: Pick<ServerMetadata, 'authorization_response_iss_parameter_supported'> & {
    readonly issuer?: string | undefined
  },
): string {
  for (const name of ['iss', 'error', 'code']) {
    if (params.getAll(name).length > 1) {
      throw new OAuthClientError('protocol', `the authorization response repeats ${name}`)
    }
  }
  const iss = params.get('iss')
  if (iss === null && server.authorization_response_iss_parameter_supported === true) {
    throw new OAuthClientError(
      'protocol',
      'the authorization response has no iss, although the server metadata advertises it',
    )
  }
  if (iss !== null && server.issuer !== undefined && iss !== server.issuer) {
    throw new OAuthClientError('protocol', 'the authorization response comes from another issuer')
  }
  const error = params.get('error')
  if (error !== null) {
    const legal = /^[\w.:-]{1,100}$/.test(error) ? error : undefined
    throw new OAuthClientError(
      'refused',
      `the authorization server refused the login${legal === undefined ? '' : `: ${legal}`}`,
      {
        error: legal,
        description: peerWords(params.get('error_description') ?? ''),
      },
    )
  }
  const code = params.get('code')
  if (code === null || code === '') {
    throw new OAuthClientError('protocol', 'the authorization response has neither code nor error')
  }
  return code
}
