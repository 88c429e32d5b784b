/**
 * Renders an error as RFC 9457 problem details: the shape for everything that is neither MCP nor OAuth.
 *
 * Anything that is not a GatehouseError becomes a bare 500: no message, no stack, no cause reaches a client.
 * Source: RFC 9457.
 */
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../schemas/index.ts'

/** The error itself when it has a row in the table, else INTERNAL with the error as cause. */
export function toGatehouseError(error: unknown): GatehouseError {
  return error instanceof GatehouseError ? error : new GatehouseError('INTERNAL', { cause: error })
}

/** Answers with problem details unless a response was begun, in which case the connection is cut. */
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

/** Answers with JSON. */
export function sendJson(
  res: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendBody(res, status, 'application/json', JSON.stringify(value), headers)
}

/** Answers with plain text. */
export function sendText(
  res: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendBody(res, status, 'text/plain; charset=utf-8', text, headers)
}

/** Answers with a complete body. After a begun answer nothing right can be said: the connection is cut. */
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
