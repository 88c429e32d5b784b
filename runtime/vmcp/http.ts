/**
 * The HTTP surface of a virtual server: built-in paths, then the MCP endpoint, in the one pipeline order.
 *
 * MCP is served on `/mcp`; what is not a known path is 404. Requests of both eras meet here and part after parsing.
 * Source: design, section 3 "Request"; spec document 3, "Endpoints".
 */
import { GatehouseError } from '../../schemas/index.ts'
import type { Authenticator } from '../incoming/index.ts'
import { eraOf, metaOf, MessageError, paramsOf, scanMessage, STATELESS_VERSION } from '../mcp/index.ts'
import type { Observer } from '../observe/index.ts'
import {
  type Caller,
  type Log,
  type OriginGuard,
  pipeline,
  readBody,
  refuseDeclaredSize,
  type RequestHandler,
  repeatedSingleton,
  sendProblem,
  type Stage,
} from '../net/index.ts'
import { VmcpExchange } from './edge/exchange.ts'
import { answerError } from './edge/http-answers.ts'
import { MESSAGES_PATH, type OldSseEdge, SSE_PATH } from './edge/old-sse-edge.ts'
import type { SessionEdge } from './edge/session-edge.ts'
import type { StatelessEdge } from './edge/stateless-edge.ts'

export const MCP_PATH = '/mcp'

/** Paths that speak MCP, and the methods that each takes. */
const METHODS: Readonly<Record<string, readonly string[]>> = {
  [MCP_PATH]: ['GET', 'POST', 'DELETE'],
  [SSE_PATH]: ['GET'],
  [MESSAGES_PATH]: ['POST'],
}

export interface HttpParts {
  readonly authenticator: () => Authenticator
  readonly guard: () => OriginGuard
  readonly sessionEdge: SessionEdge
  readonly oldSseEdge: OldSseEdge
  readonly statelessEdge: StatelessEdge
  readonly routes: (exchange: VmcpExchange) => Stage<VmcpExchange> | undefined
  readonly stopping: () => boolean
  readonly observer: Observer
  readonly log: Log
}

/** Makes the request listener of a virtual server. */
export function makeHandler(parts: HttpParts): RequestHandler {
  const { observer } = parts
  const handle = pipeline<VmcpExchange>(
    {
      route: (exchange) => routeOf(parts, exchange),
      limits: checkHead,
      guard: (exchange) => parts.guard().check(exchange),
      authenticate: (exchange) => parts.authenticator().stage(exchange),
      parse,
      dispatch: (exchange) => dispatch(parts, exchange),
      audit: (exchange, error) => observer.finished(exchange, error, exchange.message, exchange.params),
      recover: (exchange, error) => recover(parts, exchange, error),
    },
    (req, res) => observer.started(new VmcpExchange(req, res)),
  )
  return observer.wrap(handle)
}

function routeOf(parts: HttpParts, exchange: VmcpExchange): Stage<VmcpExchange> | undefined {
  if (METHODS[exchange.path]) return undefined
  const builtIn = parts.routes(exchange) ?? parts.authenticator().route(exchange)
  if (builtIn) return builtIn
  return () => {
    throw new GatehouseError('NOT_FOUND')
  }
}

/** Refuses by method and headers alone. */
function checkHead(exchange: VmcpExchange): void {
  const { method, rawHeaders, headers } = exchange.req
  if (method === 'OPTIONS') return
  if (method === undefined || !METHODS[exchange.path]?.includes(method)) throw notAllowed(exchange.path)
  if (method !== 'POST' && exchange.header('protocolVersion') === STATELESS_VERSION)
    throw notAllowed(MESSAGES_PATH)
  const repeated = repeatedSingleton(rawHeaders)
  if (repeated !== undefined)
    throw new GatehouseError('BAD_REQUEST', { detail: `the header ${repeated} occurs twice` })
  if (method !== 'POST') return
  const type = headers['content-type']
  if (type === undefined || !/^\s*application\/json\s*(?:;|$)/i.test(type))
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE')
  refuseDeclaredSize(exchange)
}

function notAllowed(path: string): GatehouseError {
  return new GatehouseError('METHOD_NOT_ALLOWED', {
    headers: { allow: [...(METHODS[path] ?? []), 'OPTIONS'].join(', ') },
  })
}

/** Reads the message and tells the eras apart. GET and DELETE have none. */
async function parse(exchange: VmcpExchange): Promise<void> {
  if (exchange.req.method === 'OPTIONS') throw notAllowed(exchange.path)
  if (exchange.req.method !== 'POST') return
  await readBody(exchange)
  const message = scanMessage(exchange.body)
  exchange.message = message
  exchange.params = paramsOf(message)
  exchange.era =
    message.method === ''
      ? 'session'
      : eraOf(message.method, metaOf(message, exchange.params), exchange.header('protocolVersion'))
}

function dispatch(parts: HttpParts, exchange: VmcpExchange): void | Promise<void> {
  const { message, params, caller } = exchange
  if (!caller) throw new GatehouseError('UNAUTHENTICATED')
  if (parts.stopping()) throw new MessageError('SHUTTING_DOWN', message?.id)
  if (message && params) return post(parts, exchange, caller)
  if (exchange.path === SSE_PATH) return parts.oldSseEdge.open(exchange, caller)
  return exchange.req.method === 'GET'
    ? parts.sessionEdge.get(exchange, caller)
    : parts.sessionEdge.delete(exchange, caller)
}

function post(parts: HttpParts, exchange: VmcpExchange, caller: Caller): Promise<void> {
  const { message, params, era } = exchange
  if (!message || !params) throw new GatehouseError('INTERNAL')
  if (exchange.path === MESSAGES_PATH) return parts.oldSseEdge.post(exchange, message, params, caller)
  if (era === 'stateless') return parts.statelessEdge.post(exchange, message, params, caller)
  return parts.sessionEdge.post(exchange, message, params, caller)
}

function recover(parts: HttpParts, exchange: VmcpExchange, error: unknown): void {
  if (parts.authenticator().answer(exchange, error)) return
  if (!(error instanceof GatehouseError)) parts.log.error('a request failed unexpectedly', { err: error })
  else if (error.status >= 500) parts.log.warn('a request failed', { code: error.code, err: error })
  if (METHODS[exchange.path]) answerError(exchange, error)
  else sendProblem(exchange.res, error)
}
