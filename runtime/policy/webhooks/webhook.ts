/** One webhook: its connection, and its effect on a call or a response. */
import { randomUUID } from 'node:crypto'
import { GatehouseError, invalidConfig, type RuntimeWebhook } from '../../../schemas/index.ts'
import { type Environment, rotatingSecret } from '../../config/index.ts'
import type { JsonObject } from '../../mcp/index.ts'
import { type Log, silentLog } from '../../net/index.ts'
import { Secret } from '../../observe/index.ts'
import { Inquiry, type InquiryEvent } from '../remote/inquiry.ts'
import { DecisionFailure, makeJsonPost } from '../remote/json-post.ts'
import { readAnswer, type WebhookAnswer } from './answer.ts'
import { patchedParams, patchedResponse } from './patch.ts'
import { maxWebhookBytes, questionOf, signatureOf, type WebhookPlace } from './question.ts'
import type { WebhookCall, WebhookKind, WebhookResponse } from './subject.ts'

/** A webhook's response. */
export interface WebhookVerdict extends Omit<WebhookAnswer, 'patch'> {
  /** The params as changed by the webhook, in the request phase; undefined when unchanged. */
  readonly params?: JsonObject | undefined
  /** The response as changed by the webhook, in the response phase. */
  readonly response?: WebhookResponse | undefined
  readonly ms: number
}

export interface WebhookPeer {
  readonly settings: RuntimeWebhook
  readonly kind: WebhookKind
  /** Rejects with DecisionFailure, or with the signal's reason. */
  ask(call: WebhookCall, response?: WebhookResponse): Promise<WebhookVerdict>
  close(): Promise<void>
}

/** Environment from which the variables in the settings are read. */
export interface WebhookSecrets {
  readonly env: Environment
  /** Name of the settings in errors; `webhooks.validating[<name>]` when undefined. */
  readonly field?: string | undefined
  /** Log for failures. Default: no log. */
  readonly log?: Log | undefined
}

/** Status of a denial, regardless of the response's body. */
const denialStatus = 422

/** Throws INVALID_CONFIG when a file or a variable cannot be used. */
export function makeWebhook(
  settings: RuntimeWebhook,
  kind: WebhookKind,
  {
    env,
    field = `webhooks.${kind}[${settings.name}]`,
    log = silentLog,
    ...place
  }: WebhookPlace & WebhookSecrets,
  observe: (event: InquiryEvent) => void,
): WebhookPeer {
  const who = `webhook ${settings.name}`
  const secret = secretOf(settings, field, env, log)
  const client = makeJsonPost(settings, {
    who,
    field,
    maxAnswerBytes: maxWebhookBytes,
    log,
  })
  const { timeout, circuitBreaker } = settings
  const inquiry = new Inquiry({ who, timeout, circuitBreaker, observe })

  async function askNow(
    call: WebhookCall,
    response: WebhookResponse | undefined,
  ): Promise<Omit<WebhookVerdict, 'ms'>> {
    const uid = randomUUID()
    const { body, document } = questionOf(uid, place, call, response)
    const { patch, ...answer } = await answerTo(uid, body, call.signal)
    if (!patch) return answer
    if (response)
      return { ...answer, response: await patchedResponse(response, document, patch, call.misfits) }
    return { ...answer, params: await patchedParams(call.method, call.params, document, patch) }
  }

  async function answerTo(uid: string, body: Buffer, signal: AbortSignal): Promise<WebhookAnswer> {
    try {
      return await readAnswer(await client.post(body, signatureOf(body, secret?.()), signal), uid, kind)
    } catch (error) {
      if (error instanceof DecisionFailure && error.status === denialStatus) return { allowed: false }
      throw error
    }
  }

  return {
    settings,
    kind,
    async ask(call, response) {
      const { answer, ms } = await inquiry.ask(call.caller.key, call.signal, () => askNow(call, response))
      return { ...answer, ms }
    },
    async close() {
      inquiry.close()
      await client.close()
    },
  }
}

/** Returns the signing secret, or undefined when requests are not signed. */
function secretOf(
  { hmacSecretPath, hmacSecretEnv }: RuntimeWebhook,
  field: string,
  env: Environment,
  log: Log,
): (() => Secret) | undefined {
  if (hmacSecretPath !== undefined) {
    try {
      return rotatingSecret(hmacSecretPath, { log })
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
      throw invalidConfig(`${field}.hmacSecretPath: ${error.message}`, error)
    }
  }
  if (hmacSecretEnv === undefined) return undefined
  const value = env[hmacSecretEnv]
  if (value === undefined || value === '')
    throw invalidConfig(`${field}.hmacSecretEnv: the variable ${hmacSecretEnv} is not set`)
  const secret = new Secret(value)
  return () => secret
}
