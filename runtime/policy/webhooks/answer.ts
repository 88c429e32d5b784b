/**
 * Parses a webhook's response: `{version, uid, allowed, message, reason}` and, for a mutating webhook, `patch_type` and
 * `patch`.
 *
 * The version and the uid must match the request. An unreadable response is a failure, never a decision.
 * Source: docs/guides/webhooks.md.
 */
import { exactJson } from '../../../schemas/index.ts'
import { canonicalText, JsonError, JsonObject, readMembers, workOn } from '../../mcp/index.ts'
import { redactText, visibleText } from '../../observe/index.ts'
import { DecisionFailure } from '../remote/json-post.ts'
import { webhookVersion } from './question.ts'
import type { WebhookKind } from './subject.ts'

export interface WebhookAnswer {
  readonly allowed: boolean
  /** Message for the caller. */
  readonly message?: string | undefined
  /** Reason for operators. */
  readonly reason?: string | undefined
  /** JSON Patch, unchecked; undefined when nothing changes. */
  readonly patch?: readonly unknown[] | undefined
}

const maxText = 512
/** Maximum number of values in a patch. */
const maxPatchValues = 50_000

/** Parses the response. Rejects with DecisionFailure. */
export async function readAnswer(body: Buffer, uid: string, kind: WebhookKind): Promise<WebhookAnswer> {
  try {
    await workOn(body, readMembers(body))
    const answer = new JsonObject(body)
    if (answer.text('version') !== webhookVersion)
      throw new DecisionFailure('mismatch', `the version in the response is not ${webhookVersion}`)
    if (answer.text('uid') !== uid)
      throw new DecisionFailure('mismatch', 'the response has a different uid than the request')
    const allowed = answer.value('allowed')
    if (typeof allowed !== 'boolean')
      throw new DecisionFailure('malformed', 'the response has no boolean member allowed')
    const texts = { message: shown(answer.text('message')), reason: shown(redacted(answer.text('reason'))) }
    return { allowed, ...texts, patch: allowed ? await patchOf(answer, kind) : undefined }
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new DecisionFailure('malformed', 'the response is not a JSON object', { cause })
  }
}

async function patchOf(answer: JsonObject, kind: WebhookKind): Promise<readonly unknown[] | undefined> {
  const raw = answer.raw('patch')
  const type = answer.raw('patch_type')?.toString() ?? 'null'
  if (raw === undefined || raw.toString() === 'null') return undefined
  if (kind === 'validating') throw new DecisionFailure('patch', 'a validating webhook must not send a patch')
  if (type !== '"json_patch"') throw new DecisionFailure('patch', 'patch_type must be json_patch')
  await workOn(raw, canonicalText(raw, { maxValues: maxPatchValues }))
  const patch = exactJson(raw.toString())
  if (!Array.isArray(patch)) throw new DecisionFailure('patch', 'patch must be a list of operations')
  return patch.length === 0 ? undefined : patch
}

/** Redacts text for logs. */
function redacted(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redactText(text.slice(0, maxText))
}

function shown(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  return visibleText(text.slice(0, maxText)).slice(0, maxText)
}
