/**
 * A server's webhooks, in order: first the mutating webhooks, which see the changes of earlier webhooks, then the
 * validating webhooks. The first denial ends the chain.
 *
 * Fails closed: without a valid response, a call is rejected unless the webhook's failurePolicy is `ignore` or its mode
 * is `audit`. In mode `enforce`, a call that is too large, or that gets no slot in time, is always rejected. Otherwise,
 * a caller could bypass a webhook by sending large calls or many concurrent calls.
 * Source: docs/guides/webhooks.md.
 */
import { GatehouseError, type RuntimeWebhook, type RuntimeWebhooks } from '../../../schemas/index.ts'
import { JsonError, type JsonObject } from '../../mcp/index.ts'
import type { InquiryEvent } from '../remote/inquiry.ts'
import { DecisionFailure, type FailureReason } from '../remote/json-post.ts'
import type { Origin } from '../requests.ts'
import { requireOneReading, type WebhookPlace } from './question.ts'
import {
  matches,
  type WebhookPhase,
  type WebhookCall,
  type WebhookKind,
  webhookMethods,
  type WebhookResponse,
} from './subject.ts'
import { makeWebhook, type WebhookPeer, type WebhookSecrets, type WebhookVerdict } from './webhook.ts'

/** The result of sending a call or response to a webhook. */
export interface WebhookDecision {
  readonly webhook: string
  readonly phase: WebhookPhase
  readonly outcome: 'allowed' | 'denied' | 'mutated' | FailureReason
  /** False when the call continues because of `mode: audit` or `failurePolicy: ignore`. */
  readonly enforced: boolean
  /** Reason for a denial, for operators. */
  readonly reason?: string | undefined
  readonly ms: number
  readonly method: string
}

export type WebhookEvent =
  | { readonly kind: 'decision'; readonly decision: WebhookDecision; readonly error?: unknown }
  | {
      readonly kind: 'up' | 'down'
      readonly webhook: string
      readonly ignored: boolean
      readonly reason?: string
      readonly replaced?: boolean
    }

export interface WebhookChain {
  /** True when a webhook may apply to calls of this method, in either phase. */
  concerns(method: string): boolean
  /**
   * Returns the params of the call. Rejects with FORBIDDEN or WEBHOOK_UNAVAILABLE, with INVALID_PARAMS when the params
   * are ambiguous, or with the signal's reason.
   */
  request(call: WebhookCall): Promise<JsonObject>
  /** Returns the response for the client. Rejects like `request`, and with BACKEND_PROTOCOL. */
  response(call: WebhookCall, response: WebhookResponse): Promise<WebhookResponse>
  close(): Promise<void>
}

export interface ChainParts extends WebhookPlace, WebhookSecrets {
  readonly observe: (event: WebhookEvent) => void
}

/** Creates the chain. Throws INVALID_CONFIG when a file or variable in the settings cannot be used. */
export function makeWebhookChain(settings: RuntimeWebhooks, parts: ChainParts): WebhookChain {
  const { observe } = parts
  const peersOf = (kind: WebhookKind, list: readonly RuntimeWebhook[] = []): WebhookPeer[] =>
    list.map((one) => makeWebhook(one, kind, parts, (event) => reportState(one, event, observe)))
  const webhooks = [...peersOf('mutating', settings.mutating), ...peersOf('validating', settings.validating)]

  function applicable(phase: WebhookPhase, method: string, origin: Origin | undefined): WebhookPeer[] {
    return webhooks.filter((webhook) => matches(webhook.settings, phase, method, origin))
  }

  /** Returns undefined when the call continues unchanged. */
  async function ask(
    webhook: WebhookPeer,
    call: WebhookCall,
    response?: WebhookResponse,
  ): Promise<WebhookVerdict | undefined> {
    const { name, phase, mode, failurePolicy } = webhook.settings
    const report = (
      decision: Pick<WebhookDecision, 'outcome' | 'enforced' | 'ms' | 'reason'>,
      error?: unknown,
    ) =>
      observe({
        kind: 'decision',
        decision: { webhook: name, phase, method: call.method, ...decision },
        error,
      })
    const began = performance.now()
    try {
      const verdict = await webhook.ask(call, response)
      const { allowed, reason, ms } = verdict
      const outcome = !allowed ? 'denied' : verdict.params || verdict.response ? 'mutated' : 'allowed'
      report({ outcome, enforced: mode === 'enforce', ms, reason: allowed ? undefined : reason })
      return mode === 'enforce' ? verdict : undefined
    } catch (error) {
      if (!(error instanceof DecisionFailure)) throw error
      const isOversized = error.reason === 'oversized'
      const isOfCaller = isOversized || error.reason === 'busy'
      const enforced = mode === 'enforce' && (isOfCaller || failurePolicy === 'fail')
      report({ outcome: error.reason, enforced, ms: performance.now() - began }, error)
      if (!enforced) return undefined
      if (isOversized) throw tooLarge(response)
      throw new GatehouseError('WEBHOOK_UNAVAILABLE', { cause: error })
    }
  }

  return {
    concerns: (method) =>
      Object.hasOwn(webhookMethods, method) &&
      (applicable('request', method, undefined).length > 0 ||
        applicable('response', method, undefined).length > 0),

    async request(call) {
      const all = applicable('request', call.method, call.origin)
      if (all.length > 0) await requireReadable(call)
      let { params } = call
      for (const webhook of all) {
        const verdict = await ask(webhook, { ...call, params })
        if (verdict?.allowed === false) throw denied('call denied', verdict)
        params = verdict?.params ?? params
      }
      return params
    },

    async response(call, response) {
      const all = applicable('response', call.method, call.origin)
      if (all.length > 0) await requireReadableResponse(response)
      let present = response
      for (const webhook of all) {
        const verdict = await ask(webhook, call, present)
        if (verdict?.allowed === false) throw denied('result withheld', verdict)
        present = verdict?.response ?? present
      }
      return present
    },

    close: async () => void (await Promise.all(webhooks.map((webhook) => webhook.close()))),
  }
}

function reportState(
  { name, mode, failurePolicy }: RuntimeWebhook,
  event: InquiryEvent,
  observe: ChainParts['observe'],
): void {
  if (event.kind === 'failure') return
  const ignored = mode === 'audit' || failurePolicy === 'ignore'
  observe({ ...event, webhook: name, ignored })
}

function denied(what: string, { message }: WebhookVerdict): GatehouseError {
  return new GatehouseError('FORBIDDEN', {
    detail: `${what} by a webhook${message === undefined ? '' : `: ${message}`}`,
  })
}

function tooLarge(response: WebhookResponse | undefined): GatehouseError {
  return response
    ? new GatehouseError('BACKEND_RESULT_TOO_LARGE', {
        detail: 'the result exceeds the size limit for webhooks',
      })
    : new GatehouseError('INVALID_PARAMS', {
        detail: 'Invalid params: the request exceeds the size limit for webhooks',
      })
}

async function requireReadable({ params }: WebhookCall): Promise<void> {
  try {
    await requireOneReading(params.bytes)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new GatehouseError('INVALID_PARAMS', {
      detail: 'Invalid params: the member names of an object must be unique at every depth',
      cause,
    })
  }
}

async function requireReadableResponse({ body }: WebhookResponse): Promise<void> {
  try {
    await requireOneReading(body)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new GatehouseError('BACKEND_PROTOCOL', { cause })
  }
}

/** Returns webhook configuration errors: unreadable files and variables, and duplicate names. */
export function webhookViolations(
  settings: RuntimeWebhooks | undefined,
  secrets: WebhookSecrets,
): readonly string[] {
  const { mutating = [], validating = [] } = settings ?? {}
  const names = [...mutating, ...validating].map(({ name }) => name)
  const doubled = [...new Set(names.filter((name, i) => names.indexOf(name) < i))].map(
    (name) => `webhooks: duplicate name ${name}`,
  )
  const files = (['mutating', 'validating'] as const).flatMap((kind) =>
    (settings?.[kind] ?? []).flatMap((one) => webhookFileViolation(one, kind, secrets)),
  )
  return [...doubled, ...files]
}

/**
 * Returns the configuration error of one webhook, like `webhookViolations`: at most one line, which starts with
 * `<field>.<member>: `.
 */
export function webhookFileViolation(
  settings: RuntimeWebhook,
  kind: WebhookKind,
  secrets: WebhookSecrets,
): readonly string[] {
  try {
    void makeWebhook(settings, kind, { server: '', namespace: undefined, ...secrets }, () => {}).close()
    return []
  } catch (error) {
    if (error instanceof GatehouseError) return [error.message]
    throw error
  }
}
