/** Which errors are about a backend, and which about the caller's own login. */
import { GatehouseError } from '../../../schemas/index.ts'

/** True for errors between us and a backend: unreachable, broken, or not to be authenticated to. */
export function isBackendError(error: unknown): error is GatehouseError {
  return (
    error instanceof GatehouseError && (error.code.startsWith('BACKEND_') || outgoingErrors.has(error.code))
  )
}

/** What a caller changes by signing in again. */
export const loginErrors: ReadonlySet<string> = new Set([
  'SUBJECT_REFUSED',
  'UPSTREAM_TOKEN_MISSING',
  'UPSTREAM_NOT_CONNECTED',
])

/** Errors of the outgoing credentials; the caller or the operator has to change something. */
const outgoingErrors: ReadonlySet<string> = new Set([
  'ENTERPRISE_REQUIRED',
  'OAUTH_UNAVAILABLE',
  'OAUTH_REFUSED',
])

/** True when one requester's credential caused the error. A request with another credential may succeed. */
export function isCredentialError(error: unknown): boolean {
  return error instanceof GatehouseError && (loginErrors.has(error.code) || credentialErrors.has(error.code))
}

const credentialErrors: ReadonlySet<string> = new Set([
  'AUTH_UNAVAILABLE',
  'BACKEND_AUTH_FAILED',
  'BACKEND_AUTH_UNAVAILABLE',
  'BACKEND_ROLE_DENIED',
  'ENTERPRISE_REQUIRED',
  'OAUTH_REFUSED',
  'OAUTH_UNAVAILABLE',
])
