/** Classifies failed reads of a backend's lists. */
import { GatehouseError } from '../../../schemas/index.ts'
import { findAnswer } from '../backends/transport/backend-answer.ts'
import { ConnectionClosed } from '../backends/session-era/channel.ts'

export function asError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('listing failed', { cause: error })
  return error.name === 'TimeoutError' ? new GatehouseError('BACKEND_TIMEOUT', { cause: error }) : error
}

/**
 * True if the caller is no longer allowed to see the lists. These lists must not stay in use, unlike lists after a
 * temporary failure.
 */
export function isRefusal(error: Error): boolean {
  return error instanceof GatehouseError && refusals.has(error.code)
}

const refusals: ReadonlySet<string> = new Set([
  'BACKEND_AUTH_FAILED',
  'BACKEND_ROLE_DENIED',
  'BACKEND_SIGN_IN_REQUIRED',
  'ENTERPRISE_REQUIRED',
  'OAUTH_REFUSED',
  'SUBJECT_REFUSED',
  'UPSTREAM_TOKEN_MISSING',
  'USER_REQUIRED',
])

/**
 * Returns the backend's own explanation of a failure, for the status report. Returns undefined if the explanation might
 * apply only to a single caller. The log always contains the explanation.
 */
export function shownDetail(error: unknown, perCaller: boolean): string | undefined {
  return perCaller ? undefined : findAnswer(error)?.text
}

/** True if Gatehouse closed the connection. */
export function isConnectionClosed(error: unknown): boolean {
  return (
    error instanceof ConnectionClosed || (error instanceof Error && error.cause instanceof ConnectionClosed)
  )
}
