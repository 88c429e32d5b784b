/** What a failed read of a backend's lists means for the lists that are known. */
import { GatehouseError } from '../../../schemas/index.ts'
import { answerBehind } from '../backends/transport/backend-answer.ts'
import { ConnectionClosed } from '../backends/session-era/channel.ts'

export function asError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('listing failed', { cause: error })
  return error.name === 'TimeoutError' ? new GatehouseError('BACKEND_TIMEOUT', { cause: error }) : error
}

/** What a caller may not see any more is not shown any longer, unlike what cannot be had for the moment. */
export function isRefusal(error: Error): boolean {
  return error instanceof GatehouseError && refusals.has(error.code)
}

const refusals: ReadonlySet<string> = new Set([
  'BACKEND_AUTH_FAILED',
  'BACKEND_ROLE_DENIED',
  'ENTERPRISE_REQUIRED',
  'OAUTH_REFUSED',
  'SUBJECT_REFUSED',
  'UPSTREAM_TOKEN_MISSING',
])

/**
 * The backend's own explanation of a failure, for readers of the status. Undefined when it may be about one caller; the log
 * contains it in any case.
 */
export function shownDetail(error: unknown, perCaller: boolean): string | undefined {
  return perCaller ? undefined : answerBehind(error)?.text
}

/** The connection was closed from this side meanwhile. */
export function isClosed(error: unknown): boolean {
  return (
    error instanceof ConnectionClosed || (error instanceof Error && error.cause instanceof ConnectionClosed)
  )
}
