/**
 * What an HTTP status of a backend means when its body says nothing in MCP. Clients are told the status; the body is
 * never shown to them.
 */
import { type ErrorCode, GatehouseError } from '../../../../schemas/index.ts'
import type { BackendResponse } from './http.ts'

/** The error behind an unsuccessful answer; undefined for success. */
export function errorOf(response: BackendResponse): GatehouseError | undefined {
  const { status } = response
  if (status >= 200 && status < 300) return undefined
  const { code, what } = meaningOf(status)
  return new GatehouseError(code, { detail: `${what} (HTTP ${status})` })
}

function meaningOf(status: number): { readonly code: ErrorCode; readonly what: string } {
  if (status === 401 || status === 403)
    return { code: 'BACKEND_AUTH_FAILED', what: 'authentication to the backend failed' }
  if (status === 429)
    return { code: 'BACKEND_UNAVAILABLE', what: 'the backend accepts no more requests at the moment' }
  if (status === 503) return { code: 'BACKEND_FAILED', what: 'the backend is temporarily unavailable' }
  if (status >= 500) return { code: 'BACKEND_FAILED', what: 'the backend answered with an internal error' }
  if (status >= 400) return { code: 'BACKEND_PROTOCOL', what: 'the backend refused the request' }
  return { code: 'BACKEND_PROTOCOL', what: 'the backend redirects to another address' }
}
