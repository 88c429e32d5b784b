/**
 * Interprets a backend's HTTP status if the body contains no decisive MCP message. Clients get the status. The body
 * text becomes the error's cause, which only operators see.
 */
import { type ErrorCode, GatehouseError } from '../../../../schemas/index.ts'
import { type AnsweredRequest, explainResponse, type BackendAnswer } from './backend-answer.ts'
import type { BackendResponse } from './http.ts'

/** An unsuccessful HTTP response without a decisive JSON-RPC error. */
export class HttpStatusError extends GatehouseError {
  readonly httpStatus: number

  constructor(status: number, cause?: BackendAnswer) {
    const { code, what } = meaningOf(status, cause)
    super(code, { detail: `${what} (HTTP ${status})`, cause })
    this.httpStatus = status
  }
}

/** Returns the error for an unsuccessful response, or undefined for a successful one. */
export function errorOf(response: BackendResponse, request: AnsweredRequest): HttpStatusError | undefined {
  const { status } = response
  if (status >= 200 && status < 300) return undefined
  return new HttpStatusError(status, explainResponse(response, request))
}

/** True for statuses that decide the outcome of Gatehouse's own requests, regardless of the body. */
export function isDecisiveStatus(status: number): boolean {
  return status === 401 || status === 403 || status === 408 || status === 429 || status >= 500
}

/** True for statuses that reject an event stream only temporarily. */
export function isTemporary(status: number): boolean {
  return status === 401 || status === 408 || status === 425 || status === 429 || status >= 500
}

function meaningOf(
  status: number,
  answer: BackendAnswer | undefined,
): { readonly code: ErrorCode; readonly what: string } {
  if (answer?.kind === 'host')
    return { code: 'BACKEND_PROTOCOL', what: 'the backend rejected the host name in its URL' }
  if (status === 401 || status === 403)
    return { code: 'BACKEND_AUTH_FAILED', what: 'authentication to the backend failed' }
  if (status === 408)
    return { code: 'BACKEND_UNAVAILABLE', what: 'the backend timed out while waiting for the request' }
  if (status === 429)
    return { code: 'BACKEND_UNAVAILABLE', what: 'the backend is not accepting more requests at the moment' }
  if (status === 503) return { code: 'BACKEND_FAILED', what: 'the backend is temporarily unavailable' }
  if (status >= 500) return { code: 'BACKEND_FAILED', what: 'the backend returned an internal error' }
  if (status >= 400) return { code: 'BACKEND_PROTOCOL', what: 'the backend rejected the request' }
  return { code: 'BACKEND_PROTOCOL', what: 'the backend redirected the request to another address' }
}
