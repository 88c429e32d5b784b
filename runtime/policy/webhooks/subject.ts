/**
 * What webhooks are asked about: a call, or a call with what came of it; and which webhooks are asked about it.
 *
 * Names in `match` are those of backends: whatever clients call a tool, it matches. Where it is not known what a name leads
 * to, a webhook is asked rather than not.
 */
import type { RuntimeWebhook } from '../../../schemas/index.ts'
import type { JsonObject } from '../../mcp/index.ts'
import type { Caller } from '../../net/index.ts'
import type { Origin } from '../requests.ts'

export type WebhookPhase = RuntimeWebhook['phase']
export type WebhookKind = 'mutating' | 'validating'

/** Methods that webhooks are asked about, each with the members of its params that a patch may change. */
export const webhookMethods: Readonly<Record<string, readonly string[]>> = {
  'tools/call': ['arguments'],
  'prompts/get': ['arguments'],
  'resources/read': [],
  'completion/complete': ['argument'],
}

/** One call. */
export interface WebhookCall {
  readonly method: string
  readonly params: JsonObject
  readonly caller: Caller
  /** Raw JSON of the request's id, where the client gave one. */
  readonly id: string | undefined
  /** Where it goes; undefined where that is not known. */
  readonly origin: Origin | undefined
  readonly signal: AbortSignal
  /**
   * What of a structured result (raw JSON) is not as the tool says that its results are, one line each; undefined: there is
   * none. Asked where a patch has changed it.
   */
  readonly misfits?: Misfits | undefined
}

export type Misfits = (structured: Buffer | undefined) => Promise<readonly string[]>

/** What came of a call. */
export interface WebhookResponse {
  readonly kind: 'result' | 'error'
  /** Raw JSON object. */
  readonly body: Buffer
}

/** True when a webhook has a say in this. */
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
