/** The dependencies of a login at a target, and the types of a login that waits for the user. */
import { GatehouseError } from '../../../schemas/index.ts'
import type { TargetAddress } from '../../config/index.ts'
import type { Dispatcher } from '../../net/index.ts'
import type { Challenge } from '../../oauth/index.ts'
import type { SignInParts } from './sign-in.ts'

export interface LoginParts extends SignInParts {
  readonly target: TargetAddress
  /** Sends the requests that detect whether a login is required. Not used when the user starts logins. */
  readonly dispatcher?: Dispatcher | undefined
  /** Set if the user must start each login. Otherwise, a login starts as soon as the target requires it. */
  readonly onDemand?: OnDemand | undefined
}

/** A login that waits for the user after the target has rejected a request. */
export interface OnDemand {
  /** Returns the address at which the user signs in. */
  readonly address: () => string
  /** Called when the login starts or stops waiting for the user, and when a new token may grant more access. */
  readonly onChange: () => void
}

/**
 * The request that the target rejected, and the scopes to request. If the scopes are undefined, they are taken from the
 * metadata.
 */
export interface WantedLogin {
  readonly url: string
  readonly challenge: Challenge | undefined
  readonly scopes?: readonly string[] | undefined
}

export function signInRequired(address: string): GatehouseError {
  return new GatehouseError('BACKEND_SIGN_IN_REQUIRED', { detail: `sign in at ${address}, then try again` })
}

export const loginPauses = {
  /** A token that is newer than this is not renewed again when the target rejects it. */
  freshMs: 30_000,
  /** Pause before the next request to the authorization server after a rejection that a retry would not change. */
  refusedMs: 10_000,
  /** Minimum time between logins that start because the target rejected the previous login. */
  betweenMs: 60_000,
} as const
