/**
 * The trace context of a request: parses `traceparent` and `tracestate` from clients, and writes them for backends.
 * Malformed values are ignored and a new trace starts.
 * Source: W3C Trace Context, sections 3.2 and 3.3.
 */
import { createTraceState, isSpanContextValid, type SpanContext, TraceFlags } from '@opentelemetry/api'

export interface TraceCarrier {
  readonly traceparent?: string | undefined
  readonly tracestate?: string | undefined
}

const parent = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const stateMember = /^[a-z0-9_\-*/@]{1,256}=[\x21-\x2b\x2d-\x3c\x3e-\x7e]{1,256}$/
const maxStateLength = 512
const maxStateMembers = 32

/** Returns the remote span in a carrier, or undefined. */
export function readTraceContext(carrier: TraceCarrier): SpanContext | undefined {
  const match = parent.exec(carrier.traceparent?.trim() ?? '')
  if (!match) return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = match
  if (version === '00' && more !== undefined) return undefined
  const state = readState(carrier.tracestate)
  const context: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
    ...(state === undefined ? {} : { traceState: createTraceState(state) }),
  }
  return isSpanContextValid(context) ? context : undefined
}

/** Drops the whole tracestate if a member is invalid, as the recommendation requires. */
function readState(text: string | undefined): string | undefined {
  if (text === undefined || text.length > maxStateLength) return undefined
  const members = text.split(',').map((member) => member.trim())
  const used = members.filter((member) => member !== '')
  if (used.length === 0 || used.length > maxStateMembers) return undefined
  return used.every((member) => stateMember.test(member)) ? used.join(',') : undefined
}

/** Returns the header (and `_meta`) members for calls made within a span. */
export function writeTraceContext(context: SpanContext): Readonly<Record<string, string>> {
  const flags = (context.traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0')
  const state = context.traceState?.serialize()
  return {
    traceparent: `00-${context.traceId}-${context.spanId}-${flags}`,
    ...(state === undefined || state === '' ? {} : { tracestate: state }),
  }
}
