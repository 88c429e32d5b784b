/**
 * Turns what was thrown into the HTTP response of the MCP endpoint: JSON-RPC where there is a message, its id and the
 * status of the error's row. What is not in the table says no more than "Internal error".
 */
import { errorMessage, MessageError, refusalHeaders } from '../../mcp/index.ts'
import { toGatehouseError } from '../../net/index.ts'
import type { VmcpExchange } from '../model/exchange.ts'

export function respondWithError(exchange: VmcpExchange, error: unknown): void {
  const { res } = exchange
  if (res.headersSent || res.writableEnded) {
    if (!res.writableFinished) res.destroy()
    return
  }
  const failure = toGatehouseError(error)
  const id = error instanceof MessageError ? error.id : exchange.message?.id
  const body = errorMessage(id, failure)
  res.writeHead(failure.status, {
    'content-type': 'application/json',
    'content-length': body.length,
    'x-content-type-options': 'nosniff',
    ...failure.headers,
    ...refusalHeaders(failure),
  })
  // As text it leaves with the head in one piece.
  res.end(body.toString())
}
