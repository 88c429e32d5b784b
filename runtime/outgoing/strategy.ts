/**
 * The seam between whoever sends requests to a backend and the ways to authenticate there.
 *
 * A strategy changes the headers of one request, last of all and with the last word. What it knows of the user comes
 * from the authenticated Caller, never from a header.
 * Source: docs/reference/specification/external-auth.md#authentication (authentication), docs/reference/specification/virtual-server.md#outgoingAuth (config.outgoingAuth).
 */
import { GatehouseError, isHeaderValue } from '../../schemas/index.ts'
import type { Caller } from '../net/index.ts'

/** One request about to be sent. Method, URL, headers and body must be final: a signature may cover them. */
export interface OutgoingRequest {
  readonly method: string
  readonly url: URL
  /** Names in lower case. */
  readonly headers: Record<string, string>
  readonly body?: Uint8Array | undefined
}

export interface CredentialStrategy {
  readonly type: string
  /** True when what is sent depends on who asks; such responses must not be shared between callers. */
  readonly perCaller: boolean
  /** Lower-case names of the headers that `apply` may set. */
  readonly headerNames: readonly string[]
  /**
   * Adds the credential. Without a caller (health checks, listings for nobody) it adds what belongs to the gateway
   * itself, or nothing.
   *
   * Throws or rejects with GatehouseError: SUBJECT_REFUSED or UPSTREAM_TOKEN_MISSING (the caller must sign in again),
   * BACKEND_ROLE_DENIED, ENTERPRISE_REQUIRED, BACKEND_AUTH_FAILED (somebody must change something),
   * BACKEND_AUTH_UNAVAILABLE or AUTH_UNAVAILABLE (later, Retry-After); or with the signal's reason.
   */
  apply(request: OutgoingRequest, caller: Caller | undefined, signal?: AbortSignal): void | Promise<void>
  /**
   * The backend refused what `apply` put on this very request (401). Forgets it. True when another `apply` may give
   * something better, so that the request is worth sending once more.
   */
  refused(request: OutgoingRequest): boolean
}

/** An upstream provider's token of one caller. */
export interface UpstreamToken {
  readonly accessToken: string
  readonly idToken?: string | undefined
  /** Unix milliseconds. */
  readonly expiresAt?: number | undefined
}

/** Where upstream tokens come from: the embedded authorization server, or the proxy's own login. */
export interface UpstreamTokens {
  /** Names of the providers, the first one being the default; absent: any name may be asked for. */
  readonly providers?: readonly string[] | undefined
  /** The page where users connect accounts at the providers and renew them. */
  readonly accountsUrl?: string | undefined
  /**
   * A usable token, renewed if need be; undefined when the caller has not connected this provider. Rejects with
   * GatehouseError UPSTREAM_TOKEN_MISSING when it cannot be renewed, AUTH_UNAVAILABLE when it cannot be looked up.
   */
  get(caller: Caller, provider: string, signal?: AbortSignal): Promise<UpstreamToken | undefined>
  /**
   * Reports that a backend refused this access token before its expiry. Returns true when another token may help: the
   * next `get` then renews the token, or rejects with UPSTREAM_TOKEN_MISSING. Absent: never.
   */
  refused?(caller: Caller, provider: string, accessToken: string): boolean
  /**
   * As `get`, for a token without which the caller is refused whatever is asked for: when it cannot be renewed, the
   * caller's grant ends, so that the client signs in again instead of refreshing for ever. Absent: as `get`.
   */
  required?(caller: Caller, provider: string, signal?: AbortSignal): Promise<UpstreamToken | undefined>
}

/** Sets a header, whatever the case in which it stood there. `name` in lower case. */
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

/** Removes the caller's own token where it would travel beside an exchanged one. */
export function dropCallerToken(headers: Record<string, string>, caller: Caller): void {
  if (caller.token === undefined) return
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() === 'authorization' && value.endsWith(caller.token)) delete headers[name]
  }
}
