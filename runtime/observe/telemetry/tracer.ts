/**
 * Spans, behind an interface of our own: server spans for requests of clients, client spans for calls of backends,
 * internal spans for what lies between. The implementation is spans.ts, loaded only when tracing is on.
 *
 * The parent of a span is the one under which the code runs (exchange/scope.ts). Errors appear by their code only;
 * messages and stacks stay out. Off, work is called and nothing else happens.
 */
import type { Span } from '@opentelemetry/api'
import { GatehouseError } from '../../../schemas/index.ts'
import type { TraceCarrier } from './propagation.ts'
import type { InternalSpan } from './span-table.ts'

export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>

/** A span that work can describe itself to. */
export interface SpanHandle {
  /** False: attributes go nowhere, so need not be made. */
  readonly recording: boolean
  set(attributes: SpanAttributes): void
  /** Marks the span as failed. `type` is a code or class of errors, never a message. */
  fail(type: string): void
}

export interface OpenSpan extends SpanHandle {
  readonly span: Span
  rename(name: string): void
  /** How others name it. */
  traceparent(): string | undefined
  /** Ties it to a span of another trace; `traceparent` as on the wire. */
  link(traceparent: string): void
  end(): void
}

export interface Tracer {
  readonly enabled: boolean
  /** Runs work under a new span; a rejection marks it as failed with the code of the error. */
  internal<T>(name: InternalSpan, attributes: SpanAttributes | undefined, work: (span: SpanHandle) => T): T
  /** The same for a call of a backend. */
  client<T>(name: string, work: (span: SpanHandle) => T): T
  /** Opens the span of a request that arrived at `startedAt` (epoch ms); undefined when tracing is off. */
  openServerSpan(name: string, startedAt: number, carrier: TraceCarrier): OpenSpan | undefined
  /** Trace context for what is called from here; empty when there is none. */
  carrier(): Readonly<Record<string, string>>
}

const noAttributes: Readonly<Record<string, string>> = {}
export const noSpan: SpanHandle = { recording: false, set() {}, fail() {} }

export const noTracer: Tracer = {
  enabled: false,
  internal: (_name, _attributes, work) => work(noSpan),
  client: (_name, work) => work(noSpan),
  openServerSpan: () => undefined,
  carrier: () => noAttributes,
}

/** The code of an error that has one, else its class. */
export function errorType(error: unknown): string {
  if (error instanceof GatehouseError) return error.code
  return error instanceof Error ? error.name : 'error'
}
