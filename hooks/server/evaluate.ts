/**
 * One call of a hook or of admission, from the text of its body to the text of its response. The same on the main thread
 * and in a worker; pure.
 */
import { exactJson, GatehouseError } from '../../schemas/index.ts'
import { reviewAdmission } from '../admission/review.ts'
import type { HookRegistry } from '../registry/hook-registry.ts'
import type { HookEvent } from '../sync/protocol.ts'

/** What is called. */
export type HookCall =
  | { readonly hook: 'validate' }
  | {
      readonly hook: 'sync' | 'customize'
      readonly plural: string
      /** True when the events of a sync are wanted. */
      readonly events: boolean
    }

export interface EvaluatedCall {
  /** JSON. */
  readonly text: string
  /** What was called or reviewed, for metrics; `unknown` for kinds of others. */
  readonly kind: string
  /** True when admission refuses the object. */
  readonly denied: boolean
  readonly events: readonly HookEvent[]
  /** True when the events could not be composed. */
  readonly eventsFailed: boolean
}

/** Throws GatehouseError for a body that is not what it must be. */
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

/** The parser's own text would quote the body. */
function parse(text: string): unknown {
  try {
    return exactJson(text)
  } catch {
    throw new GatehouseError('BAD_REQUEST', { detail: 'the request body must be JSON' })
  }
}
