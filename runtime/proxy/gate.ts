/**
 * What the proxy checks about MCP before it forwards: batches, the protocol revision, and whose session it is.
 *
 * A body that is not JSON-RPC is none of its business and passes. Nothing here changes a request.
 * Source: MCP 2025-11-25 and 2026-07-28, transports; spec document 1 leaves the answers open.
 */
import { GatehouseError } from '../../schemas/index.ts'
import {
  checkStateless,
  eraOf,
  HEADER,
  isBatch,
  type Message,
  MessageError,
  metaOf,
  paramsOf,
  scanMessage,
  STATELESS_VERSION,
} from '../mcp/index.ts'
import type { ProxyExchange } from './exchange.ts'
import { ownerOf, sessionIdOf } from './forwarder.ts'
import type { SessionTable } from './sessions.ts'

const supported: readonly string[] = [STATELESS_VERSION]

/** The stateless revision has POST only. Looks at headers only, so it stands before authentication. */
export function refuseStatelessMethod({ req }: ProxyExchange): void {
  if (req.headers[HEADER.protocolVersion] !== STATELESS_VERSION) return
  if (req.method === 'GET' || req.method === 'HEAD' || req.method === 'DELETE') {
    throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { Allow: 'POST, OPTIONS' } })
  }
}

/** Finds the JSON-RPC message in the body. Throws BATCH_REFUSED and the faults of a stateless request. */
export function readMessage(exchange: ProxyExchange): void {
  const { body, req } = exchange
  if (body.length === 0) return
  if (isBatch(body)) throw new GatehouseError('BATCH_REFUSED')
  if (req.headers['content-type']?.includes('application/json') !== true) return
  const message = tryScan(body)
  if (!message) return
  exchange.message = message
  if (message.kind === 'request') checkRevision(exchange, message)
}

function tryScan(body: Buffer): Message | undefined {
  try {
    return scanMessage(body)
  } catch (error) {
    if (error instanceof MessageError) return undefined
    throw error
  }
}

function checkRevision({ req }: ProxyExchange, message: Message): void {
  const header = req.headers[HEADER.protocolVersion]
  // Without either signal there is nothing to find; the params of most requests need not be looked into.
  if (header !== STATELESS_VERSION && message.params?.includes('_meta') !== true) return
  const params = paramsOf(message)
  const version = typeof header === 'string' ? header : undefined
  if (eraOf(message.method, metaOf(message, params), version) === 'stateless') {
    checkStateless(message, params, req.headers, supported)
  }
}

/**
 * Looks up the session that the request names. With `strict`, only the caller who opened a session may use it: anybody
 * else gets the answer for an unknown one, and the target is not asked. Without (nobody is authenticated), an unknown
 * id is left for the target to judge, so that sessions survive a restart of this proxy.
 */
export function makeSessionGate(sessions: SessionTable, strict: boolean): (exchange: ProxyExchange) => void {
  return function sessionGate(exchange) {
    if (exchange.isInitialize) return
    const id = sessionIdOf(exchange)
    if (id === undefined) return
    exchange.session = sessions.find(ownerOf(exchange), id)
    if (exchange.session === undefined && strict) throw new GatehouseError('SESSION_NOT_FOUND')
  }
}
