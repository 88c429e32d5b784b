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
  // Node writes a text body and the head together.
  res.end(body.toString())
}
