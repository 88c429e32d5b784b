/**
 * What an HTTP status of a backend means when its body says nothing in MCP. Clients are told the status; the body is
 * never shown to them.
 */
import { type ErrorCode, GatehouseError } from '../../../../schemas/index.ts'
import type { BackendResponse } from './http.ts'

/** An unsuccessful HTTP response without an error in JSON-RPC that counts. */
export class HttpStatusError extends GatehouseError {
  readonly httpStatus: number

  constructor(status: number) {
    const { code, what } = meaningOf(status)
    super(code, { detail: `${what} (HTTP ${status})` })
    this.httpStatus = status
  }
}

/** The error behind an unsuccessful response; undefined for success. */
export function errorOf({ status }: Pick<BackendResponse, 'status'>): HttpStatusError | undefined {
  return status >= 200 && status < 300 ? undefined : new HttpStatusError(status)
}

/** True for statuses that say what matters of a request of our own, whatever its body is. */
export function decidesAlone(status: number): boolean {
  return status === 401 || status === 403 || status === 408 || status === 429 || status >= 500
}

/** True for refusals of an event stream that a later attempt may not meet. */
export function isTemporary(status: number): boolean {
  return status === 401 || status === 408 || status === 425 || status === 429 || status >= 500
}

function meaningOf(status: number): { readonly code: ErrorCode; readonly what: string } {
  if (status === 401 || status === 403)
    return { code: 'BACKEND_AUTH_FAILED', what: 'authentication to the backend failed' }
  if (status === 408)
    return { code: 'BACKEND_UNAVAILABLE', what: 'the backend did not wait for the whole request' }
  if (status === 429)
    return { code: 'BACKEND_UNAVAILABLE', what: 'the backend accepts no more requests at the moment' }
  if (status === 503) return { code: 'BACKEND_FAILED', what: 'the backend is temporarily unavailable' }
  if (status >= 500) return { code: 'BACKEND_FAILED', what: 'the backend answered with an internal error' }
  if (status >= 400) return { code: 'BACKEND_PROTOCOL', what: 'the backend refused the request' }
  return { code: 'BACKEND_PROTOCOL', what: 'the backend redirects to another address' }
}
