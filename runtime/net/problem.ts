/**
 * Sends responses: RFC 9457 problem details for errors outside MCP and OAuth, as well as other bodies.
 *
 * Any error that is not a GatehouseError becomes a bare 500: no message, stack or cause reaches the client.
 * Source: RFC 9457.
 */
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../schemas/index.ts'

/** Returns the error if it is a GatehouseError; otherwise INTERNAL with the error as its cause. */
export function toGatehouseError(error: unknown): GatehouseError {
  return error instanceof GatehouseError ? error : new GatehouseError('INTERNAL', { cause: error })
}

/** Sends problem details. Destroys the connection if a response has already begun. */
export function sendProblem(res: ServerResponse, error: unknown): void {
  const failure = toGatehouseError(error)
  sendBody(
    res,
    failure.status,
    'application/problem+json',
    JSON.stringify({
      type: 'about:blank',
      title: failure.message,
      status: failure.status,
      code: failure.code,
    }),
    failure.headers,
  )
}

export function sendJson(
  res: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendBody(res, status, 'application/json', JSON.stringify(value), headers)
}

export function sendText(
  res: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendBody(res, status, 'text/plain; charset=utf-8', text, headers)
}

/**
 * Sends a complete body. Destroys the connection if a response has already begun, because that response cannot be
 * corrected.
 */
export function sendBody(
  res: ServerResponse,
  status: number,
  contentType: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string | string[]>> = {},
): void {
  if (res.headersSent || res.writableEnded) {
    if (!res.writableFinished) res.destroy()
    return
  }
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  res.writeHead(status, {
    'Content-Type': contentType,
    'Content-Length': length,
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  })
  res.end(body)
}
