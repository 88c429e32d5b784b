/**
 * The HTTP surface of a virtual server: built-in paths, then the MCP endpoint, in the one pipeline order.
 *
 * MCP is served on `/mcp` (and `/sse` with `/messages` for the HTTP+SSE (deprecated) transport), with or without a
 * trailing slash. Unknown paths get 404. Requests of both eras meet here and part after parsing.
 * Source: ARCHITECTURE.md, "A tool call"; docs/specification/virtual-server.md#endpoints, "Endpoints".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Authenticator } from '../../incoming/index.ts'
import { eraOf, metaOf, paramsOf, scanClientMessage, statelessVersion } from '../../mcp/index.ts'
import {
  type LoadControl,
  type OriginGuard,
  pipeline,
  readBody,
  refuseBodyByHead,
  type RequestHandler,
  repeatedSingleton,
  sendProblem,
  type Stage,
} from '../../net/index.ts'
import type { Events, Observer } from '../../observe/index.ts'
import type { Gate } from '../../policy/index.ts'
import { mcpPath, messagesPath, ssePath, VmcpExchange } from '../model/exchange.ts'
import { browserPage, type BrowserPageFacts, wantsPage } from '../clients/browser-page.ts'
import { respondWithError } from '../clients/http-errors.ts'
import type { Edges } from '../clients/codecs.ts'

/** Paths that speak MCP, and the methods that each takes. */
const allowedMethods: Readonly<Record<string, readonly string[]>> = {
  [mcpPath]: ['GET', 'POST', 'DELETE'],
  [ssePath]: ['GET'],
  [messagesPath]: ['POST'],
}

export interface HttpParts {
  readonly load: LoadControl
  readonly authenticator: () => Authenticator
  readonly originGuard: () => OriginGuard
  /** The policies in force, where there are any. */
  readonly gate: () => Gate | undefined
  readonly edges: Edges
  readonly observer: Observer
  readonly routes: (exchange: VmcpExchange) => Stage<VmcpExchange> | undefined
  readonly stopping: () => boolean
  /** What people with a browser are told. */
  readonly page: () => Omit<BrowserPageFacts, 'path'>
  readonly events: Events
  /** Responds with what another process of this server says, if the request belongs to that. */
  readonly relay?: Stage<VmcpExchange> | undefined
}

/** Makes the request listener of a virtual server. */
export function makeHandler(parts: HttpParts): RequestHandler {
  const { observer } = parts
  const handler = pipeline<VmcpExchange>(
    {
      route: (exchange) => routeOf(parts, exchange),
      admit: (exchange) => parts.load.admit(exchange),
      limits: checkHead,
      guard: (exchange) => parts.originGuard().check(exchange),
      authenticate: (exchange) => parts.authenticator().stage(exchange),
      parse: (exchange) => parse(parts, exchange),
      turn: (exchange) => parts.load.turn(exchange),
      ...(parts.relay ? { authorize: parts.relay } : {}),
      dispatch: (exchange) => dispatch(parts, exchange),
      audit: (exchange, error) => observer.finished(exchange, error, exchange.message, exchange.params),
      recover: (exchange, error) => recover(parts, exchange, error),
    },
    (req, res) => observer.started(new VmcpExchange(req, res)),
  )
  return observer.wrap(handler)
}

function routeOf(parts: HttpParts, exchange: VmcpExchange): Stage<VmcpExchange> | undefined {
  const isPage = exchange.path === '/' || exchange.path === mcpPath
  if (isPage && wantsPage(exchange)) return browserPage({ ...parts.page(), path: mcpPath })
  if (allowedMethods[exchange.path]) return undefined
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
  if (method === undefined || !allowedMethods[exchange.path]?.includes(method))
    throw notAllowed(exchange.path)
  if (method !== 'POST' && exchange.header('protocolVersion') === statelessVersion)
    throw notAllowed(messagesPath)
  // Most requests repeat no header at all.
  const hasRepeated = Object.keys(headers).length * 2 !== rawHeaders.length
  const repeated = hasRepeated ? repeatedSingleton(rawHeaders) : undefined
  if (repeated !== undefined)
    throw new GatehouseError('BAD_REQUEST', { detail: `the header ${repeated} occurs twice` })
  if (method !== 'POST') return
  const type = headers['content-type']
  if (type !== 'application/json' && (type === undefined || !jsonType.test(type))) {
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE')
  }
  refuseBodyByHead(exchange)
}

const jsonType = /^\s*application\/json\s*(?:;|$)/i

function notAllowed(path: string): GatehouseError {
  const allow = [...(allowedMethods[path] ?? []), 'OPTIONS'].join(', ')
  return new GatehouseError('METHOD_NOT_ALLOWED', { headers: { allow } })
}

/** Reads the message and tells the eras apart. GET and DELETE have none. */
function parse({ load }: HttpParts, exchange: VmcpExchange): void | Promise<void> {
  if (exchange.req.method === 'OPTIONS') throw notAllowed(exchange.path)
  if (exchange.req.method !== 'POST') return
  const pending = readBody(exchange, { memory: load.bodies })
  return pending ? pending.then(() => readMessage(exchange)) : readMessage(exchange)
}

function readMessage(exchange: VmcpExchange): void {
  const message = scanClientMessage(exchange.body)
  exchange.message = message
  exchange.params = paramsOf(message)
  exchange.era =
    message.method === '' || exchange.path === messagesPath
      ? 'session'
      : eraOf(message.method, metaOf(message, exchange.params), exchange.header('protocolVersion'))
}

function dispatch(parts: HttpParts, exchange: VmcpExchange): void | Promise<void> {
  const { message, params, caller, path, era } = exchange
  const { sessionEdge, oldSseEdge, statelessEdge } = parts.edges
  if (!caller) throw new GatehouseError('UNAUTHENTICATED')
  if (message && params) {
    if (path === messagesPath) return oldSseEdge.post(exchange, message, params, caller)
    if (era === 'stateless') return statelessEdge.post(exchange, message, params, caller)
    return sessionEdge
      .post(exchange, message, params, caller)
      .catch((error: unknown) => refuseFirst(parts, exchange, error))
  }
  // What comes on open connections is served until they are closed; a stream would be cut.
  if (parts.stopping() && exchange.req.method === 'GET') throw new GatehouseError('SHUTTING_DOWN')
  if (path === ssePath) return oldSseEdge.open(exchange, caller)
  return exchange.req.method === 'GET'
    ? sessionEdge.get(exchange, caller)
    : sessionEdge.delete(exchange, caller)
}

/** Nothing is said of sessions to a caller who may not do this anyway. Rejects with what is to be said. */
async function refuseFirst(parts: HttpParts, exchange: VmcpExchange, error: unknown): Promise<never> {
  const { message, params, caller, signal } = exchange
  if (error instanceof GatehouseError && error.code === 'SESSION_NOT_FOUND' && message && params && caller)
    await parts.gate()?.check(caller, message.method, params, { signal, factsOf: () => 'later' })
  throw error
}

function recover(parts: HttpParts, exchange: VmcpExchange, error: unknown): void {
  if (parts.authenticator().response(exchange, error)) return
  const reason = error instanceof GatehouseError ? error.code.toLowerCase() : 'internal'
  if (!(error instanceof GatehouseError) || (error.status >= 500 && error.code !== 'OVERLOADED'))
    parts.events.emit('request_failed', { reason, err: error })
  if (allowedMethods[exchange.path]) respondWithError(exchange, error)
  else sendProblem(exchange.res, error)
}
