/** State of the request in flight. The asynchronous context contains the state, so modules do not pass it around. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorCode } from '../../../schemas/index.ts'
import type { Exchange } from '../../net/index.ts'
import type { PolicyRecord } from '../audit/policy-line.ts'
import type { OpenSpan } from '../telemetry/tracer.ts'
import type { ResponseWatch } from './answer-watch.ts'
import type { GuardrailRecord, QuotaRecord, TaskRecord, WebhookRecord } from '../audit/exchange-line.ts'
import type { ClientName, AttributedTool, RpcFacts } from './rpc.ts'
import type { RpcResponse } from './rpc-answer.ts'

/** One HTTP request from a client. Modules fill in the fields while they process the request. */
export interface RequestScope {
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** The client's request id if it is usable; otherwise, a new id. */
  readonly requestId: string
  /** Released after the report, because connections opened by the request may keep this scope alive for a long time. */
  http: HttpSide | undefined
  rpc: RpcFacts | undefined
  /** The actual tool of a call, when it differs from the named tool. */
  attributedTo: AttributedTool | undefined
  client: ClientName | undefined
  /** Backend that handled the request. */
  backend: string | undefined
  /** Policy decision about the request. */
  policy: PolicyRecord | undefined
  /** Outcome of the operation, which takes precedence over the outcome derived from the response. */
  response: RpcResponse | undefined
  /** Error code of a rejected operation. */
  errorCode: ErrorCode | undefined
  span: OpenSpan | undefined
  /** `traceparent` of the earlier request that this request continues. */
  continues: string | undefined
  /** Code that identifies the reason for a denial. */
  denial: string | undefined
  /** Webhook responses, in order, up to a limit. */
  webhooks: WebhookRecord[] | undefined
  /** Quotas that the request or a nested call exceeded, up to a limit. */
  quotas: QuotaRecord[] | undefined
  /** Guardrail findings, up to a limit. */
  guardrails: GuardrailRecord[] | undefined
  /** Event of a task's life that the request causes. */
  task: TaskRecord | undefined
  /** Attributes for the request's span. */
  attributes: Readonly<Record<string, string | number | boolean | undefined>> | undefined
  /** Number of operations in progress. */
  pending: number
  /** Runs after the last operation: the response is sent over another request's stream. */
  deferred: (() => void) | undefined
}

export interface HttpSide {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  watch: ResponseWatch | undefined
  /** The pipeline's exchange; undefined if the observer did not receive an exchange. */
  exchange: Exchange | undefined
}

/** Notes on a call that has no client request. They are written to a separate audit line. */
export type CallNotes = Pick<RequestScope, 'webhooks' | 'quotas' | 'guardrails'>

export interface ExchangeScope {
  readonly request: RequestScope | undefined
  readonly span: OpenSpan | undefined
  /** Receives the notes instead of the request. */
  readonly notes?: CallNotes | undefined
}

const scopes = new AsyncLocalStorage<ExchangeScope>()

export function currentScope(): ExchangeScope | undefined {
  return scopes.getStore()
}

/** Adds attributes to the span of the request in flight, even before the span is opened. */
export function annotate(attributes: NonNullable<RequestScope['attributes']>): void {
  const request = scopes.getStore()?.request
  if (request?.http) request.attributes = { ...request.attributes, ...attributes }
}

/** Denial code for a rate-limited call, when the response is a tool result. */
export const limitedDenial = 'rate_limited'

/** Denial code for a call that exceeded a quota, when the response is a tool result. */
export const quotaDenial = 'quota_exceeded'

/**
 * Returns a `traceparent` with which a later request can continue the request in flight. In a chain, returns the first
 * request's `traceparent`.
 */
export function requestTrace(): string | undefined {
  const request = scopes.getStore()?.request
  if (request?.continues !== undefined) return request.continues
  return request?.span?.traceparent()
}

/** Marks the request in flight as the continuation of another request. */
export function continueTrace(traceparent: string): void {
  const request = scopes.getStore()?.request
  if (request?.http) request.continues = traceparent
}

/** Records the reason for rejecting the request in flight: a code, never untrusted text. */
export function annotateDenial(reason: string): void {
  const request = scopes.getStore()?.request
  if (request?.http) request.denial ??= reason
}

/** Records an event of a task for the request in flight. */
export function annotateTask(record: TaskRecord): void {
  const request = scopes.getStore()?.request
  if (request?.http) request.task ??= record
}

/** Runs a call that has no client request; notes about it go to `notes`. */
export function withNotes<T>(notes: CallNotes, work: () => T): T {
  const { request, span } = scopes.getStore() ?? {}
  return withScope({ request, span, notes }, work)
}

/** Returns the object that receives notes, or undefined when notes are discarded. */
function notesInForce(): CallNotes | undefined {
  const { notes, request } = scopes.getStore() ?? {}
  return notes ?? (request?.http && request)
}

const maxWebhooks = 32

/** Records a webhook response for the request in flight. */
export function annotateWebhook(record: WebhookRecord): void {
  const notes = notesInForce()
  if (!notes) return
  notes.webhooks ??= []
  if (notes.webhooks.length < maxWebhooks) notes.webhooks.push(record)
}

const maxQuotas = 32

/** Records a quota that the request in flight exceeds, once. */
export function annotateQuota(record: QuotaRecord): void {
  const notes = notesInForce()
  if (!notes) return
  notes.quotas ??= []
  const { quotas } = notes
  const isKnown = quotas.some(({ name, enforced }) => name === record.name && enforced === record.enforced)
  if (!isKnown && quotas.length < maxQuotas) quotas.push(record)
}

const maxGuardrails = 64

/** Records a guardrail finding for the request in flight; repeated findings increase the finding's count. */
export function annotateGuardrail(record: GuardrailRecord): void {
  const notes = notesInForce()
  if (!notes) return
  notes.guardrails ??= []
  const { guardrails } = notes
  const known = guardrails.findIndex(
    (one) => one.rule === record.rule && one.direction === record.direction && one.outcome === record.outcome,
  )
  const before = guardrails[known]
  if (before) guardrails[known] = { ...before, count: before.count + record.count }
  else if (guardrails.length < maxGuardrails) guardrails.push(record)
}

export function withScope<T>(scope: ExchangeScope, work: () => T): T {
  return scopes.run(scope, work)
}

/**
 * Returns a function that runs work in the scope of the request in flight, for events that arrive in another context.
 * Cheaper than a snapshot of the whole asynchronous context, which costs 2% of a tool call.
 */
export function keepScope(): <T>(work: () => T) => T {
  const scope = scopes.getStore()
  return (work) => scopes.run(scope as ExchangeScope, work)
}
