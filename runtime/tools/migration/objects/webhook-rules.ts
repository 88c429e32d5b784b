/** MCPWebhookConfig: the form is ours, and what its webhooks are asked is not quite the same. */
import { objectName } from '../../../toolkit/clients/index.ts'
import type { MigrationDraft } from './draft.ts'

/** Names of webhooks are of the form that objects have. */
export function webhookName(name: unknown): unknown {
  return typeof name === 'string' && name !== '' ? objectName(name) : name
}

export function noteWebhooks(draft: MigrationDraft, field: string): void {
  draft.note(
    field,
    'differs',
    'webhooks are asked about calls, prompts, reads and completions, no longer about lists and initialize; a patch must not change names; responses must have the uid and version of the request (docs/guides/webhooks.md)',
  )
}

export function convertWebhooks(draft: MigrationDraft): void {
  for (const list of ['mutating', 'validating']) {
    for (const { parent, key, value, path } of draft.places(`spec.${list}[].name`)) {
      const name = webhookName(value)
      if (name === value) continue
      parent[key] = name
      draft.note(path, 'renamed', `is ${String(name)}`)
    }
  }
  noteWebhooks(draft, 'spec')
}
