/**
 * Audits and measures one server's requests: `wrap` starts the observation, the pipeline's `audit` hook (`finished`)
 * ends it, and `operation` encloses the work in between.
 *
 * Each HTTP request gets one audit line and one server span. The work itself records further details (backend, exact
 * outcome, client) in the request's scope. With audit and telemetry off, the handler is returned unchanged.
 * Source: docs/reference/specification/virtual-server.md#audit, config.audit, config.telemetry; ARCHITECTURE.md, "A tool call".
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AuditTrail } from '../audit/audit.ts'
import type { PolicyRecord } from '../audit/policy-line.ts'
import { type Exchange, type Log, silentLog } from '../../net/index.ts'
import type { Instruments } from '../telemetry/telemetry.ts'
import type { SpanAttributes } from '../telemetry/tracer.ts'
import { watchResponse } from './answer-watch.ts'
import { responseOfError, carrierOf, codeOf, opensStream, pathOf, spanName } from './outcome.ts'
import { type ExchangeRecorder, ExchangeReporter } from './reporter.ts'
import { clientName, type MessageView, type ParamsView, readRpc, withTool } from './rpc.ts'
import type { RpcResponse } from './rpc-answer.ts'
import { annotate, currentScope, type HttpSide, type RequestScope, withScope } from './scope.ts'
import type { RecordMask } from '../record-mask.ts'

export interface ObserverOptions {
  /** Name of the server, for labels. */
  readonly server: string
  readonly audit: AuditTrail
  readonly telemetry: Instruments
  /** Receives all records, regardless of the audit settings. */
  readonly recorder?: ExchangeRecorder | undefined
  /** Masks recorded requests. */
  readonly mask?: RecordMask | undefined
  /** True for the paths whose requests are audited and measured. Default: all. */
  readonly observes?: ((path: string) => boolean) | undefined
  readonly transport?: ((path: string) => string) | undefined
  /** True to trust X-Forwarded-For for the client's address. Default: false. */
  readonly trustProxyHeaders?: boolean | undefined
  readonly log?: Log | undefined
}

/** Facts that are known about an operation when its work starts. */
export interface OperationFacts {
  readonly message: MessageView
  readonly params: ParamsView
  /** The client's raw `Implementation` object. */
  readonly clientInfo?: Buffer | undefined
  readonly protocolVersion?: string | undefined
}

type Handler<More extends unknown[]> = (req: IncomingMessage, res: ServerResponse, ...more: More) => unknown

export interface Observer {
  readonly enabled: boolean
  /** Wraps a listener's handler. */
  wrap<More extends unknown[]>(handler: Handler<More>): Handler<More>
  /** Reports the exchange before its stages run. Without this call, a relayed event stream is reported at its end. */
  started(exchange: Exchange): void
  /** The pipeline's `audit` hook. `error` is the thrown value. Never throws. */
  finished(exchange: Exchange, error: unknown, message?: MessageView, params?: ParamsView): void
  /** Lets another process report the request. Returns a function that cancels the delegation. */
  leave(exchange: Exchange): () => void
  /**
   * Runs the operation of a request under the server span. `read` returns the exact outcome, or undefined for an
   * unknown outcome.
   */
  operation<T>(
    facts: OperationFacts,
    work: () => Promise<T>,
    read: (result: T) => RpcResponse | undefined,
  ): Promise<T>
  /** Attributes the call in flight to a tool other than the requested tool, with these arguments. */
  attributeTo(tool: string, toolArguments: Buffer): void
  /** Sets the backend of the request in flight. */
  backend(name: string): void
  /** Records the policy decision about the request in flight. */
  policy(record: PolicyRecord): void
  /** Adds attributes to the span of the request in flight. */
  annotate(attributes: SpanAttributes): void
}

const requestIdText = /^[\w.:-]{1,128}$/

export function makeObserver(options: ObserverOptions): Observer {
  const { audit, telemetry, recorder } = options
  return audit.enabled || telemetry.enabled || recorder ? new ActiveObserver(options) : unobserved
}

class ActiveObserver implements Observer {
  readonly enabled = true
  readonly #server: string
  readonly #telemetry: Instruments
  readonly #responseBytes: number
  readonly #transport: (path: string) => string
  readonly #observes: (path: string) => boolean
  readonly #log: Log
  readonly #reporter: ExchangeReporter

  constructor(options: ObserverOptions) {
    const { server, audit, telemetry, recorder } = options
    const { transport = () => 'streamable-http', observes = () => true, log = silentLog } = options
    this.#server = server
    this.#telemetry = telemetry
    this.#responseBytes = Math.max(audit.responseBytes, recorder?.responseBytes ?? 0)
    this.#transport = transport
    this.#observes = observes
    this.#log = log
    this.#reporter = new ExchangeReporter({
      server,
      audit,
      telemetry,
      recorder,
      mask: options.mask,
      transport,
      trustProxyHeaders: options.trustProxyHeaders === true,
    })
  }

  wrap<More extends unknown[]>(handler: Handler<More>): Handler<More> {
    return (req, res, ...more) => {
      const path = pathOf(req)
      if (!this.#observes(path)) return handler(req, res, ...more)
      const request = this.#begin(req, res, path)
      return withScope({ request, span: undefined }, () => handler(req, res, ...more))
    }
  }

  started(exchange: Exchange): void {
    const http = currentScope()?.request?.http
    if (http?.res === exchange.res) http.exchange = exchange
  }

  leave(exchange: Exchange): () => void {
    const scope = currentScope()?.request
    const http = scope?.http
    if (!scope || http?.res !== exchange.res) return () => {}
    scope.http = undefined
    return () => {
      scope.http = http
    }
  }

  finished(exchange: Exchange, error: unknown, message?: MessageView, params?: ParamsView): void {
    const scope = currentScope()?.request
    if (!scope || scope.http?.res !== exchange.res) return
    try {
      if (message) scope.rpc ??= readRpc(message, params)
      if (scope.rpc && scope.attributedTo) scope.rpc = withTool(scope.rpc, scope.attributedTo)
      scope.client ??= scope.rpc?.client
    } catch (failure) {
      this.#log.error('the message in a request could not be read', { err: failure })
    }
    const finish = (): void => this.#end(scope, exchange, error)
    // At this point, the request has only been accepted. Another request's stream sends the response when the operation
    // ends.
    if (scope.pending > 0 && exchange.res.statusCode === 202) scope.deferred = finish
    else finish()
  }

  async operation<T>(
    facts: OperationFacts,
    work: () => Promise<T>,
    read: (result: T) => RpcResponse | undefined,
  ): Promise<T> {
    const scope = currentScope()?.request
    // Calls from within an operation belong to the operation.
    if (!scope?.http || scope.pending > 0) return work()
    const rpc = readRpc(facts.message, facts.params)
    const { req } = scope.http
    scope.rpc ??= { ...rpc, protocolVersion: rpc.protocolVersion ?? facts.protocolVersion }
    scope.client ??= rpc.client ?? clientName(facts.clientInfo)
    scope.span ??= this.#telemetry.tracer.openServerSpan(
      spanName(rpc, req),
      scope.startedAt,
      carrierOf(req, rpc),
    )
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
  }

  attributeTo(tool: string, toolArguments: Buffer): void {
    const scope = currentScope()?.request
    if (!scope?.http || !scope.rpc) return
    scope.attributedTo = { name: tool, arguments: toolArguments }
    scope.rpc = withTool(scope.rpc, scope.attributedTo)
    scope.span?.rename(spanName(scope.rpc, scope.http.req))
  }

  backend(name: string): void {
    const scope = currentScope()?.request
    if (scope) scope.backend ??= name
  }

  policy(record: PolicyRecord): void {
    const scope = currentScope()?.request
    // If a request has several decisions, the line contains the decision about the named tool.
    if (scope && (scope.policy === undefined || scope.attributedTo?.name === record.id)) scope.policy = record
  }

  annotate(attributes: SpanAttributes): void {
    annotate(attributes)
  }

  #begin(req: IncomingMessage, res: ServerResponse, path: string): RequestScope {
    const stream = req.method === 'GET'
    const http: HttpSide = { req, res, watch: undefined, exchange: undefined }
    const scope = newScope(req, http)
    // Reports a stream when it opens, because its end may be hours away.
    const onOpen = (): void => {
      if (http.exchange && opensStream(req, res)) this.#end(scope, http.exchange, undefined)
    }
    http.watch = watchResponse(res, this.#responseBytes, stream ? onOpen : undefined)
    const { metrics, enabled } = this.#telemetry
    if (!enabled) return scope
    const connection = {
      server: this.#server,
      transport: this.#transport(path),
      connection_type: stream ? 'stream' : 'request',
    }
    metrics.mcpActiveConnections(1, connection)
    res.once('close', () => metrics.mcpActiveConnections(-1, connection))
    return scope
  }

  /** Reports a request once. Errors here must not affect the request. */
  #end(scope: RequestScope, exchange: Exchange, error: unknown): void {
    const { http } = scope
    if (!http) return
    scope.http = undefined
    try {
      this.#reporter.report(scope, http, exchange, error)
    } catch (failure) {
      this.#log.error('a request could not be reported', { err: failure })
    }
  }
}

function newScope(req: IncomingMessage, http: HttpSide): RequestScope {
  return {
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
    quotas: undefined,
    guardrails: undefined,
    task: undefined,
    attributes: undefined,
    pending: 0,
    deferred: undefined,
  }
}

const unobserved: Observer = {
  enabled: false,
  wrap: (handler) => handler,
  started() {},
  leave: () => () => {},
  finished() {},
  operation: (_facts, work) => work(),
  attributeTo() {},
  backend() {},
  policy() {},
  annotate() {},
}

function requestIdOf(req: IncomingMessage): string {
  const id = req.headers['x-request-id']
  return typeof id === 'string' && requestIdText.test(id) ? id : randomUUID()
}
