/** Formats the proxy's own errors: JSON-RPC for MCP clients, problem details for everything else. */

import type { Authenticator } from '../../incoming/index.ts'
import { errorMessage, MessageError, refusalHeaders } from '../../mcp/index.ts'
import { type Log, sendBody, sendProblem, toGatehouseError } from '../../net/index.ts'
import type { ProxyExchange } from '../model/exchange.ts'

/** Codes that only an MCP client can provoke, or that must be readable for one; JSON-RPC whatever the request was. */
const always: ReadonlySet<string> = new Set([
  'ORIGIN_DENIED',
  'HOST_DENIED',
  'BATCH_REFUSED',
  'PARSE_ERROR',
  'SESSION_NOT_FOUND',
  'HEADER_MISMATCH',
  'VERSION_UNSUPPORTED',
  'CAPABILITY_REQUIRED',
])

/** Makes the pipeline's last resort. It never shows a cause; what is not a GatehouseError is logged and becomes 500. */
export function makeRecover(
  log: Log,
  incoming: Pick<Authenticator, 'response'> | undefined,
): (exchange: ProxyExchange, error: unknown) => void {
  return function recover(exchange, error) {
    // A refused caller gets the challenge that tells where to sign in.
    if (incoming?.response(exchange, error) === true) return
    const failure = toGatehouseError(error)
    if (failure.code === 'INTERNAL')
      log.error('a request failed', { err: failure.cause, path: exchange.path })
    else if (failure.status >= 500 && failure.code !== 'OVERLOADED')
      log.warn(whatFailed(failure.code), { failure: failure.code, err: failure.cause ?? failure })
    if (exchange.message === undefined && !always.has(failure.code)) return sendProblem(exchange.res, failure)
    const id = failure instanceof MessageError ? failure.id : exchange.rpcId
    const body = errorMessage(id, failure)
    sendBody(exchange.res, failure.status, 'application/json', body, {
      ...failure.headers,
      ...refusalHeaders(failure),
    })
  }
}

function whatFailed(code: string): string {
  if (code === 'AUTH_UNAVAILABLE') return 'the caller’s access token could not be checked'
  if (code.startsWith('OAUTH_') || code.startsWith('BACKEND_AUTH_') || code === 'ENTERPRISE_REQUIRED')
    return 'no credential for the target could be obtained'
  if (code.startsWith('STORE_') || code === 'SESSION_STORE_DOWN') return 'the store could not be used'
  return 'the target could not be used'
}
