/**
 * Evaluates one call of a hook or of admission, from request text to response text. The function is pure; the main
 * thread and the worker share it.
 */
import { exactJson, GatehouseError } from '../../schemas/index.ts'
import { reviewAdmission } from '../admission/review.ts'
import type { HookRegistry } from '../registry/hook-registry.ts'
import type { HookEvent } from '../sync/protocol.ts'

/** Identifies the called hook. */
export type HookCall =
  | { readonly hook: 'validate' }
  | {
      readonly hook: 'sync' | 'customize'
      readonly plural: string
      /** True when the caller needs the events that result from a sync. */
      readonly events: boolean
    }

export interface EvaluatedCall {
  /** Response body, JSON. */
  readonly text: string
  /** Kind that the hook was called for or that admission reviewed, for metrics; `unknown` for other kinds. */
  readonly kind: string
  /** True when admission rejects the object. */
  readonly denied: boolean
  readonly events: readonly HookEvent[]
  /** True if the events could not be built. */
  readonly eventsFailed: boolean
}

/** Throws GatehouseError for an invalid body. */
export function evaluate(registry: HookRegistry, call: HookCall, text: string): EvaluatedCall {
  const body = parse(text)
  const none = { events: [], eventsFailed: false }
  if (call.hook === 'validate') {
    const { review, kind } = reviewAdmission(registry, body)
    return { text: JSON.stringify(review), kind, denied: !review.response.allowed, ...none }
  }
  const entry = registry.byPlural(call.plural)
  if (!entry) throw new GatehouseError('NOT_FOUND')
  const { kind } = entry
  if (call.hook === 'customize') {
    return { text: JSON.stringify(entry.customize(body)), kind, denied: false, ...none }
  }
  const response = entry.sync(body)
  const result = { text: JSON.stringify(response), kind, denied: false, ...none }
  if (!call.events) return result
  try {
    return { ...result, events: entry.events(body, response) }
  } catch {
    return { ...result, eventsFailed: true }
  }
}

/** This message replaces the parser's message, which would quote the body. */
function parse(text: string): unknown {
  try {
    return exactJson(text)
  } catch {
    throw new GatehouseError('BAD_REQUEST', { detail: 'the request body must be JSON' })
  }
}
