/**
 * What an HTTP status of a backend means when its body says nothing in MCP. The body itself is never shown to a client.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { BackendAnswer } from './http.ts'

/** The fault behind an unsuccessful answer; undefined for success. */
export function faultOf(answer: BackendAnswer): GatehouseError | undefined {
  const { status } = answer
  if (status >= 200 && status < 300) return undefined
  const cause = new Error(`the backend answered HTTP ${status}`)
  if (status === 401 || status === 403) return new GatehouseError('BACKEND_AUTH_FAILED', { cause })
  if (status === 429 || status === 503) return new GatehouseError('BACKEND_UNAVAILABLE', { cause })
  if (status >= 500) return new GatehouseError('BACKEND_UNREACHABLE', { cause })
  return new GatehouseError('BACKEND_PROTOCOL', { cause })
}
