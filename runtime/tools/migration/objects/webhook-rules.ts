/** Rules for MCPWebhookConfig. Webhooks keep their format, but are called for different operations. */
import { objectName } from '../../../toolkit/clients/index.ts'
import type { MigrationDraft } from './draft.ts'

/** Converts a webhook name to an object name. */
export function webhookName(name: unknown): unknown {
  return typeof name === 'string' && name !== '' ? objectName(name) : name
}

export function noteWebhooks(draft: MigrationDraft, field: string): void {
  draft.note(
    field,
    'differs',
    'webhooks are called for tool calls, prompts, reads and completions, but not for lists and initialize; a patch must not change names; responses must contain the uid and version of the request (docs/guides/webhooks.md)',
  )
}

export function convertWebhooks(draft: MigrationDraft): void {
  for (const list of ['mutating', 'validating']) {
    for (const { parent, key, value, path } of draft.fieldsAt(`spec.${list}[].name`)) {
      const name = webhookName(value)
      if (name === value) continue
      parent[key] = name
      draft.note(path, 'renamed', `is now ${String(name)}`)
    }
  }
  noteWebhooks(draft, 'spec')
}
