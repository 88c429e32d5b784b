/**
 * The tracer interface: server spans for client requests, client spans for backend calls, and internal spans for the
 * work in between. spans.ts implements the interface and is loaded only when tracing is on.
 *
 * The parent of a span comes from the asynchronous context (exchange/scope.ts). Spans contain error codes, but no
 * messages or stacks. When tracing is off, the work runs without a span.
 */
import type { Span } from '@opentelemetry/api'
import { GatehouseError } from '../../../schemas/index.ts'
import type { TraceCarrier } from './propagation.ts'

/**
 * Names of the internal spans between a client's request and calls to backends. Server spans and client spans are named
 * `<mcp method> <target>`. docs/guides/observability.md repeats this table; a test compares the two.
 */
export const spanTable = {
  'aggregator.AggregateCapabilities': "a client's catalog is assembled because it is not cached",
  'aggregator.QueryAllCapabilities': 'the lists of all backends are requested concurrently',
  'aggregator.QueryCapabilities': "one backend's lists are requested",
  'aggregator.MergeCapabilities': 'the lists are merged and name conflicts are resolved',
  'core.ExecuteWorkflow': 'a workflow runs',
  'optimizer.FindTool': 'tools are searched',
  'optimizer.CallTool': 'a tool is called through call_tool',
} as const satisfies Record<string, string>

export type InternalSpan = keyof typeof spanTable

export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>

/** A span to which the work can add details. */
export interface SpanHandle {
  /** False when attributes are discarded, so callers can skip computing them. */
  readonly recording: boolean
  set(attributes: SpanAttributes): void
  /** Marks the span as failed. `type` is a code or class of errors, never a message. */
  fail(type: string): void
}

export interface OpenSpan extends SpanHandle {
  readonly span: Span
  rename(name: string): void
  /** Returns the span's `traceparent`. */
  traceparent(): string | undefined
  /** Links the span to a span in another trace. */
  link(traceparent: string): void
  end(): void
}

export interface Tracer {
  readonly enabled: boolean
  /** Runs work under a new span. A rejection marks the span as failed with the error code. */
  internal<T>(name: InternalSpan, attributes: SpanAttributes | undefined, work: (span: SpanHandle) => T): T
  /** Runs a backend call under a new span, as `internal` does for other work. */
  client<T>(name: string, work: (span: SpanHandle) => T): T
  /** Opens the span of a request that arrived at `startedAt` (epoch ms); undefined when tracing is off. */
  openServerSpan(name: string, startedAt: number, carrier: TraceCarrier): OpenSpan | undefined
  /** Returns the trace context for outgoing calls; empty without a span. */
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

/** Returns an error's code, or its class. */
export function errorType(error: unknown): string {
  if (error instanceof GatehouseError) return error.code
  return error instanceof Error ? error.name : 'error'
}
