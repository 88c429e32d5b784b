/**
 * Implements the tracer with OpenTelemetry. Text is redacted and truncated before it becomes an attribute or a name.
 */
import {
  type Attributes as OtelAttributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer as OtelTracer,
} from '@opentelemetry/api'
import { currentScope, withScope } from '../exchange/scope.ts'
import { redactText, cutBytes } from '../redact.ts'
import { readTraceContext, writeTraceContext } from './propagation.ts'
import { type SpanAttributes, errorType, type OpenSpan, type SpanHandle, type Tracer } from './tracer.ts'

const maxTextBytes = 1_024
const maxNameBytes = 160
const noAttributes: Readonly<Record<string, string>> = {}

export function makeTracer(otel: OtelTracer): Tracer {
  function open(kind: SpanKind, name: string, parent: Context, startTime?: number): OpenSpan {
    const options = startTime === undefined ? { kind } : { kind, startTime }
    return openSpan(otel.startSpan(cutBytes(redactText(name), maxNameBytes), options, parent))
  }

  function run<T>(
    kind: SpanKind,
    name: string,
    attributes: SpanAttributes | undefined,
    work: (span: SpanHandle) => T,
  ): T {
    const scope = currentScope()
    const parent = scope?.span ? trace.setSpan(ROOT_CONTEXT, scope.span.span) : ROOT_CONTEXT
    const span = open(kind, name, parent)
    if (attributes) span.set(attributes)
    return withScope({ request: scope?.request, span, notes: scope?.notes }, () => ending(span, work))
  }

  return {
    enabled: true,
    internal: (name, attributes, work) => run(SpanKind.INTERNAL, name, attributes, work),
    client: (name, work) => run(SpanKind.CLIENT, name, undefined, work),
    openServerSpan(name, startedAt, carrier) {
      const remote = readTraceContext(carrier)
      const parent = remote ? trace.setSpanContext(ROOT_CONTEXT, remote) : ROOT_CONTEXT
      return open(SpanKind.SERVER, name, parent, startedAt)
    },
    carrier() {
      const span = currentScope()?.span
      return span ? writeTraceContext(span.span.spanContext()) : noAttributes
    },
  }
}

/** Runs work and ends its span when the work or its promise completes. */
function ending<T>(span: OpenSpan, work: (span: SpanHandle) => T): T {
  let result: T
  try {
    result = work(span)
  } catch (error) {
    span.fail(errorType(error))
    span.end()
    throw error
  }
  if (!(result instanceof Promise)) {
    span.end()
    return result
  }
  const ended: Promise<unknown> = result.then(
    (value: unknown) => {
      span.end()
      return value
    },
    (error: unknown) => {
      span.fail(errorType(error))
      span.end()
      throw error
    },
  )
  return ended as T
}

function openSpan(span: Span): OpenSpan {
  const recording = span.isRecording()
  let open = true
  return {
    span,
    recording,
    set(attributes) {
      if (recording) span.setAttributes(safe(attributes))
    },
    fail(type) {
      if (!recording) return
      span.setAttribute('error.type', type)
      span.setStatus({ code: SpanStatusCode.ERROR })
    },
    rename(name) {
      span.updateName(cutBytes(redactText(name), maxNameBytes))
    },
    traceparent: () => writeTraceContext(span.spanContext())['traceparent'],
    link(traceparent) {
      const context = recording ? readTraceContext({ traceparent }) : undefined
      if (context) span.addLink({ context })
    },
    end() {
      if (open) span.end()
      open = false
    },
  }
}

function safe(attributes: SpanAttributes): OtelAttributes {
  const out: OtelAttributes = {}
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'string') out[name] = cutBytes(redactText(value), maxTextBytes)
    else if (value !== undefined) out[name] = value
  }
  return out
}
