/**
 * Reports a finished request: an audit line, a record for the recorder, counters, a span.
 *
 * observer.ts decides when a request is finished.
 * Source: docs/reference/specification/virtual-server.md#audit, config.audit, config.telemetry.
 */
import type { IncomingMessage } from 'node:http'
import { isRefusedAddress } from '../../../schemas/index.ts'
import type { AuditTrail } from '../audit/audit.ts'
import type { ExchangeRecord } from '../audit/exchange-line.ts'
import { type Exchange, addressBehindProxies, peerAddress } from '../../net/index.ts'
import { requestAttributes } from '../telemetry/attributes.ts'
import type { Instruments } from '../telemetry/telemetry.ts'
import type { OpenSpan } from '../telemetry/tracer.ts'
import { carrierOf, codeOf, errorOf, outcomeOf, spanName, statusOf, typeOf } from './outcome.ts'
import { countRequest, makeKnownNames } from './request-metrics.ts'
import type { RpcResponse } from './rpc-answer.ts'
import type { RpcFacts } from './rpc.ts'
import type { HttpSide, RequestScope } from './scope.ts'
import type { MaskText, RecordMask } from '../record-mask.ts'

export interface ExchangeReporterOptions {
  readonly server: string
  readonly audit: AuditTrail
  readonly telemetry: Instruments
  readonly recorder: ExchangeRecorder | undefined
  /** Masks recorded requests. */
  readonly mask: RecordMask | undefined
  /** Returns the transport served at a path, for labels. */
  readonly transport: (path: string) => string
  readonly trustProxyHeaders: boolean
}

/**
 * Keeps records of requests in addition to the audit log. Must not throw, and must not retain the request or its
 * bodies.
 */
export interface ExchangeRecorder {
  /** Number of response bytes that the recorder needs; 0 for none. */
  readonly responseBytes: number
  exchange(record: ExchangeRecord): void
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
  readonly mask: MaskText | undefined
}

export class ExchangeReporter {
  readonly #options: ExchangeReporterOptions
  readonly #names = makeKnownNames()

  constructor(options: ExchangeReporterOptions) {
    this.#options = options
  }

  /** True when the recorder needs the JSON-RPC outcome of responses. */
  get #readsResponses(): boolean {
    const { audit, telemetry, recorder } = this.#options
    return audit.detectApplicationErrors || telemetry.enabled || recorder !== undefined
  }

  /** Reports a finished request. May throw errors from the audit log or the recorder. */
  report(scope: RequestScope, http: HttpSide, exchange: Exchange, error: unknown): void {
    const { audit, telemetry, recorder, server } = this.#options
    const { req, res, watch } = http
    const mask = this.#options.mask?.begin()
    const rpc = scope.rpc && mask ? maskedTarget(scope.rpc, mask) : scope.rpc
    const ended: Ended = {
      scope: rpc === scope.rpc ? scope : { ...scope, rpc },
      mask,
      http,
      exchange,
      error,
      status: statusOf(req, res),
      durationMs: Math.round((performance.now() - exchange.startedAt) * 10) / 10,
      response: this.#readsResponses ? (scope.response ?? watch?.response()) : undefined,
      clientAddress: clientAddress(req, { trustProxyHeaders: this.#options.trustProxyHeaders }),
    }
    if (audit.enabled) {
      // The audit log reports application errors only when configured.
      const record = recordOf(ended, audit.detectApplicationErrors ? ended.response : undefined)
      if (audit.records(record.type)) audit.exchange(record)
    }
    recorder?.exchange(recordOf(ended, ended.response))
    if (!telemetry.enabled) return
    const failure = errorOf(ended.status, ended.response, error)
    countRequest(telemetry.metrics, this.#names, {
      scope,
      server,
      transport: this.#options.transport(exchange.path),
      method: req.method ?? '',
      httpVersion: req.httpVersion,
      status: ended.status,
      seconds: ended.durationMs / 1000,
      failure,
      response: ended.response,
    })
    const span =
      scope.span ?? telemetry.tracer.openServerSpan(spanName(rpc, req), scope.startedAt, carrierOf(req, rpc))
    if (span) this.#endSpan(span, ended, failure)
  }

  #endSpan(span: OpenSpan, ended: Ended, failure: string | undefined): void {
    const { scope, http, exchange, status, durationMs, clientAddress } = ended
    const { server, telemetry } = this.#options
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
        transport: this.#options.transport(exchange.path),
        clientAddress,
        toolArguments: telemetry.spans.toolArguments,
        mask: ended.mask,
      }
      span.set(requestAttributes(facts, telemetry.spans.legacy))
      span.set(telemetry.spans.environment)
      if (scope.attributes) span.set(scope.attributes)
      if (failure !== undefined) span.fail(failure)
      if (scope.continues !== undefined) span.link(scope.continues)
    }
    span.end()
  }
}

function recordOf(ended: Ended, response: RpcResponse | undefined): ExchangeRecord {
  const { scope, http, exchange, error, status, mask } = ended
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
    rpcResponse: mask && response?.kind === 'error' ? maskedError(response, mask) : response,
    denial: scope.denial,
    webhooks: scope.webhooks,
    quotas: scope.quotas,
    guardrails: scope.guardrails,
    task: scope.task,
    mask,
    body: exchange.body,
    response: watch?.body(),
  }
}

/** Omits the client's text, which may be the reason for a guardrail rejection. */
function maskedTarget(rpc: RpcFacts, mask: MaskText): RpcFacts {
  return rpc.target === undefined ? rpc : { ...rpc, target: mask(rpc.target) }
}

/** Masks error messages, which may quote the client. */
function maskedError(response: RpcResponse, mask: MaskText): RpcResponse {
  return response.message === undefined ? response : { ...response, message: mask(response.message) }
}

/**
 * Returns a client's network address: the connection's peer or, when proxies are trusted, the last address that is not
 * private or loopback.
 */
export function clientAddress(
  req: IncomingMessage,
  { trustProxyHeaders }: { readonly trustProxyHeaders: boolean },
): string {
  return trustProxyHeaders ? addressBehindProxies(req, isRefusedAddress) : peerAddress(req)
}
