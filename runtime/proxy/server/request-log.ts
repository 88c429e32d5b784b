/**
 * Logs one line per finished request, and reports the same data for metrics. The line contains no query, headers, body
 * or session id; the caller appears as a hash. Successful health checks, including MCP pings, are logged at debug level.
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Caller, Log } from '../../net/index.ts'
import type { ProxyExchange } from '../model/exchange.ts'

export interface RequestFacts {
  readonly method: string
  readonly status: number
  readonly durationMs: number
  /** JSON-RPC method, if any. */
  readonly rpcMethod: string | undefined
  /** True for an event stream or a tunnel, whose duration is meaningless. */
  readonly stream: boolean
}

export type RequestObserver = (facts: RequestFacts) => void

export function makeRequestLog(
  log: Log,
  observe: RequestObserver | undefined,
): (exchange: ProxyExchange, error?: unknown) => void {
  return function requestLog(exchange, error) {
    const { req, res, caller } = exchange
    // Parse the body for the JSON-RPC method only when the log or the metrics need it.
    const rpcMethod = log.infoEnabled || observe ? rpcMethodOf(exchange) : undefined
    const durationMs = Math.round((performance.now() - exchange.startedAt) * 10) / 10
    const status = exchange.upgrade && !res.headersSent ? 101 : res.statusCode
    const method = req.method ?? ''
    // Overload is logged when it starts and ends, not for each request.
    const isOverload = error instanceof GatehouseError && error.code === 'OVERLOADED'
    const isHealthCheck = exchange.probe || rpcMethod === 'ping'
    const line = isOverload || (isHealthCheck && status < 400) ? log.debug : log.info
    line('request', {
      method,
      path: exchange.path,
      status,
      durationMs,
      ...(rpcMethod ? { rpc: rpcMethod } : {}),
      ...(caller ? { caller: fingerprint(caller) } : {}),
    })
    observe?.({
      method,
      status,
      durationMs,
      rpcMethod,
      stream: status === 101 || exchange.streamed,
    })
  }
}

/** The usual start of a message: `method` comes first, or after `jsonrpc` and `id`. */
const methodFirst =
  /^\{(?:"jsonrpc":"2\.0",|"id":(?:\d{1,20}|"[\w-]{1,64}"),){0,2}"method":"([\w/.$-]{1,64})"[,}]/
const maxOpening = 256

/** Reads the method from the usual start of a message; otherwise parses the whole message. */
function rpcMethodOf(exchange: ProxyExchange): string | undefined {
  if (!exchange.hasJsonBody) return undefined
  const opening = exchange.body.toString('latin1', 0, maxOpening)
  return methodFirst.exec(opening)?.[1] ?? exchange.message?.method
}

/** A caller stays the same object while its token is cached. */
const fingerprints = new WeakMap<Caller, string>()

/** Returns twelve hex digits that identify a caller in the log. Never used for lookups. */
function fingerprint(caller: Caller): string {
  const known = fingerprints.get(caller)
  if (known !== undefined) return known
  const made = hash('sha256', caller.key, 'hex').slice(0, 12)
  fingerprints.set(caller, made)
  return made
}
