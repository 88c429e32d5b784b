/** Formats the proxy's own errors: JSON-RPC for MCP clients, problem details for everything else. */

import type { Authenticator } from '../../incoming/index.ts'
import { errorMessage, MessageError, refusalHeaders } from '../../mcp/index.ts'
import { type Log, sendBody, sendProblem, toGatehouseError } from '../../net/index.ts'
import type { ProxyExchange } from '../model/exchange.ts'

/**
 * Codes that are always returned as JSON-RPC, because only MCP clients cause them, or because MCP clients must be able
 * to read them.
 */
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

/**
 * Returns the pipeline's final error handler. The handler never exposes a cause. Any error that is not a GatehouseError
 * is logged and becomes a 500 response.
 */
export function makeRecover(
  log: Log,
  incoming: Pick<Authenticator, 'sendChallenge'> | undefined,
): (exchange: ProxyExchange, error: unknown) => void {
  return function recover(exchange, error) {
    // A rejected caller gets the challenge with the sign-in location.
    if (incoming?.sendChallenge(exchange, error) === true) return
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
  if (code === 'AUTH_UNAVAILABLE') return "checking the caller's access token failed"
  if (code.startsWith('OAUTH_') || code.startsWith('BACKEND_AUTH_') || code === 'ENTERPRISE_REQUIRED')
    return 'failed to get a credential for the target'
  if (code.startsWith('STORE_') || code === 'SESSION_STORE_DOWN') return 'the session store failed'
  return 'the request to the target failed'
}
