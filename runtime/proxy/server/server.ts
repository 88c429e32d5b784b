/**
 * The transparent proxy as a running server: listener, pipeline, forwarder.
 *
 * All inputs are ready to use (validated target, credential, authentication). Reads no flags, files or environment
 * variables.
 * Source: docs/reference/specification/proxy-command.md.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Authenticator, EmbeddedAuthServer } from '../../incoming/index.ts'
import {
  type ConnectionSource,
  type Dispatcher,
  isLoopbackHost,
  listen,
  type ListenerLimits,
  LoadControl,
  type LoadLimits,
  type Log,
  makeOriginCheck,
  maxBodyBytes,
  type Overload,
  trackOverload,
  pipeline,
  readBody,
  rejectBodyByHeaders,
  repeatedSingleton,
  type LocalTokens,
} from '../../net/index.ts'
import { makeRecover } from './refusals.ts'
import type { TokenSource } from '../../outgoing/index.ts'
import type { TargetCredential } from '../model/credential.ts'
import { ProxyExchange, type Upgrade } from '../model/exchange.ts'
import { makeForwarder } from '../forward/forwarder.ts'
import { checkBody, makeSessionGate, refuseStatelessMethod } from './protocol-check.ts'
import { makeReadiness, type Readiness } from './readiness.ts'
import { makeRequestLog, type RequestObserver } from './request-log.ts'
import { makeHeaderRules } from '../forward/request-headers.ts'
import { makeRoutes } from './routes.ts'
import { makeSessionTable, type SessionTableOptions } from '../session/sessions.ts'
import type { TargetAddress } from '../../config/index.ts'

export interface ProxyAddress {
  readonly port: number
  /** `http://host:port` or `https://host:port`. */
  readonly url: string
}

export interface ProxyOptions {
  readonly target: TargetAddress
  readonly host: string
  /** Port to listen on; 0 lets the kernel choose. */
  readonly port: number
  /** Enables TLS. The caller must close the `ServedCertificate`. */
  readonly certificate?: ServedCertificate | undefined
  readonly dispatcher: Dispatcher
  readonly log: Log
  readonly allowedOrigins?: readonly string[]
  /** Lowercase host names, in addition to loopback, that a loopback listener accepts; may change at any time. */
  readonly allowedHosts?: ReadonlySet<string>
  /**
   * Protects this proxy's endpoint. Created once the port is known; requests get 503 until then. If absent, any client
   * that can reach the port may use it.
   */
  readonly incoming?: ((address: ProxyAddress) => Authenticator | Promise<Authenticator>) | undefined
  readonly credential?: TargetCredential | undefined
  /** The required login: this proxy is not ready until the login has a token. */
  readonly login?: Pick<TokenSource, 'token'> | undefined
  readonly inject?: readonly { readonly name: string; readonly value: string }[]
  /** True to forward the client's `Authorization`. Default: true only if this proxy does not validate the header. */
  readonly passAuthorization?: boolean
  /** Lowercase names of additional client headers to drop. */
  readonly strip?: readonly string[]
  /**
   * True when the target authenticates the clients. The target's metadata documents and login pages are then forwarded.
   * Default false.
   */
  readonly targetRequiresLogin?: boolean | undefined
  /** The embedded authorization server, whose paths take precedence over all others. */
  readonly authServer?: Pick<EmbeddedAuthServer, 'routes' | 'notReady' | 'secretUses'> | undefined
  /**
   * Time limit for the target's response headers, except for event streams. The default is 60 s; 0 disables the limit.
   */
  readonly headersTimeoutMs?: number
  /** True when the target only accepts POST. Default false. */
  readonly stateless?: boolean | undefined
  /** This proxy's path prefix as clients see it, for the `endpoint` event of the deprecated HTTP+SSE transport. */
  readonly endpointPrefix?: string | undefined
  /** True to send the target a header that identifies the caller; requires `incoming`. Default false. */
  readonly identifyCallers?: boolean | undefined
  /** True to read the endpoint prefix from `X-Forwarded-Prefix`. */
  readonly trustForwardedPrefix?: boolean | undefined
  readonly maxBodyBytes?: number
  readonly limits?: Partial<ListenerLimits>
  /** Source of connections that replaces a bound address. */
  readonly connections?: ConnectionSource | undefined
  /** Rejects requests without one of these tokens. Default: no token is required. */
  readonly localTokens?: LocalTokens | undefined
  readonly sessions?: SessionTableOptions
  /** Overrides the overload protection's limits (for tests). */
  readonly load?: Partial<LoadLimits>
  /** Called for every finished request. */
  readonly observe?: RequestObserver
}

export interface RunningProxy {
  readonly url: string
  readonly port: number
  close(options?: { graceMs?: number }): Promise<void>
}

/** Binds and serves. Rejects with the system's error when the address cannot be bound. */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const { log, target, dispatcher, login, authServer } = options
  const readiness = makeReadiness({ target, dispatcher, login, authServer })
  let handle: (req: IncomingMessage, res: ServerResponse, upgrade?: Upgrade) => void = notReady
  const listener = await listen({
    host: options.host,
    port: options.port,
    connections: options.connections,
    certificate: options.certificate,
    clientCertificates: 'request',
    localTokens: options.localTokens,
    handler: (req, res) => handle(req, res),
    onUpgrade: (req, res, socket, head) => handle(req, res, { socket, head }),
    log,
    ...(options.limits ? { limits: options.limits } : {}),
  })
  let incoming: Authenticator | undefined
  try {
    incoming = await options.incoming?.({ port: listener.port, url: listener.url })
    handle = makeHandler(options, listener.port, readiness, incoming)
  } catch (error) {
    await listener.close({ graceMs: 0 })
    throw error
  }
  return {
    url: listener.url,
    port: listener.port,
    async close(end) {
      readiness.end()
      await listener.close(end)
      await incoming?.close()
    },
  }
}

function notReady(_req: IncomingMessage, res: ServerResponse): void {
  res.writeHead(503, { 'Retry-After': '1', 'Content-Length': '0' })
  res.end()
}

function makeHandler(
  options: ProxyOptions,
  port: number,
  readiness: Readiness,
  incoming?: Authenticator,
): (req: IncomingMessage, res: ServerResponse, upgrade?: Upgrade) => void {
  const { target, log, credential } = options
  const allowedOrigins = options.allowedOrigins ?? []
  const guard = makeOriginCheck({
    host: options.host,
    port,
    secure: options.certificate !== undefined,
    allowedOrigins,
    allowedHosts: options.allowedHosts,
    servesPages: options.targetRequiresLogin,
  })
  if (guard.origins === undefined && !isLoopbackHost(options.host)) {
    log.warn('no --allowed-origins on a public address; any web page can call this proxy', {
      host: options.host,
      port,
      hint: 'set --allowed-origins https://app.example.com',
    })
  }
  const maxBytes = options.maxBodyBytes ?? maxBodyBytes
  const load = new LoadControl({
    limits: options.load,
    onRejected: trackOverload((overload) => logOverload(log, overload)),
  })
  const sessions = makeSessionTable(log, {
    ...options.sessions,
    target: `${target.origin}${target.path ?? ''}`,
  })
  const headers = makeHeaderRules({
    target,
    inject: options.inject ?? [],
    credentialNames: credential?.headerNames ?? [],
    passAuthorization: options.passAuthorization ?? incoming === undefined,
    strip: options.strip ?? [],
    identifyCallers: options.identifyCallers ?? false,
  })

  return pipeline<ProxyExchange, [Upgrade?]>(
    {
      route: makeRoutes(incoming?.route, readiness.notReady, options),
      admit: (exchange) => load.admit(exchange),
      limits(exchange) {
        refuseOddRequests(exchange)
        refuseStatelessMethod(exchange, { stateless: options.stateless ?? false })
        rejectBodyByHeaders(exchange, maxBytes)
      },
      guard: guard.check,
      ...(incoming ? { authenticate: incoming.stage } : {}),
      parse(exchange) {
        const pending = readBody(exchange, { maxBytes, memory: load.bodies })
        return pending ? pending.then(() => checkBody(exchange, target)) : undefined
      },
      turn: (exchange) => load.turn(exchange),
      authorize: makeSessionGate(sessions, incoming !== undefined),
      dispatch: makeForwarder({
        target,
        dispatcher: options.dispatcher,
        headers,
        sessions,
        credential,
        headersTimeoutMs: options.headersTimeoutMs ?? 60_000,
        endpointPrefix: options.endpointPrefix ?? '',
        trustForwardedPrefix: options.trustForwardedPrefix ?? false,
        watch: readiness,
        log,
      }),
      audit: makeRequestLog(log, options.observe),
      recover: makeRecover(log, incoming),
    },
    ProxyExchange,
  )
}

function logOverload(log: Log, { isOn, rejected }: Overload): void {
  if (!isOn) log.info('overload ended', { refused: rejected })
  else
    log.warn('overloaded: rejecting requests', {
      hint: 'add CPU, --workers or replicas, or memory when bodies are large',
    })
}

/** Rejects requests that the next server could parse differently, or that would echo the injected credential. */
function refuseOddRequests({ req, path }: ProxyExchange): void {
  if (req.method === 'TRACE') throw new GatehouseError('METHOD_NOT_ALLOWED')
  if (path.charCodeAt(0) !== 0x2f)
    throw new GatehouseError('BAD_REQUEST', { detail: 'the request target must be a path' })
  const repeated = repeatedSingleton(req.rawHeaders)
  if (repeated !== undefined) {
    throw new GatehouseError('BAD_REQUEST', { detail: `the header ${repeated} occurs more than once` })
  }
}
