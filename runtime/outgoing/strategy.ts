/**
 * The interface between the code that sends requests to a backend and the strategies that authenticate to the backend.
 *
 * A strategy changes a request's headers after all other changes, and overrides them. A strategy reads the user only
 * from the authenticated Caller, never from a header.
 * Source: docs/reference/specification/external-auth.md#authentication (authentication),
 * docs/reference/specification/virtual-server.md#outgoingAuth (config.outgoingAuth).
 */
import { GatehouseError, isHeaderValue } from '../../schemas/index.ts'
import type { Caller } from '../net/index.ts'
import type { TokenProof } from '../oauth/index.ts'

/** A request that is ready to send. Method, URL, headers and body must be final, because a signature may cover them. */
export interface OutgoingRequest {
  readonly method: string
  readonly url: URL
  /** Header names are in lower case. */
  readonly headers: Record<string, string>
  readonly body?: Uint8Array | undefined
  /** Set by `apply` for a token that is bound to a key. Each attempt to send the request needs a new proof. */
  proof?: TokenProof | undefined
}

export interface AccessToken {
  readonly value: string
  /** Signs the proofs of a token that is bound to a key. Undefined for a bearer token. */
  readonly proof?: TokenProof | undefined
}

export interface CredentialStrategy {
  readonly type: string
  /** True when the credential depends on the caller. Responses must then not be shared between callers. */
  readonly perCaller: boolean
  /** Lowercase names of the headers that `apply` may set, and `dpop` if it may set a proof. */
  readonly headerNames: readonly string[]
  /**
   * Adds the credential. If there is no caller (health checks, shared listings), adds the gateway's own credential, or
   * nothing.
   *
   * Throws or rejects with GatehouseError: SUBJECT_REFUSED or UPSTREAM_TOKEN_MISSING (the caller must sign in again),
   * BACKEND_ROLE_DENIED, ENTERPRISE_REQUIRED, BACKEND_AUTH_FAILED (the operator must change the configuration),
   * BACKEND_AUTH_UNAVAILABLE or AUTH_UNAVAILABLE (retry later, with Retry-After). Rejects with the signal's reason
   * after an abort.
   */
  apply(request: OutgoingRequest, caller: Caller | undefined, signal?: AbortSignal): void | Promise<void>
  /**
   * Reports that the backend rejected the credential that `apply` added to this request (401), and drops the
   * credential. `authenticate` is the response's WWW-Authenticate header. Returns true when another `apply` may add a
   * different credential, so the request is worth retrying.
   */
  refused(request: OutgoingRequest, authenticate?: string | readonly string[]): boolean
}

/** A caller's token from an upstream provider. */
export interface UpstreamToken {
  readonly accessToken: string
  readonly idToken?: string | undefined
  /** Unix milliseconds. */
  readonly expiresAt?: number | undefined
}

/** Source of upstream tokens: the embedded authorization server, or the proxy's own login. */
export interface UpstreamTokens {
  /** Names of the providers; the first is the default. Absent: any name is accepted. */
  readonly providers?: readonly string[] | undefined
  /** The page where users connect and reconnect their provider accounts. */
  readonly accountsUrl?: string | undefined
  /**
   * Returns a usable token, renewed if necessary, or undefined when the caller has not connected this provider. Rejects
   * with GatehouseError UPSTREAM_TOKEN_MISSING when the token cannot be renewed, and AUTH_UNAVAILABLE when it cannot be
   * looked up.
   */
  get(caller: Caller, provider: string, signal?: AbortSignal): Promise<UpstreamToken | undefined>
  /** True when the user's groups do not select this provider, so the user cannot connect it. Absent: false. */
  isWithheld?(caller: Caller, provider: string): Promise<boolean>
  /**
   * Reports that a backend rejected this access token before it expired. Returns true when a retry with a new token may
   * succeed. The next `get` then renews the token, or rejects with UPSTREAM_TOKEN_MISSING. Absent: never.
   */
  refused?(caller: Caller, provider: string, accessToken: string): boolean
  /**
   * Like `get`, but for a token that every request of the caller requires. If the token cannot be renewed, the caller's
   * grant ends, so that the client signs in again instead of refreshing forever. Absent: use `get`.
   */
  required?(caller: Caller, provider: string, signal?: AbortSignal): Promise<UpstreamToken | undefined>
}

/** Sets a header and removes other spellings of its name. `name` must be in lower case. */
export function setHeader(headers: Record<string, string>, name: string, value: string): void {
  if (!isHeaderValue(value)) {
    throw new GatehouseError('BACKEND_AUTH_FAILED', { detail: 'the credential cannot be sent as a header' })
  }
  for (const present of Object.keys(headers)) {
    if (present !== name && present.toLowerCase() === name) delete headers[present]
  }
  headers[name] = value
}

/** Sets `Authorization: Bearer`, or the same value in another header. */
export function setBearer(headers: Record<string, string>, token: string, name = 'authorization'): void {
  setHeader(headers, name, `Bearer ${token}`)
}

/** Sets `Authorization`, and the signer of the request's proofs for a bound token. */
export function setToken(request: OutgoingRequest, { value, proof }: AccessToken): void {
  request.proof = proof
  if (proof) setHeader(request.headers, 'authorization', `DPoP ${value}`)
  else setBearer(request.headers, value)
}

/** Removes the caller's own token when it would be sent in addition to an exchanged token. */
export function dropCallerToken(headers: Record<string, string>, caller: Caller): void {
  if (caller.token === undefined) return
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() === 'authorization' && value.endsWith(caller.token)) delete headers[name]
  }
}
