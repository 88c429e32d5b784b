/**
 * Audits and measures the requests of one server, wherever they end: `wrap` begins, the pipeline's `audit` hook
 * (`finished`) ends, and `operation` stands around the work between.
 *
 * One audit line and one server span for each HTTP request. What only the work knows (backend, exact outcome, client)
 * it leaves on the scope of the request. With audit and telemetry off, the handler is returned as it is.
 * Source: docs/specification/virtual-server.md#audit, config.audit, config.telemetry; ARCHITECTURE.md, "A tool call".
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AuditTrail } from '../audit/audit.ts'
import type { PolicyRecord } from '../audit/policy-line.ts'
import { clientAddress } from '../audit/client-address.ts'
import type { ExchangeRecord } from '../audit/exchange-line.ts'
import { type Exchange, type Log, silentLog } from '../../net/index.ts'
import { requestAttributes } from '../telemetry/attributes.ts'
import type { Instruments } from '../telemetry/telemetry.ts'
import type { SpanAttributes, OpenSpan } from '../telemetry/tracer.ts'
import { watchResponse } from './answer-watch.ts'
import {
  responseOfError,
  carrierOf,
  codeOf,
  errorOf,
  opensStream,
  outcomeOf,
  pathOf,
  spanName,
  statusOf,
  typeOf,
} from './outcome.ts'
import { countRequest, makeKnownNames } from './request-metrics.ts'
import { clientName, type MessageView, type ParamsView, readRpc, withTool } from './rpc.ts'
import type { RpcResponse } from './rpc-answer.ts'
import { annotate, currentScope, type HttpSide, type RequestScope, withScope } from './scope.ts'

export interface ObserverOptions {
  /** Name of the server, for labels. */
  readonly server: string
  readonly audit: AuditTrail
  readonly telemetry: Instruments
  /** Takes every record, whatever the audit log selects. */
  readonly recorder?: ExchangeRecorder | undefined
  /** True for the paths whose requests are audited and measured. Default: all. */
  readonly observes?: ((path: string) => boolean) | undefined
  readonly transport?: ((path: string) => string) | undefined
  /** Believes X-Forwarded-For for the client's address. Default false. */
  readonly trustProxyHeaders?: boolean | undefined
  readonly log?: Log | undefined
}

/** Whoever keeps records of requests beside the audit log. Must not throw, and must let go of request and bodies. */
export interface ExchangeRecorder {
  /** How many bytes of a response it wants; 0: none. */
  readonly responseBytes: number
  exchange(record: ExchangeRecord): void
}

/** An operation as the work begins. */
export interface OperationFacts {
  readonly message: MessageView
  readonly params: ParamsView
  /** The client's raw `Implementation` object. */
  readonly clientInfo?: Buffer | undefined
  readonly protocolVersion?: string | undefined
}

export interface Observer {
  readonly enabled: boolean
  /** Puts a listener's handler under observation. */
  wrap<More extends unknown[]>(
    handler: (req: IncomingMessage, res: ServerResponse, ...more: More) => void,
  ): (req: IncomingMessage, res: ServerResponse, ...more: More) => void
  /** Tells of the exchange before its stages run; without it, a relayed event stream is reported at its end. */
  started<X extends Exchange>(exchange: X): X
  /** The pipeline's `audit` hook. `error` is what was thrown, if anything. Never throws. */
  finished(exchange: Exchange, error: unknown, message?: MessageView, params?: ParamsView): void
  /** Runs the operation of a request under the server span; `read` says how it ended where that is known exactly. */
  operation<T>(
    facts: OperationFacts,
    work: () => Promise<T>,
    read: (result: T) => RpcResponse | undefined,
  ): Promise<T>
  /** The call in flight is one of another tool than it names: that one is reported, with these arguments. */
  attributeTo(tool: string, toolArguments: Buffer): void
  /** Names the backend that the request in flight was taken to. */
  backend(name: string): void
  /** What the policies decided about the request in flight. */
  policy(record: PolicyRecord): void
  /** Adds attributes to the span of the request in flight. */
  annotate(attributes: SpanAttributes): void
}

const requestIdText = /^[\w.:-]{1,128}$/

export function makeObserver(options: ObserverOptions): Observer {
  const { audit, telemetry, server, recorder } = options
  const { metrics, tracer } = telemetry
  const transport = options.transport ?? (() => 'streamable-http')
  const observes = options.observes ?? (() => true)
  const names = makeKnownNames()
  const log = options.log ?? silentLog
  const detects = audit.detectApplicationErrors || telemetry.enabled || recorder !== undefined
  const responseBytes = Math.max(audit.responseBytes, recorder?.responseBytes ?? 0)
  if (!audit.enabled && !telemetry.enabled && !recorder) return unobserved

  function begin(req: IncomingMessage, res: ServerResponse, path: string): RequestScope {
    const stream = req.method === 'GET'
    const http: HttpSide = { req, res, watch: undefined, exchange: undefined }
    const scope: RequestScope = {
      startedAt: performance.timeOrigin + performance.now(),
      requestId: requestIdOf(req),
      http,
      rpc: undefined,
      attributedTo: undefined,
      client: undefined,
      backend: undefined,
      policy: undefined,
      response: undefined,
      errorCode: undefined,
      span: undefined,
      continues: undefined,
      denial: undefined,
      webhooks: undefined,
      attributes: undefined,
      pending: 0,
      deferred: undefined,
    }
    // A stream is reported when it opens; its end may be hours away.
    const onOpen = (): void => {
      if (http.exchange && opensStream(req, res)) end(scope, http.exchange, undefined)
    }
    http.watch = watchResponse(res, responseBytes, stream ? onOpen : undefined)
    const connection = {
      server,
      transport: transport(path),
      connection_type: stream ? 'stream' : 'request',
    }
    metrics.mcpActiveConnections(1, connection)
    res.once('close', () => metrics.mcpActiveConnections(-1, connection))
    return scope
  }

  /** Reports a request, once. What goes wrong here must not reach the request. */
  function end(scope: RequestScope, exchange: Exchange, error: unknown): void {
    const { http } = scope
    if (!http) return
    scope.http = undefined
    try {
      report(scope, http, exchange, error)
    } catch (failure) {
      log.error('a request could not be reported', { err: failure })
    }
  }

  function report(scope: RequestScope, http: HttpSide, exchange: Exchange, error: unknown): void {
    const { rpc } = scope
    const { req, res, watch } = http
    const ended: Ended = {
      scope,
      http,
      exchange,
      error,
      status: statusOf(req, res),
      durationMs: Math.round((performance.now() - exchange.startedAt) * 10) / 10,
      response: detects ? (scope.response ?? watch?.response()) : undefined,
      clientAddress: clientAddress(req, { trustProxyHeaders: options.trustProxyHeaders === true }),
    }
    if (audit.enabled) {
      // The audit log tells of errors of applications when it is configured to.
      const record = recordOf(ended, audit.detectApplicationErrors ? ended.response : undefined)
      if (audit.records(record.type)) audit.exchange(record)
    }
    recorder?.exchange(recordOf(ended, ended.response))
    if (!telemetry.enabled) return
    const failure = errorOf(ended.status, ended.response, error)
    countRequest(metrics, names, {
      scope,
      server,
      transport: transport(exchange.path),
      method: req.method ?? '',
      httpVersion: req.httpVersion,
      status: ended.status,
      seconds: ended.durationMs / 1000,
      failure,
      response: ended.response,
    })
    const span = scope.span ?? tracer.openServerSpan(spanName(rpc, req), scope.startedAt, carrierOf(req, rpc))
    if (span) endSpan(span, ended, failure)
  }

  function recordOf(ended: Ended, response: RpcResponse | undefined): ExchangeRecord {
    const { scope, http, exchange, error, status } = ended
    const { req, res, watch } = http
    const type = typeOf(scope.rpc, req, res)
    return {
      type,
      outcome: outcomeOf(status, response, error),
      status,
      errorCode: scope.errorCode ?? codeOf(error),
      req,
      path: exchange.path,
      clientAddress: ended.clientAddress,
      requestId: scope.requestId,
      caller: exchange.caller,
      client: scope.client,
      rpc: scope.rpc,
      backend: scope.backend,
      policy: scope.policy,
      durationMs: ended.durationMs,
      responseBytes: type === 'sse_connection' ? undefined : watch?.bytes,
      rpcResponse: response,
      denial: scope.denial,
      webhooks: scope.webhooks,
      body: exchange.body,
      response: watch?.body(),
    }
  }

  function endSpan(span: OpenSpan, ended: Ended, failure: string | undefined): void {
    const { scope, http, exchange, status, durationMs, clientAddress } = ended
    if (span.recording) {
      const facts = {
        scope,
        req: http.req,
        path: exchange.path,
        query: exchange.query,
        status,
        durationMs,
        requestBytes: exchange.body.length,
        responseBytes: http.watch?.bytes,
        server,
        transport: transport(exchange.path),
        clientAddress,
        toolArguments: telemetry.spans.toolArguments,
      }
      span.set(requestAttributes(facts, telemetry.spans.legacy))
      span.set(telemetry.spans.environment)
      if (scope.attributes) span.set(scope.attributes)
      if (failure !== undefined) span.fail(failure)
      if (scope.continues !== undefined) span.link(scope.continues)
    }
    span.end()
  }

  return {
    enabled: true,
    wrap(handler) {
      return (req, res, ...more) => {
        const path = pathOf(req)
        if (!observes(path)) {
          handler(req, res, ...more)
          return
        }
        const request = begin(req, res, path)
        withScope({ request, span: undefined }, () => handler(req, res, ...more))
      }
    },
    started(exchange) {
      const http = currentScope()?.request?.http
      if (http?.res === exchange.res) http.exchange = exchange
      return exchange
    },
    finished(exchange, error, message, params) {
      const scope = currentScope()?.request
      if (!scope || scope.http?.res !== exchange.res) return
      if (message) scope.rpc = { ...readRpc(message, params), ...agreedVersion(scope) }
      if (scope.rpc && scope.attributedTo) scope.rpc = withTool(scope.rpc, scope.attributedTo)
      scope.client ??= scope.rpc?.client
      const finish = (): void => end(scope, exchange, error)
      // Accepted only: the response travels over another request's stream, when the operation has ended.
      if (scope.pending > 0 && exchange.res.statusCode === 202) scope.deferred = finish
      else finish()
    },
    async operation(facts, work, read) {
      const scope = currentScope()?.request
      // Calls from within an operation belong to it.
      if (!scope?.http || scope.pending > 0) return work()
      const rpc = readRpc(facts.message, facts.params)
      const { req } = scope.http
      scope.rpc ??= { ...rpc, protocolVersion: rpc.protocolVersion ?? facts.protocolVersion }
      scope.client ??= rpc.client ?? clientName(facts.clientInfo)
      scope.span ??= tracer.openServerSpan(spanName(rpc, req), scope.startedAt, carrierOf(req, rpc))
      scope.pending++
      try {
        const result = await withScope({ request: scope, span: scope.span }, work)
        scope.response ??= read(result)
        return result
      } catch (error) {
        scope.response ??= responseOfError(error)
        scope.errorCode ??= codeOf(error)
        throw error
      } finally {
        scope.pending--
        if (scope.pending === 0) scope.deferred?.()
      }
    },
    attributeTo(tool, toolArguments) {
      const scope = currentScope()?.request
      if (!scope?.http || !scope.rpc) return
      scope.attributedTo = { name: tool, arguments: toolArguments }
      scope.rpc = withTool(scope.rpc, scope.attributedTo)
      scope.span?.rename(spanName(scope.rpc, scope.http.req))
    },
    backend(name) {
      const scope = currentScope()?.request
      if (scope) scope.backend ??= name
    },
    policy(record) {
      const scope = currentScope()?.request
      // Of several decisions within one request the line has the one about the tool that it names.
      if (scope && (scope.policy === undefined || scope.attributedTo?.name === record.id))
        scope.policy = record
    },
    annotate,
  }
}

/** One finished request. */
interface Ended {
  readonly scope: RequestScope
  readonly http: HttpSide
  readonly exchange: Exchange
  readonly error: unknown
  readonly status: number
  readonly durationMs: number
  readonly response: RpcResponse | undefined
  readonly clientAddress: string
}

const unobserved: Observer = {
  enabled: false,
  wrap: (handler) => handler,
  started: (exchange) => exchange,
  finished() {},
  operation: (_facts, work) => work(),
  attributeTo() {},
  backend() {},
  policy() {},
  annotate() {},
}

/** The version that session and client have agreed on, when the work knew it. */
function agreedVersion({ rpc }: RequestScope): { protocolVersion?: string } {
  return rpc?.protocolVersion === undefined ? {} : { protocolVersion: rpc.protocolVersion }
}

function requestIdOf(req: IncomingMessage): string {
  const id = req.headers['x-request-id']
  return typeof id === 'string' && requestIdText.test(id) ? id : randomUUID()
}
