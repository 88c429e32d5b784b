import { GatehouseError } from '../../../schemas/index.ts'

/**
 * True for errors in the connection to the backend, such as an unreachable backend, an invalid response or failed
 * authentication.
 */
export function isBackendError(error: unknown): error is GatehouseError {
  return (
    error instanceof GatehouseError && (error.code.startsWith('BACKEND_') || outgoingErrors.has(error.code))
  )
}

/** Adds the backend's name to an error. */
export function errorOfBackend(backend: string, error: GatehouseError): GatehouseError {
  return new GatehouseError(error.code, {
    detail: `backend ${backend}: ${error.message}`,
    data: { backend },
    cause: error.cause ?? error,
  })
}

/** Codes of errors that the caller can resolve by signing in again. */
export const loginErrors: ReadonlySet<string> = new Set([
  'SUBJECT_REFUSED',
  'UPSTREAM_TOKEN_MISSING',
  'UPSTREAM_NOT_CONNECTED',
])

/** Codes of errors caused by outgoing credentials. The caller or the operator must resolve these errors. */
const outgoingErrors: ReadonlySet<string> = new Set([
  'ENTERPRISE_REQUIRED',
  'OAUTH_UNAVAILABLE',
  'OAUTH_REFUSED',
])

/** True if one requester's credential caused the error. A request with a different credential may succeed. */
export function isCredentialError(error: unknown): boolean {
  return error instanceof GatehouseError && (loginErrors.has(error.code) || credentialErrors.has(error.code))
}

const credentialErrors: ReadonlySet<string> = new Set([
  'AUTH_UNAVAILABLE',
  'BACKEND_AUTH_FAILED',
  'BACKEND_AUTH_UNAVAILABLE',
  'BACKEND_ROLE_DENIED',
  'BACKEND_SIGN_IN_REQUIRED',
  'ENTERPRISE_REQUIRED',
  'OAUTH_REFUSED',
  'OAUTH_UNAVAILABLE',
  'USER_REQUIRED',
])
