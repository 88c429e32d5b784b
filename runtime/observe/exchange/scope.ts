/**
 * What is known about the request in flight, wherever in its handling the code runs: carried by the asynchronous
 * context, so that no module has to pass it on.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorCode } from '../../../schemas/index.ts'
import type { Exchange } from '../../net/index.ts'
import type { PolicyRecord } from '../audit/policy-line.ts'
import type { OpenSpan } from '../telemetry/tracer.ts'
import type { ResponseWatch } from './answer-watch.ts'
import type { GuardrailRecord, QuotaRecord, WebhookRecord } from '../audit/exchange-line.ts'
import type { ClientName, AttributedTool, RpcFacts } from './rpc.ts'
import type { RpcResponse } from './rpc-answer.ts'

/** One HTTP request of a client. Filled in on the way. */
export interface RequestScope {
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** The client's own request id when it sent a usable one, else a new one. */
  readonly requestId: string
  /** Let go when the request was reported: connections that it opened may keep this scope for long. */
  http: HttpSide | undefined
  rpc: RpcFacts | undefined
  /** The tool that a call turned out to be about, when that is not the one it names. */
  attributedTo: AttributedTool | undefined
  client: ClientName | undefined
  /** Backend that the request was taken to. */
  backend: string | undefined
  /** What the policies decided about the request. */
  policy: PolicyRecord | undefined
  /** How the operation ended; what is known here wins over what the response looks like. */
  response: RpcResponse | undefined
  /** The error that the operation was rejected with. */
  errorCode: ErrorCode | undefined
  span: OpenSpan | undefined
  /** The request that this one goes on with, as a `traceparent`. */
  continues: string | undefined
  /** Why the work refused the request, as a code. */
  denial: string | undefined
  /** What webhooks said, in order; the first ones when there are many. */
  webhooks: WebhookRecord[] | undefined
  /** Quotas that the request, or a call within it, was over; the first ones when there are many. */
  quotas: QuotaRecord[] | undefined
  /** What guardrails found; the first ones when there are many. */
  guardrails: GuardrailRecord[] | undefined
  /** Attributes from whatever the request went through, for its span. */
  attributes: Readonly<Record<string, string | number | boolean | undefined>> | undefined
  /** Operations that go on. */
  pending: number
  /** Waits for the last of them: the response travels over another request's stream. */
  deferred: (() => void) | undefined
}

export interface HttpSide {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  watch: ResponseWatch | undefined
  /** The pipeline's exchange, when the observer knows it. */
  exchange: Exchange | undefined
}

/** What is noted of a call that comes from no client, for its own audit line. */
export type CallNotes = Pick<RequestScope, 'webhooks' | 'quotas' | 'guardrails'>

export interface ExchangeScope {
  readonly request: RequestScope | undefined
  readonly span: OpenSpan | undefined
  /** Takes the notes in place of the request. */
  readonly notes?: CallNotes | undefined
}

const scopes = new AsyncLocalStorage<ExchangeScope>()

export function currentScope(): ExchangeScope | undefined {
  return scopes.getStore()
}

/** Adds attributes to the span of the request in flight, whether it is open yet or not. */
export function annotate(attributes: NonNullable<RequestScope['attributes']>): void {
  const request = scopes.getStore()?.request
  if (request?.http) request.attributes = { ...request.attributes, ...attributes }
}

/** Denial by a rate limit, where the response is a result. */
export const limitedDenial = 'rate_limited'

/** Denial by a quota, where the response is a result. */
export const quotaDenial = 'quota_exceeded'

/** Names the request in flight to a later one that goes on with it, as a `traceparent`; the first of a row of them. */
export function requestTrace(): string | undefined {
  const request = scopes.getStore()?.request
  if (request?.continues !== undefined) return request.continues
  return request?.span?.traceparent()
}

/** The request in flight goes on with another one. */
export function continueTrace(traceparent: string): void {
  const request = scopes.getStore()?.request
  if (request?.http) request.continues = traceparent
}

/** Says why the request in flight is refused, for its audit line: a code, never a text of others. */
export function annotateDenial(reason: string): void {
  const request = scopes.getStore()?.request
  if (request?.http) request.denial ??= reason
}

/** Runs a call that comes from no client; what is noted on its way is put into `notes`. */
export function withNotes<T>(notes: CallNotes, work: () => T): T {
  const { request, span } = scopes.getStore() ?? {}
  return withScope({ request, span, notes }, work)
}

/** Where notes go; undefined: nobody takes them. */
function notesInForce(): CallNotes | undefined {
  const { notes, request } = scopes.getStore() ?? {}
  return notes ?? (request?.http && request)
}

const maxWebhooks = 32

/** Records what a webhook said about the request in flight. */
export function annotateWebhook(record: WebhookRecord): void {
  const notes = notesInForce()
  if (!notes) return
  notes.webhooks ??= []
  if (notes.webhooks.length < maxWebhooks) notes.webhooks.push(record)
}

const maxQuotas = 32

/** Records a quota that the request in flight is over, each once. */
export function annotateQuota(record: QuotaRecord): void {
  const notes = notesInForce()
  if (!notes) return
  notes.quotas ??= []
  const { quotas } = notes
  const isKnown = quotas.some(({ name, enforced }) => name === record.name && enforced === record.enforced)
  if (!isKnown && quotas.length < maxQuotas) quotas.push(record)
}

const maxGuardrails = 64

/** Records what a guardrail found in the request in flight; what it finds again is added. */
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
