/**
 * One line per finished request, and the same facts for metrics. No query, no header, no body, no session id; the
 * caller appears as a hash.
 */
import { createHash } from 'node:crypto'
import type { Log } from '../net/index.ts'
import type { ProxyExchange } from './exchange.ts'

export interface RequestFacts {
  readonly method: string
  readonly status: number
  readonly durationMs: number
  /** JSON-RPC method, when there was one. */
  readonly rpcMethod: string | undefined
  /** The answer was an event stream or a tunnel: its duration says nothing. */
  readonly stream: boolean
}

export type RequestObserver = (facts: RequestFacts) => void

export function makeRequestLog(
  log: Log,
  observe: RequestObserver | undefined,
): (exchange: ProxyExchange) => void {
  return function requestLog(exchange) {
    const { req, res, caller } = exchange
    // Looking for the JSON-RPC method costs a scan of the body; nobody reads it when this level is off.
    const message = log.infoEnabled || observe ? exchange.message : undefined
    const durationMs = Math.round((performance.now() - exchange.startedAt) * 10) / 10
    const status = exchange.upgrade && !res.headersSent ? 101 : res.statusCode
    const method = req.method ?? ''
    log.info('request', {
      method,
      path: exchange.path,
      status,
      durationMs,
      ...(message?.method ? { rpc: message.method } : {}),
      ...(caller ? { caller: fingerprint(caller.key) } : {}),
    })
    observe?.({
      method,
      status,
      durationMs,
      rpcMethod: message?.method,
      stream: status === 101 || exchange.streamed,
    })
  }
}

/** Twelve hex digits that stand for a caller in the log. */
function fingerprint(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 12)
}
