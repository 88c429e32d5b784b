/**
 * The HTTP interface of a virtual server. Serves built-in paths first, then the MCP endpoint, in the order of the
 * pipeline.
 *
 * MCP is served at `/mcp`, with or without a trailing slash. The deprecated HTTP+SSE transport uses `/sse` and
 * `/messages`. Unknown paths get 404. Requests from both protocol eras share the stages up to parsing.
 * Source: ARCHITECTURE.md, "A tool call"; docs/reference/specification/virtual-server.md#endpoints, "Endpoints".
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Authenticator } from '../../incoming/index.ts'
import {
  type ClientMessage,
  clientRules,
  eraOf,
  headerName,
  inTurns,
  largeBytes,
  paramsOf,
  readLargeMessage,
  scanMessage,
  statelessVersion,
} from '../../mcp/index.ts'
import {
  type LoadControl,
  type OriginCheck,
  readBody,
  rejectBodyByHeaders,
  type RequestHandler,
  repeatedSingleton,
  sendProblem,
  type Stage,
} from '../../net/index.ts'
import type { Events, Observer } from '../../observe/index.ts'
import { mcpPath, messagesPath, ssePath, VmcpExchange } from '../model/exchange.ts'
import { browserPage, type BrowserPageFacts, isBrowserRequest } from '../clients/browser-page.ts'
import { respondWithError } from '../clients/http-errors.ts'
import type { Edges } from '../clients/codecs.ts'

/** The MCP paths and the HTTP methods that each path accepts. */
const allowedMethods: Readonly<Record<string, readonly string[]>> = {
  [mcpPath]: ['GET', 'POST', 'DELETE'],
  [ssePath]: ['GET'],
  [messagesPath]: ['POST'],
}

export interface HttpParts {
  readonly load: LoadControl
  /** The parts that a reload replaces. */
  readonly reloadable: {
    readonly authenticator: Authenticator
    /** The check of the Origin and Host headers. Undefined until the port is bound. */
    readonly originCheck: OriginCheck | undefined
  }
  readonly edges: Edges
  readonly observer: Observer
  readonly routes: (exchange: VmcpExchange) => Stage<VmcpExchange> | undefined
  readonly isStopping: () => boolean
  /** Data for the page that browsers receive. */
  readonly page: () => Omit<BrowserPageFacts, 'path'>
  readonly events: Events
  /** Forwards a request that another process of this server owns, and relays the response. */
  readonly relay?: Stage<VmcpExchange> | undefined
}

/** Creates the request listener of a virtual server. */
export function makeHandler(parts: HttpParts): RequestHandler {
  const { observer, load, reloadable, edges } = parts

  /** Handles a request, in the order defined in runtime/net/pipeline.ts. */
  async function handleRequest(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const exchange = new VmcpExchange(req, res)
    const { path } = exchange
    let posted: ClientMessage | undefined
    let failure: unknown
    try {
      if (observer.enabled) observer.started(exchange)
      if (!allowedMethods[path] || req.method === 'GET' || req.method === 'HEAD') {
        const stage = routeOf(parts, exchange)
        if (stage) return await stage(exchange)
      }
      await load.admit(exchange)
      checkHead(exchange)

      if (!reloadable.originCheck) throw new GatehouseError('SHUTTING_DOWN')
      reloadable.originCheck.check(exchange)
      if (res.headersSent) return
      await reloadable.authenticator.stage(exchange)
      if (res.headersSent || res.destroyed) return
      const { caller } = exchange
      if (req.method === 'OPTIONS') throw notAllowed(path)
      if (!caller) throw new GatehouseError('UNAUTHENTICATED')

      if (req.method === 'POST') {
        await readBody(exchange, { memory: load.bodies })
        const { body } = exchange
        if (res.destroyed) return
        if (body.length >= largeBytes) posted = await inTurns(readLargeMessage(body))
        else {
          const message = scanMessage(body, clientRules)
          posted = { message, params: paramsOf(message) }
        }
        if (res.destroyed) return
        const { message, params } = posted
        exchange.message = message
        exchange.params = params
        exchange.era =
          message.method === '' || path === messagesPath
            ? 'session'
            : eraOf(message, params, req.headers[headerName.protocolVersion])
        await load.turn(exchange)
        if (res.destroyed) return
      }
      if (parts.relay) {
        await parts.relay(exchange)
        if (exchange.responded) return
      }
      // Messages on open connections are served until the connections close. The shutdown would interrupt a new stream.
      if (req.method === 'GET' && parts.isStopping()) throw new GatehouseError('SHUTTING_DOWN')
      if (path === ssePath) edges.oldSseEdge.open(exchange, caller)
      else if (posted && path === messagesPath) await edges.oldSseEdge.post(exchange, posted, caller)
      else if (posted && exchange.era === 'stateless')
        await edges.statelessEdge.post(exchange, posted, caller)
      else await edges.sessionEdge.handle(exchange, posted, caller)
    } catch (error) {
      failure = error
      try {
        recover(parts, exchange, error)
      } catch {
        // Closes the connection, because no response can be sent and the client would wait.
        res.destroy()
      }
    } finally {
      observer.finished(exchange, failure, exchange.message, exchange.params)
    }
  }
  return observer.wrap(handleRequest)
}

function routeOf(parts: HttpParts, exchange: VmcpExchange): Stage<VmcpExchange> | undefined {
  const isPage = exchange.path === '/' || exchange.path === mcpPath
  if (isPage && isBrowserRequest(exchange)) return browserPage({ ...parts.page(), path: mcpPath })
  if (allowedMethods[exchange.path]) return undefined
  const builtIn = parts.routes(exchange) ?? parts.reloadable.authenticator.route(exchange)
  if (builtIn) return builtIn
  return () => {
    throw new GatehouseError('NOT_FOUND')
  }
}

/** Rejects requests by their method and headers before the body is read. */
function checkHead(exchange: VmcpExchange): void {
  const { method, rawHeaders, headers } = exchange.req
  if (method === 'OPTIONS') return
  if (method === undefined || !allowedMethods[exchange.path]?.includes(method))
    throw notAllowed(exchange.path)
  if (method !== 'POST' && headers[headerName.protocolVersion] === statelessVersion)
    throw notAllowed(messagesPath)
  // Most requests do not repeat any header.
  const hasRepeated = Object.keys(headers).length * 2 !== rawHeaders.length
  const repeated = hasRepeated ? repeatedSingleton(rawHeaders) : undefined
  if (repeated !== undefined)
    throw new GatehouseError('BAD_REQUEST', { detail: `the header ${repeated} occurs twice` })
  if (method !== 'POST') return
  const type = headers['content-type']
  if (type !== 'application/json' && (type === undefined || !jsonType.test(type))) {
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE')
  }
  rejectBodyByHeaders(exchange)
}

const jsonType = /^\s*application\/json\s*(?:;|$)/i

function notAllowed(path: string): GatehouseError {
  const allow = [...(allowedMethods[path] ?? []), 'OPTIONS'].join(', ')
  return new GatehouseError('METHOD_NOT_ALLOWED', { headers: { allow } })
}

/** Sends an error response unless a response has begun. */
function recover(parts: HttpParts, exchange: VmcpExchange, error: unknown): void {
  if (parts.reloadable.authenticator.sendChallenge(exchange, error)) return
  const reason = error instanceof GatehouseError ? error.code.toLowerCase() : 'internal'
  if (!(error instanceof GatehouseError) || (error.status >= 500 && error.code !== 'OVERLOADED'))
    parts.events.emit('request_failed', { reason, err: error })
  if (allowedMethods[exchange.path]) respondWithError(exchange, error)
  else sendProblem(exchange.res, error)
}
