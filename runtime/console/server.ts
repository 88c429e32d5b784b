/**
 * The console's listener: public pages, and an API for signed-in users. The console has its own port, separate from the
 * MCP port.
 *
 * Checks run in this order: browser rules (headers, host, origin), authentication, body, permission. Unauthenticated
 * users cannot find out which API paths exist.
 */
import type { IncomingMessage } from 'node:http'
import type { ServedCertificate } from '../../schemas/certificate/index.ts'
import { GatehouseError, isFields } from '../../schemas/index.ts'
import { Exchange, listen, type Log, pipeline, readBody, sendJson, sendProblem } from '../net/index.ts'
import type { Acted } from './acted.ts'
import type { VisitorAccess, Visitor } from './access/visitor.ts'
import { permissionsOf } from './access/visitor.ts'
import { type AppPages, appsPath } from './tries/app-pages.ts'
import { type ApiRoute, findRoute, type FoundRoute } from './http/api-route.ts'
import { type Assets, readAssets } from './http/assets.ts'
import { checkFetchSite, checkOrigin, checkWrite, originsOf, setSecurityHeaders } from './http/security.ts'

const apiPrefix = '/api/v1/'
const maxBodyBytes = 1024 * 1024
const defaultGraceMs = 2_000

export interface ConsoleServerOptions {
  readonly host: string
  /** Port to listen on; 0 lets the kernel choose. */
  readonly port: number
  readonly certificate: ServedCertificate | undefined
  /** Prefix of all paths, without a trailing slash; usually ''. */
  readonly basePath: string
  /** Origin that browsers use. If undefined, the names of this machine are accepted. */
  readonly publicUrl: string | undefined
  readonly access: VisitorAccess
  readonly routes: readonly ApiRoute[]
  readonly acted: Acted
  readonly apps: AppPages
  /** Folder with the static files. */
  readonly assets: string
  readonly log: Log
}

export interface RunningConsole {
  /** URL to open in the browser, without a token. */
  readonly url: string
  close(): Promise<void>
}

class ConsoleExchange extends Exchange {
  visitor: Visitor | undefined
  found: FoundRoute | undefined
  json: unknown
}

/** Binds the port and starts serving. Rejects with the system error when binding fails. */
export async function serveConsole(options: ConsoleServerOptions): Promise<RunningConsole> {
  const { host, port, basePath, publicUrl, log, access, certificate } = options
  const assets = readAssets(options.assets, basePath, access.anonymous ? 'launch' : 'page')
  let origins: ReadonlySet<string> = new Set()

  const handler = pipeline<ConsoleExchange>(
    {
      limits(exchange) {
        setSecurityHeaders(exchange)
        if (pathOf(exchange, basePath) === undefined) throw new GatehouseError('NOT_FOUND')
      },
      guard: (exchange) => checkOrigin(exchange, origins),
      async authenticate(exchange) {
        const path = pathOf(exchange, basePath) ?? ''
        if (!path.startsWith(apiPrefix)) return
        checkFetchSite(exchange)
        exchange.visitor = await access.visitor(exchange)
        if (!exchange.visitor)
          throw new GatehouseError('UNAUTHENTICATED', { detail: 'sign in to the console' })
        exchange.found = findRoute(options.routes, exchange.req.method ?? '', path.slice(apiPrefix.length))
      },
      parse: readJson,
      authorize,
      dispatch: (exchange) => dispatch(exchange, options, assets),
      audit: (exchange, error) => tell(exchange, error, options.acted),
      recover(exchange, error) {
        if (!(error instanceof GatehouseError) || error.status >= 500)
          log.warn('console request failed', { err: error })
        sendProblem(exchange.res, error)
      },
    },
    ConsoleExchange,
  )
  const listener = await listen({ host, port, handler, log, certificate })
  origins = originsOf(publicUrl, listener)
  const url = `${publicUrl ?? listener.url}${basePath}/`
  log.info('console listening', { url })
  return {
    url,
    async close() {
      await listener.close({ graceMs: defaultGraceMs })
      await access.close()
    },
  }
}

function tell(exchange: ConsoleExchange, error: unknown, acted: Acted): void {
  const { found, visitor, json } = exchange
  const type = found?.route.action
  if (!found || !visitor || type === undefined) return
  const named = isFields(json) ? json['name'] : undefined
  const about = found.route.about?.(json) ?? {
    target: found.names[0] ?? (typeof named === 'string' ? named : undefined),
  }
  acted(exchange, { type, caller: visitor.caller, ...about, error })
}

/** Returns the path below the base path, or undefined for other paths. */
function pathOf({ path }: Exchange, basePath: string): string | undefined {
  if (basePath === '') return path
  if (path === basePath) return '/'
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : undefined
}

async function readJson(exchange: ConsoleExchange): Promise<void> {
  const { req, visitor, found } = exchange
  if (!found || found.route.method === 'GET' || !visitor) return
  checkWrite(exchange, visitor)
  if (found.route.method !== 'POST' || !hasBody(req)) return
  if (!/^application\/json\s*(?:;|$)/i.test(req.headers['content-type'] ?? ''))
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE', { detail: 'send application/json' })
  await readBody(exchange, { maxBytes: maxBodyBytes })
  try {
    exchange.json = JSON.parse(exchange.body.toString())
  } catch {
    throw new GatehouseError('BAD_REQUEST', { detail: 'the body is not valid JSON' })
  }
}

/** Accepts a POST without a body, for which browsers send `Content-Length: 0` and no content type. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}

function authorize({ found, visitor }: ConsoleExchange): void {
  if (!found || !visitor) return
  const { needs, fresh } = found.route
  if (needs !== undefined && !permissionsOf(visitor.roles).includes(needs))
    throw new GatehouseError('FORBIDDEN', { detail: `the permission ${needs} is required` })
  if (fresh && !visitor.freshLogin) throw new GatehouseError('LOGIN_TOO_OLD')
}

async function dispatch(
  exchange: ConsoleExchange,
  options: ConsoleServerOptions,
  assets: Assets,
): Promise<void> {
  const { found, visitor, res, req } = exchange
  if (found && visitor) {
    const value: unknown = await found.route.handle({
      exchange,
      visitor,
      permissions: new Set(permissionsOf(visitor.roles)),
      names: found.names,
      query: new URLSearchParams(exchange.query),
      body: exchange.json,
    })
    if (exchange.responded) return
    if (value === undefined) res.writeHead(204).end()
    else sendJson(res, 200, value)
    return
  }
  const path = pathOf(exchange, options.basePath) ?? '/'
  const own = options.access.route(path)
  if (own) {
    await own(exchange)
    return
  }
  if (path.startsWith(appsPath)) return options.apps.send(exchange, path.slice(appsPath.length))
  if (req.method !== 'GET' && req.method !== 'HEAD')
    throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } })
  assets.send(exchange, path)
}
