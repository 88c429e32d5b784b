/**
 * MCP checks before a request is forwarded: batches, the protocol revision, and the session's owner.
 *
 * Bodies that are not JSON-RPC pass unchecked. Requests are never changed.
 * Source: MCP 2025-11-25 and 2026-07-28, transports; docs/reference/specification/proxy-command.md does not define the
 * responses.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import {
  checkStateless,
  eraOf,
  headerName,
  isBatch,
  paramsOf,
  reservedMetaPrefix,
  startsAsJson,
  statelessVersion,
} from '../../mcp/index.ts'
import type { ProxyExchange } from '../model/exchange.ts'
import { ownerOf, sessionIdOf } from '../forward/forwarder.ts'
import type { ProxiedSession } from '../model/session.ts'
import type { ProxiedSessionTable } from '../session/sessions.ts'
import type { TargetAddress } from '../../config/index.ts'

const supported: readonly string[] = [statelessVersion]

/**
 * Rejects methods other than POST for the stateless revision and for targets with the `stateless` setting. Reads only
 * headers, so it can run before authentication.
 */
export function refuseStatelessMethod(
  { req }: ProxyExchange,
  { stateless }: { readonly stateless: boolean },
): void {
  if (!stateless && req.headers[headerName.protocolVersion] !== statelessVersion) return
  if (req.method === 'GET' || req.method === 'HEAD' || req.method === 'DELETE') {
    throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { Allow: 'POST, OPTIONS' } })
  }
}

/** Checks the body, without changing it. Throws BATCH_REFUSED, PARSE_ERROR and the errors of a stateless request. */
export function checkBody(exchange: ProxyExchange, target: TargetAddress): void {
  const { body, req } = exchange
  if (body.length === 0) return
  if (isBatch(body)) throw new GatehouseError('BATCH_REFUSED')
  if (exchange.hasJsonBody && !startsAsJson(body)) {
    throw new GatehouseError('PARSE_ERROR', {
      detail: 'Parse error: the body must begin with a JSON object in UTF-8',
    })
  }
  const header = req.headers[headerName.protocolVersion]
  // Without either signal, the request belongs to the session era, so do not inspect it.
  if (header !== statelessVersion && !body.includes(reservedMetaPrefix)) return
  const { message } = exchange
  if (message?.kind !== 'request' || isSsePost(exchange, target)) return
  const params = paramsOf(message)
  const version = typeof header === 'string' ? header : undefined
  if (eraOf(message, params, version) === 'stateless') {
    checkStateless(message, params, req.headers, supported)
  }
}

/** The session parameter of HTTP+SSE endpoints, in the spellings of the public SDKs. */
const sseSession = /(?:^|&)session_?id=/i

/**
 * True for a POST that uses the deprecated HTTP+SSE transport. That transport defines no revision headers, and the
 * response is sent on the stream, so the message is forwarded unchanged. When the target's transport is not configured,
 * the session parameter identifies the endpoint.
 */
function isSsePost({ query }: ProxyExchange, { transport }: TargetAddress): boolean {
  return transport === undefined ? sseSession.test(query) : transport === 'sse'
}

/**
 * Looks up the request's session. With `strict`, only the caller that opened a session may use it. Other callers get
 * the same response as for an unknown session, and the target receives no request. Without `strict` (no
 * authentication), the target checks unknown ids, so that sessions survive a restart of this proxy.
 */
export function makeSessionGate(
  sessions: ProxiedSessionTable,
  strict: boolean,
): (exchange: ProxyExchange) => void | Promise<void> {
  function settle(exchange: ProxyExchange, session: ProxiedSession | undefined): void {
    exchange.session = session
    if (session === undefined && strict) throw new GatehouseError('SESSION_NOT_FOUND')
  }

  return function sessionGate(exchange) {
    if (exchange.isInitialize) return undefined
    const id = sessionIdOf(exchange)
    if (id === undefined) return undefined
    const owner = ownerOf(exchange)
    const known = sessions.find(owner, id)
    const elsewhere = known ? undefined : sessions.lookUp(owner, id)
    if (!elsewhere) return settle(exchange, known)
    return elsewhere.then((session) => settle(exchange, session))
  }
}
