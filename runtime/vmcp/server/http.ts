/**
 * The HTTP interface of a virtual server. Serves built-in paths first, then the MCP endpoint, in the order of the
 * pipeline.
 *
 * MCP is served at `/mcp`, with or without a trailing slash. The deprecated HTTP+SSE transport uses `/sse` and
 * `/messages`. Unknown paths get 404. Requests from both protocol eras share the stages up to parsing.
 * Source: ARCHITECTURE.md, "A tool call"; docs/reference/specification/virtual-server.md#endpoints, "Endpoints".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Authenticator } from '../../incoming/index.ts'
import { eraOf, headerName, readClientMessage, statelessVersion } from '../../mcp/index.ts'
import {
  type LoadControl,
  type OriginCheck,
  pipeline,
  readBody,
  rejectBodyByHeaders,
  type RequestHandler,
  repeatedSingleton,
  sendProblem,
  type Stage,
} from '../../net/index.ts'
import type { Events, Observer } from '../../observe/index.ts'
import type { Gate } from '../../policy/index.ts'
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
    readonly guards: { readonly gate: Gate | undefined }
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
  const { observer, load, reloadable } = parts

  /** Runs a request's stages, in the order defined in runtime/net/pipeline.ts. */
  async function serve(exchange: VmcpExchange): Promise<void> {
    const { req, res, path } = exchange
    observer.started(exchange)
    const isPost = req.method === 'POST'
    if (!allowedMethods[path] || req.method === 'GET' || req.method === 'HEAD') {
      const stage = routeOf(parts, exchange)
      if (stage) return stage(exchange)
    }
    const refusal = load.admit(exchange)
    if (refusal) await refusal
    checkHead(exchange)

    if (!reloadable.originCheck) throw new GatehouseError('SHUTTING_DOWN')
    reloadable.originCheck.check(exchange)
    if (exchange.responded) return
    const authenticating = reloadable.authenticator.stage(exchange)
    if (authenticating) await authenticating
    if (exchange.responded) return
    if (req.method === 'OPTIONS') throw notAllowed(path)

    if (isPost) {
      await readBody(exchange, { memory: load.bodies })
      if (res.destroyed) return
      const read = readClientMessage(exchange.body)
      const { message, params } = read instanceof Promise ? await read : read
      if (res.destroyed) return
      exchange.message = message
      exchange.params = params
      exchange.era =
        message.method === '' || path === messagesPath
          ? 'session'
          : eraOf(message, params, req.headers[headerName.protocolVersion])
      const waiting = load.turn(exchange)
      if (waiting) await waiting
      if (res.destroyed) return
    }
    if (parts.relay) {
      await parts.relay(exchange)
      if (exchange.responded) return
    }
    return dispatch(parts, exchange)
  }

  const handler = pipeline<VmcpExchange>(
    {
      dispatch: serve,
      audit: (exchange, error) => observer.finished(exchange, error, exchange.message, exchange.params),
      recover: (exchange, error) => recover(parts, exchange, error),
    },
    VmcpExchange,
  )
  return observer.wrap(handler)
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

/** Passes an authenticated request to the codec for its era and transport. */
async function dispatch(parts: HttpParts, exchange: VmcpExchange): Promise<void> {
  const { message, params, caller, path, era } = exchange
  const { method } = exchange.req
  const { sessionEdge, oldSseEdge, statelessEdge } = parts.edges
  if (!caller) throw new GatehouseError('UNAUTHENTICATED')
  if (message && params) {
    if (path === messagesPath) return oldSseEdge.post(exchange, message, params, caller)
    if (era === 'stateless') return statelessEdge.post(exchange, message, params, caller)
    try {
      return await sessionEdge.post(exchange, message, params, caller)
    } catch (error) {
      // A caller that is not allowed to send this message must not find out which sessions exist.
      if (error instanceof GatehouseError && error.code === 'SESSION_NOT_FOUND') {
        const { signal } = exchange
        const { gate } = parts.reloadable.guards
        await gate?.check(caller, message.method, params, { signal, factsOf: () => 'later' })
      }
      throw error
    }
  }
  // Messages on open connections are served until the connections close. The shutdown would interrupt a new stream.
  if (parts.isStopping() && method === 'GET') throw new GatehouseError('SHUTTING_DOWN')
  if (path === ssePath) return oldSseEdge.open(exchange, caller)
  return method === 'GET' ? sessionEdge.get(exchange, caller) : sessionEdge.delete(exchange, caller)
}

function recover(parts: HttpParts, exchange: VmcpExchange, error: unknown): void {
  if (parts.reloadable.authenticator.sendChallenge(exchange, error)) return
  const reason = error instanceof GatehouseError ? error.code.toLowerCase() : 'internal'
  if (!(error instanceof GatehouseError) || (error.status >= 500 && error.code !== 'OVERLOADED'))
    parts.events.emit('request_failed', { reason, err: error })
  if (allowedMethods[exchange.path]) respondWithError(exchange, error)
  else sendProblem(exchange.res, error)
}
