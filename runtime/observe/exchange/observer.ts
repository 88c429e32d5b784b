/**
 * Audits and measures the requests of one server, wherever they end: `wrap` begins, the pipeline's `audit` hook
 * (`finished`) ends, and `operation` stands around the work between.
 *
 * One audit line and one server span for each HTTP request. What only the work knows (backend, exact outcome, client)
 * it leaves on the scope of the request. With audit and telemetry off, the handler is returned as it is.
 * Source: spec document 3, config.audit, config.telemetry; design, section 3 "Request".
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AuditEventType } from '../../../schemas/index.ts'
import type { Audit, AuditOutcome } from '../audit/audit.ts'
import { clientAddress } from '../audit/client-address.ts'
import { eventTypeOf } from '../audit/events.ts'
import type { Exchange } from '../../net/index.ts'
import { requestAttributes } from '../telemetry/attributes.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { errorType } from '../telemetry/tracer.ts'
import { watchAnswer } from './answer-watch.ts'
import { countRequest, makeKnownNames } from './request-metrics.ts'
import { clientName, knownMethod, type MessageView, type ParamsView, readRpc, type RpcFacts } from './rpc.ts'
import type { RpcAnswer } from './rpc-answer.ts'
import { currentScope, type RequestScope, withScope } from './scope.ts'

export interface ObserverOptions {
  /** Name of the server, for labels. */
  readonly server: string
  readonly audit: Audit
  readonly telemetry: Telemetry
  /** True for the paths whose requests are audited and measured. Default: all. */
  readonly observes?: ((path: string) => boolean) | undefined
  readonly transport?: ((path: string) => string) | undefined
  /** Believes X-Forwarded-For for the client's address. Default false. */
  readonly trustProxyHeaders?: boolean | undefined
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
  /** Runs an operation under the server span; `read` says how it ended where that is known exactly. */
  operation<T>(
    facts: OperationFacts,
    work: () => Promise<T>,
    read: (result: T) => RpcAnswer | undefined,
  ): Promise<T>
  /** Names the backend that the request under way was taken to. */
  backend(name: string): void
}

const REQUEST_ID = /^[\w.:-]{1,128}$/
/** What is counted for a client that left before it was answered. */
const CLIENT_LEFT = 499

export function makeObserver(options: ObserverOptions): Observer {
  const { audit, telemetry, server } = options
  const { metrics, tracer } = telemetry
  const transport = options.transport ?? (() => 'streamable-http')
  const observes = options.observes ?? (() => true)
  const toolNames = makeKnownNames()
  if (!audit.enabled && !telemetry.enabled) return unobserved

  function begin(req: IncomingMessage, res: ServerResponse, path: string): RequestScope {
    const stream = req.method === 'GET'
    const scope: RequestScope = {
      req,
      res,
      startedAt: performance.timeOrigin + performance.now(),
      requestId: requestIdOf(req),
      watch: undefined,
      rpc: undefined,
      client: undefined,
      backend: undefined,
      answer: undefined,
      span: undefined,
      pending: 0,
      deferred: undefined,
      finished: false,
      exchange: undefined,
    }
    // A stream is reported when it opens; its end may be hours away.
    const onOpen = (): void => {
      if (scope.exchange && opensStream(scope)) end(scope, scope.exchange, undefined)
    }
    scope.watch = watchAnswer(res, audit.responseBytes, stream ? onOpen : undefined)
    const connection = {
      server,
      transport: transport(path),
      connection_type: stream ? 'stream' : 'request',
    }
    metrics.mcpActiveConnections(1, connection)
    res.once('close', () => metrics.mcpActiveConnections(-1, connection))
    return scope
  }

  function end(scope: RequestScope, exchange: Exchange, error: unknown): void {
    if (scope.finished) return
    scope.finished = true
    const { res, req, rpc } = scope
    const { path, query } = exchange
    const status = statusOf(req, res)
    const durationMs = Math.round((performance.now() - exchange.startedAt) * 10) / 10
    const answer = answerOf(scope, audit.detectApplicationErrors || !audit.enabled)
    const type = typeOf(scope)
    const address = clientAddress(req, options.trustProxyHeaders === true)
    if (audit.records(type)) {
      audit.exchange({
        type,
        outcome: outcomeOf(status, audit.detectApplicationErrors ? answer : undefined),
        req,
        path,
        clientAddress: address,
        requestId: scope.requestId,
        caller: exchange.caller,
        client: scope.client,
        rpc,
        backend: scope.backend,
        durationMs,
        responseBytes: type === 'sse_connection' ? undefined : scope.watch?.bytes,
        rpcAnswer: audit.detectApplicationErrors ? answer : undefined,
        body: exchange.body,
        answer: scope.watch?.body(),
      })
    }
    if (!telemetry.enabled) return
    const fault = faultOf(status, answer, error)
    countRequest(metrics, toolNames, {
      scope,
      server,
      transport: transport(path),
      method: req.method ?? '',
      status,
      seconds: durationMs / 1000,
      fault,
      answer,
    })
    const span = scope.span ?? tracer.openServerSpan(spanName(rpc, req), scope.startedAt, carrierOf(req, rpc))
    if (!span) return
    if (span.recording) {
      const facts = {
        scope,
        path,
        query,
        status,
        durationMs,
        requestBytes: exchange.body.length,
        server,
        transport: transport(path),
        clientAddress: address,
        toolArguments: telemetry.spans.toolArguments,
      }
      span.set(requestAttributes(facts, telemetry.spans.legacy))
      span.set(telemetry.spans.environment)
      span.set({ 'target.workload_name': scope.backend })
      if (fault !== undefined) span.fail(fault)
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
      const scope = currentScope()?.request
      if (scope?.res === exchange.res) scope.exchange = exchange
      return exchange
    },
    finished(exchange, error, message, params) {
      const scope = currentScope()?.request
      if (!scope || scope.res !== exchange.res) return
      if (message) scope.rpc ??= readRpc(message, params)
      scope.client ??= scope.rpc?.client
      const finish = (): void => end(scope, exchange, error)
      // Accepted only: the answer travels over another request's stream, when the operation has ended.
      if (scope.pending > 0 && scope.res.statusCode === 202) scope.deferred = finish
      else finish()
    },
    async operation(facts, work, read) {
      const scope = currentScope()?.request
      if (!scope || scope.finished) return work()
      const rpc = readRpc(facts.message, facts.params)
      scope.rpc ??= { ...rpc, protocolVersion: rpc.protocolVersion ?? facts.protocolVersion }
      scope.client ??= rpc.client ?? clientName(facts.clientInfo)
      scope.span ??= tracer.openServerSpan(
        spanName(rpc, scope.req),
        scope.startedAt,
        carrierOf(scope.req, rpc),
      )
      scope.pending++
      try {
        const result = await withScope({ request: scope, span: scope.span }, work)
        scope.answer ??= read(result)
        return result
      } finally {
        scope.pending--
        if (scope.pending === 0) scope.deferred?.()
      }
    },
    backend(name) {
      const scope = currentScope()?.request
      if (scope) scope.backend ??= name
    },
  }
}

const unobserved: Observer = {
  enabled: false,
  wrap: (handler) => handler,
  started: (exchange) => exchange,
  finished() {},
  operation: (_facts, work) => work(),
  backend() {},
}

function pathOf({ url = '/' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

function requestIdOf(req: IncomingMessage): string {
  const id = req.headers['x-request-id']
  return typeof id === 'string' && REQUEST_ID.test(id) ? id : randomUUID()
}

function spanName(rpc: RpcFacts | undefined, req: IncomingMessage): string {
  if (rpc === undefined || rpc.method === '') return `${req.method ?? ''} ${pathOf(req)}`
  const method = knownMethod(rpc.method)
  return rpc.target === undefined || rpc.targetType === 'resource' ? method : `${method} ${rpc.target}`
}

/** Headers win over `params._meta`. */
function carrierOf({ headers }: IncomingMessage, rpc: RpcFacts | undefined) {
  const { traceparent, tracestate } = headers
  if (typeof traceparent === 'string')
    return { traceparent, tracestate: Array.isArray(tracestate) ? tracestate.join(',') : tracestate }
  return { traceparent: rpc?.traceparent, tracestate: rpc?.tracestate }
}

function typeOf(scope: RequestScope): AuditEventType {
  if (scope.rpc) return eventTypeOf(scope.rpc.method)
  return opensStream(scope) ? 'sse_connection' : 'http_request'
}

function opensStream({ req, res }: RequestScope): boolean {
  return (
    req.method === 'GET' &&
    res.statusCode === 200 &&
    req.headers.accept?.includes('text/event-stream') === true
  )
}

/** A connection that was taken over has no response of its own. */
function statusOf(req: IncomingMessage, res: ServerResponse): number {
  if (res.headersSent) return res.statusCode
  return req.headers.upgrade === undefined ? CLIENT_LEFT : 101
}

function answerOf(scope: RequestScope, detect: boolean): RpcAnswer | undefined {
  if (!detect) return undefined
  return scope.answer ?? scope.watch?.answer()
}

function outcomeOf(status: number, answer: RpcAnswer | undefined): AuditOutcome {
  if (status === 401 || status === 403) return 'denied'
  if (status >= 500) return 'error'
  if (status >= 400) return 'failure'
  if (answer?.kind === 'error')
    return answer.code === 401 || answer.code === 403 ? 'denied' : 'application_error'
  return answer?.toolError ? 'application_error' : 'success'
}

/** The kind of fault, for `error.type`; undefined when there was none that is ours or the backend's. */
function faultOf(status: number, answer: RpcAnswer | undefined, error: unknown): string | undefined {
  if (error !== undefined && status >= 500) return errorType(error)
  if (status >= 500) return String(status)
  if (answer?.kind === 'error') return String(answer.code ?? 'error')
  if (answer?.toolError) return 'tool_error'
  return undefined
}
