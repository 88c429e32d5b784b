/**
 * Serves a catalogue: the read-only part of the MCP registry API, for published servers.
 *
 * Answers `GET /v0.1/servers`, `/v0.1/servers/{name}/versions` and `/v0.1/servers/{name}/versions/{version}`. Every
 * other request gets the same 404 as a server that the caller may not see, so a client cannot find out which names
 * exist. Clients authenticate before anything else is read, except on the probes and the protected-resource document.
 * `reload` replaces the servers, the authentication and the policies; requests in flight keep the previous ones.
 * Source: MCP registry API v0.1.
 */
import { GatehouseError } from '../../schemas/index.ts'
import type { ServedCertificate } from '../../schemas/certificate/index.ts'
import type { CatalogueConfig } from '../config/index.ts'
import {
  Exchange,
  identityOf,
  listen,
  LoadControl,
  type Log,
  makeOriginCheck,
  type OriginCheck,
  pipeline,
  sendDocument,
  sendJson,
  silentLog,
  type Stage,
  toGatehouseError,
} from '../net/index.ts'
import { makeMemoryStore } from '../store/index.ts'
import { type CatalogueAccess, makeAccess } from './access.ts'
import { entryOf, pageOf, readQuery } from './entries.ts'

const maxAgeSeconds = 300
const listPath = '/v0.1/servers'
const versionPath = /^\/v0\.1\/servers\/([^/]+)\/versions(?:\/([^/]+))?$/
/** Limit for the requests of one authenticated caller. */
const callerBucket = { capacity: 300, refillMs: 60_000 } as const
const maxCallers = 50_000
const maxProofs = 100_000
const defaultGraceMs = 2_000

interface CatalogueOptions {
  readonly host: string
  /** Port to bind; 0 lets the kernel choose. */
  readonly port: number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log?: Log | undefined
  /** Certificate for TLS. The caller must close this object. */
  readonly certificate?: ServedCertificate | undefined
}

interface Catalogue {
  /** Origin of the listener. */
  readonly url: string
  /** Replaces the configuration. Throws INVALID_CONFIG and changes nothing if the configuration cannot be used. */
  reload(config: CatalogueConfig): void
  close(options?: { readonly graceMs?: number | undefined }): Promise<void>
}

class CatalogueExchange extends Exchange {
  /** The configuration that was active when the request arrived. */
  access: CatalogueAccess | undefined
}

/** Starts serving. Rejects with INVALID_CONFIG, or with the system's error if the address cannot be bound. */
export async function startCatalogue(config: CatalogueConfig, options: CatalogueOptions): Promise<Catalogue> {
  const { host, port, env, certificate, log = silentLog } = options
  const load = new LoadControl({})
  const callers = makeMemoryStore({ maxEntries: maxCallers })
  const proofs = makeMemoryStore({ maxEntries: maxProofs })
  let current = makeAccess(config, { env, log, proofs })
  let originCheck: OriginCheck | undefined

  const handler = pipeline<CatalogueExchange>(
    {
      route(exchange) {
        exchange.access = current
        return probeRoute(exchange.path) ?? current.authenticator.route(exchange)
      },
      admit: (exchange) => load.admit(exchange),
      guard(exchange) {
        // Every web page may read an anonymous catalogue.
        if (accessOf(exchange).isAnonymous) return
        if (!originCheck) throw new GatehouseError('SHUTTING_DOWN')
        originCheck.check(exchange)
      },
      authenticate: (exchange) => accessOf(exchange).authenticator.stage(exchange),
      async authorize(exchange) {
        if (accessOf(exchange).isAnonymous) return
        const key = identityOf(callerOf(exchange))
        const { ok, retryAfterMs } = await callers.takeTokens([{ key, ...callerBucket }])
        const headers = { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }
        if (!ok) throw new GatehouseError('RATE_LIMITED', { headers })
      },
      dispatch,
      recover(exchange, error) {
        const { isAnonymous, authenticator } = accessOf(exchange)
        if (authenticator.sendChallenge(exchange, error)) return
        const failure = toGatehouseError(error)
        if (failure.status >= 500 && failure.code !== 'OVERLOADED')
          log.warn('catalogue request failed', { err: error })
        sendJson(
          exchange.res,
          failure.status,
          { error: failure.message },
          {
            'Cache-Control': 'no-store',
            ...(isAnonymous && { 'Access-Control-Allow-Origin': '*' }),
            ...failure.headers,
          },
        )
      },
    },
    CatalogueExchange,
  )
  const listener = await listen({
    host,
    port,
    handler,
    log,
    certificate,
  }).catch(async (error: unknown) => {
    await current.authenticator.close()
    throw error
  })
  const secure = certificate !== undefined
  originCheck = makeOriginCheck({ host, port: listener.port, secure, allowedOrigins: [] })
  certificate?.checkFiles()
  log.info('catalogue listening', { url: listener.url, servers: config.servers.length })
  return {
    url: listener.url,
    reload(changed) {
      const { authenticator } = current
      current = makeAccess(changed, { env, log, proofs }, current)
      if (current.authenticator !== authenticator) void authenticator.close()
      log.info('catalogue reloaded', { servers: changed.servers.length })
    },
    async close({ graceMs = defaultGraceMs } = {}) {
      await listener.close({ graceMs })
      await current.authenticator.close()
    },
  }
}

function probeRoute(path: string): Stage<Exchange> | undefined {
  if (path !== '/health' && path !== '/readyz') return undefined
  return ({ res }) => sendJson(res, 200, { status: 'ok' }, { 'Cache-Control': 'no-store' })
}

function accessOf({ access }: CatalogueExchange): CatalogueAccess {
  if (!access) throw new GatehouseError('INTERNAL')
  return access
}

function callerOf({ caller }: Exchange) {
  if (!caller) throw new GatehouseError('UNAUTHENTICATED')
  return caller
}

async function dispatch(exchange: CatalogueExchange): Promise<void> {
  const access = accessOf(exchange)
  const isRead = ['GET', 'HEAD', ...(access.isAnonymous ? ['OPTIONS'] : [])].includes(
    exchange.req.method ?? '',
  )
  const document = isRead ? await documentFor(exchange, access) : undefined
  if (document === undefined) throw new GatehouseError('NOT_FOUND', { detail: 'Server not found' })
  sendDocument(exchange, {
    contentType: 'application/json',
    body: JSON.stringify(document),
    maxAgeSeconds,
    isPublic: access.isAnonymous,
  })
}

/** Returns the response for a path; undefined for an unknown path, name or version. Throws BAD_REQUEST. */
async function documentFor(exchange: CatalogueExchange, access: CatalogueAccess): Promise<unknown> {
  const caller = callerOf(exchange)
  if (exchange.path === listPath) return pageOf(await access.visible(caller), readQuery(exchange.query))
  const [, encodedName, encodedVersion] = versionPath.exec(exchange.path) ?? []
  const name = decoded(encodedName)
  if (name === undefined) return undefined
  const server = await access.find(caller, name)
  if (!server) return undefined
  if (encodedVersion === undefined) return { servers: [entryOf(server)], metadata: { count: 1 } }
  const version = decoded(encodedVersion)
  return version === 'latest' || version === server.version ? entryOf(server) : undefined
}

function decoded(part: string | undefined): string | undefined {
  try {
    return part === undefined ? undefined : decodeURIComponent(part)
  } catch {
    return undefined
  }
}
