/**
 * The calls and responses that webhooks receive, and the selection of the webhooks that apply.
 *
 * `match` contains the backend's original names, regardless of the names that clients see. If a name's target is
 * unknown, the webhook is called.
 */
import type { RuntimeWebhook } from '../../../schemas/index.ts'
import type { JsonObject } from '../../mcp/index.ts'
import type { Caller } from '../../net/index.ts'
import type { Origin } from '../requests.ts'

export type WebhookPhase = RuntimeWebhook['phase']
export type WebhookKind = 'mutating' | 'validating'

/** Methods that webhooks apply to, with the params that a patch may change. */
export const webhookMethods: Readonly<Record<string, readonly string[]>> = {
  'tools/call': ['arguments'],
  'prompts/get': ['arguments'],
  'resources/read': [],
  'completion/complete': ['argument'],
}

export interface WebhookCall {
  readonly method: string
  readonly params: JsonObject
  readonly caller: Caller
  /** The request id as raw JSON, if the client sent one. */
  readonly id: string | undefined
  /** The target's origin; undefined when unknown. */
  readonly origin: Origin | undefined
  readonly signal: AbortSignal
  /**
   * Lists the mismatches between a structured result (raw JSON) and the tool's output schema, one line each. Returns
   * undefined for an unchecked result. Called when a patch changed the result.
   */
  readonly misfits?: Misfits | undefined
}

export type Misfits = (structured: Buffer | undefined) => Promise<readonly string[]>

/** The result or error of a call. */
export interface WebhookResponse {
  readonly kind: 'result' | 'error'
  /** Raw JSON object. */
  readonly body: Buffer
}

/** True when the webhook applies to this phase, method and origin. */
export function matches(
  { phase, match = {} }: RuntimeWebhook,
  asked: WebhookPhase,
  method: string,
  origin: Origin | undefined,
): boolean {
  if (phase !== asked) return false
  const { methods, backends, tools } = match
  if (methods && !methods.some((one) => one === method)) return false
  if (tools && method !== 'tools/call') return false
  if (!origin) return true
  return (backends?.includes(origin.backend) ?? true) && (tools?.includes(origin.original) ?? true)
}
