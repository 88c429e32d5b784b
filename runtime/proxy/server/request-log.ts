/**
 * One line per finished request, and the same facts for metrics. No query, no header, no body, no session id; the
 * caller appears as a hash.
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Caller, Log } from '../../net/index.ts'
import type { ProxyExchange } from '../model/exchange.ts'

export interface RequestFacts {
  readonly method: string
  readonly status: number
  readonly durationMs: number
  /** JSON-RPC method, when there was one. */
  readonly rpcMethod: string | undefined
  /** The response was an event stream or a tunnel: its duration says nothing. */
  readonly stream: boolean
}

export type RequestObserver = (facts: RequestFacts) => void

export function makeRequestLog(
  log: Log,
  observe: RequestObserver | undefined,
): (exchange: ProxyExchange, error?: unknown) => void {
  return function requestLog(exchange, error) {
    const { req, res, caller } = exchange
    // Looking for the JSON-RPC method costs a look at the body; nobody reads it when this level is off.
    const rpcMethod = log.infoEnabled || observe ? rpcMethodOf(exchange) : undefined
    const durationMs = Math.round((performance.now() - exchange.startedAt) * 10) / 10
    const status = exchange.upgrade && !res.headersSent ? 101 : res.statusCode
    const method = req.method ?? ''
    // Of overload is told when it begins and ends, not each time.
    const isOverload = error instanceof GatehouseError && error.code === 'OVERLOADED'
    const line = isOverload || (exchange.probe && status < 400) ? log.debug : log.info
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

/** How most clients write a message: `method` first, or after `jsonrpc` and `id`. */
const methodFirst =
  /^\{(?:"jsonrpc":"2\.0",|"id":(?:\d{1,20}|"[\w-]{1,64}"),){0,2}"method":"([\w/.$-]{1,64})"[,}]/
const maxOpening = 256

/** The method as its opening says, without reading the rest; a message that begins otherwise is read whole. */
function rpcMethodOf(exchange: ProxyExchange): string | undefined {
  if (!exchange.hasJsonBody) return undefined
  const opening = exchange.body.toString('latin1', 0, maxOpening)
  return methodFirst.exec(opening)?.[1] ?? exchange.message?.method
}

/** A caller is the same object as long as its token is remembered. */
const fingerprints = new WeakMap<Caller, string>()

/** Twelve hex digits that stand for a caller in the log, for reading only: nothing is looked up by them. */
function fingerprint(caller: Caller): string {
  const known = fingerprints.get(caller)
  if (known !== undefined) return known
  const made = hash('sha256', caller.key, 'hex').slice(0, 12)
  fingerprints.set(caller, made)
  return made
}
