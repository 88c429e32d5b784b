/** Derives a request's event type, status, outcome, error kind and span name. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AuditEventType, type ErrorCode, GatehouseError } from '../../../schemas/index.ts'
import type { AuditOutcome } from '../audit/events.ts'
import { eventTypeOf } from '../audit/events.ts'
import type { TraceCarrier } from '../telemetry/propagation.ts'
import { errorType } from '../telemetry/tracer.ts'
import { knownMethod, type RpcFacts } from './rpc.ts'
import { type RpcResponse, safeMessage } from './rpc-answer.ts'

/** Status for a client that disconnected before it got a response. */
const clientLeft = 499

export function typeOf(rpc: RpcFacts | undefined, req: IncomingMessage, res: ServerResponse): AuditEventType {
  if (rpc) return eventTypeOf(rpc.method)
  return opensStream(req, res) ? 'sse_connection' : 'http_request'
}

/** True when the response is an event stream for a GET request. */
export function opensStream(req: IncomingMessage, res: ServerResponse): boolean {
  return (
    req.method === 'GET' &&
    res.statusCode === 200 &&
    req.headers.accept?.includes('text/event-stream') === true
  )
}

/** A connection that was taken over has no HTTP response. */
export function statusOf(req: IncomingMessage, res: ServerResponse): number {
  if (res.headersSent) return res.statusCode
  return req.headers.upgrade === undefined ? clientLeft : 101
}

/** `error` is the pipeline's error. An error after a success status means that the response was cut off. */
export function outcomeOf(status: number, response: RpcResponse | undefined, error: unknown): AuditOutcome {
  if (status === 401 || status === 403) return 'denied'
  if (status >= 500) return 'error'
  if (status >= 400) return 'failure'
  if (error !== undefined) return 'error'
  if (response?.kind === 'error') return isDenial(response) ? 'denied' : 'application_error'
  return response?.toolError === true ? 'application_error' : 'success'
}

/** Policy denials may have status 200. */
function isDenial({ code }: RpcResponse): boolean {
  return code === 401 || code === 403
}

/** Returns the error kind for `error.type`: a code, never a message. Returns undefined when only the client failed. */
export function errorOf(
  status: number,
  response: RpcResponse | undefined,
  error: unknown,
): string | undefined {
  if (error !== undefined && (status >= 500 || status < 400)) return errorType(error)
  if (status >= 500) return String(status)
  if (response?.kind === 'error') return String(response.code ?? 'error')
  return response?.toolError === true ? 'tool_error' : undefined
}

export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof GatehouseError ? error.code : undefined
}

/** Returns the response that the client gets for a rejected operation. */
export function responseOfError(error: unknown): RpcResponse {
  return error instanceof GatehouseError
    ? { kind: 'error', code: error.rpcCode, message: safeMessage(error.message) }
    : { kind: 'error', code: -32603 }
}

export function spanName(rpc: RpcFacts | undefined, req: IncomingMessage): string {
  if (rpc === undefined || rpc.method === '') return `${req.method ?? ''} ${pathOf(req)}`
  const method = knownMethod(rpc.method)
  return rpc.target === undefined || rpc.targetType === 'resource' ? method : `${method} ${rpc.target}`
}

export function pathOf({ url = '/' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

/** Headers take precedence over `params._meta`. */
export function carrierOf({ headers }: IncomingMessage, rpc: RpcFacts | undefined): TraceCarrier {
  const { traceparent, tracestate } = headers
  if (typeof traceparent === 'string')
    return { traceparent, tracestate: Array.isArray(tracestate) ? tracestate.join(',') : tracestate }
  return { traceparent: rpc?.traceparent, tracestate: rpc?.tracestate }
}
