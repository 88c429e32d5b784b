/** Classifies failed requests for a backend's health. */
import { GatehouseError } from '../../../../schemas/index.ts'
import { type Breaker, knownFailure, networkFailureText } from '../../../net/index.ts'
import { type Cause, isSignInRequired, signInFix } from '../../../observe/index.ts'
import { documentReason } from '../openapi/document-unusable.ts'
import { findAnswer, type AnswerKind } from '../transport/backend-answer.ts'

/** True if the error is a response from the backend. */
function isResponse(error: Error): boolean {
  return error instanceof GatehouseError && (error.code === 'BACKEND_PROTOCOL' || isRejection(error))
}

/** True if the backend rejected the credentials or requires credentials. */
export function isRejection(error: Error): boolean {
  return (
    error instanceof GatehouseError &&
    (error.code === 'BACKEND_AUTH_FAILED' || error.code === 'BACKEND_SIGN_IN_REQUIRED')
  )
}

/**
 * True for failures that affect every request: no connection, an HTTP error from the server itself, or sessions that
 * end early. A failure caused by one caller's credentials, request rate or arguments is not a backend failure.
 */
function isTransportFailure(error: Error | undefined): boolean {
  return (
    error instanceof GatehouseError &&
    (error.code === 'BACKEND_UNREACHABLE' ||
      error.code === 'BACKEND_FAILED' ||
      error.code === 'BACKEND_SESSION_LOST')
  )
}

export function isTimeout(error: Error | undefined): boolean {
  return error instanceof GatehouseError && error.code === 'BACKEND_TIMEOUT'
}

export const sessionLost = 'session_lost'
export const slowReason = 'slow'
const categories: Readonly<Record<string, string>> = {
  BACKEND_AUTH_FAILED: 'authentication_failed',
  BACKEND_SESSION_LOST: sessionLost,
  BACKEND_SIGN_IN_REQUIRED: 'sign_in_required',
  BACKEND_TIMEOUT: 'timeout',
  BACKEND_UNAVAILABLE: 'backend_unavailable',
  BACKEND_FAILED: 'backend_unavailable',
  BACKEND_UNREACHABLE: 'connection_failed',
  OAUTH_UNAVAILABLE: 'credential_unavailable',
  OAUTH_REFUSED: 'credential_unavailable',
  ENTERPRISE_REQUIRED: 'credential_unavailable',
}

/** Failure categories for which the backend's response is more precise than the error code. */
const answerCategories: Readonly<Record<AnswerKind, string | undefined>> = {
  host: 'host_rejected',
  path: 'wrong_path',
  page: 'web_page',
  rejected: 'request_rejected',
  other: undefined,
}

function categoryOf(error: unknown): string {
  if (knownFailure(error)?.failure === 'proxy') return 'http_proxy_failed'
  if (error instanceof GatehouseError && error.code === 'BACKEND_PROTOCOL') {
    const answer = findAnswer(error)
    const category = answer && answerCategories[answer.kind]
    if (category !== undefined) return category
  }
  return (error instanceof GatehouseError && categories[error.code]) || 'health_check_failed'
}

/**
 * Returns the cause of a failed check, including the HTTP status and the backend's own explanation. `server` is the
 * name of this virtual server.
 */
export function causeOf(error: unknown, server: string): Cause {
  const document = documentReason(error)
  if (document !== undefined) return { category: 'configuration_invalid', detail: document }
  const answer = findAnswer(error)
  const category = categoryOf(error)
  return {
    category,
    ...(isSignInRequired({ category }) && { fix: signInFix(server) }),
    httpStatus: answer?.httpStatus,
    detail: answer?.text ?? networkDetail(error),
  }
}

/** Returns the text of the network failure, unless the text contains an address. */
function networkDetail(error: unknown): string | undefined {
  const failure = knownFailure(error)
  if (!failure || failure.failure === 'proxy' || failure.failure === 'address') return undefined
  return networkFailureText(failure)
}

/** Compares two causes. Ignores the backend's own text, because the text can differ each time. */
export function isSameCause(a: Cause | undefined, b: Cause): boolean {
  return a?.category === b.category && a.exitCode === b.exitCode && a.httpStatus === b.httpStatus
}

/**
 * Reports a request's outcome to the breaker. An outcome that is unrelated to the backend's health only releases the
 * breaker.
 */
export function reportToBreaker(breaker: Breaker, error: Error | undefined): void {
  if (isTransportFailure(error)) breaker.failure()
  else if (error === undefined || isResponse(error)) breaker.success()
  else breaker.release()
}
