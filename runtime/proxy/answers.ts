/**
 * How the proxy words its own refusals: JSON-RPC towards an MCP client, problem details for everything else.
 */

import type { Authenticator } from '../incoming/index.ts'
import { errorMessage, MessageError } from '../mcp/index.ts'
import { type Log, sendBody, sendProblem, toGatehouseError } from '../net/index.ts'
import type { ProxyExchange } from './exchange.ts'

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
  incoming: Pick<Authenticator, 'answer'> | undefined,
): (exchange: ProxyExchange, error: unknown) => void {
  return function recover(exchange, error) {
    // A refused caller gets the challenge that tells where to sign in.
    if (incoming?.answer(exchange, error) === true) return
    const fault = toGatehouseError(error)
    if (fault.code === 'INTERNAL') log.error('a request failed', { err: fault.cause, path: exchange.path })
    else if (fault.status >= 500)
      log.warn('the target could not be used', { fault: fault.code, err: fault.cause })
    if (exchange.message === undefined && !always.has(fault.code)) return sendProblem(exchange.res, fault)
    const id = fault instanceof MessageError ? fault.id : exchange.rpcId
    sendBody(exchange.res, fault.status, 'application/json', errorMessage(id, fault), fault.headers)
  }
}
