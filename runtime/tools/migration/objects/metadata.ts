/** Metadata of an object: what a person wrote stays, what the API server and an operator wrote goes. */
import { isFields } from '../../../../schemas/index.ts'
import type { MigrationDraft, Mutable } from './draft.ts'

/** Fields that belong to one object in one cluster. */
const ofTheServer = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'managedFields',
  'ownerReferences',
  'finalizers',
]

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
const restartedAt = 'mcpserver.toolhive.stacklok.dev/restarted-at'
/** Written by the operator, of no use to anybody else. */
const ofTheOperator = 'mcpserver.toolhive.stacklok.dev/last-processed-restart'

export function convertMetadata(draft: MigrationDraft): void {
  delete draft.doc['status']
  const metadata = draft.doc['metadata']
  if (!isFields(metadata)) return
  const copy: Mutable = { ...metadata }
  for (const field of ofTheServer) delete copy[field]
  draft.doc['metadata'] = copy
  for (const field of ['annotations', 'labels']) {
    const values = copy[field]
    if (!isFields(values)) continue
    const left = convertedKeys(draft, field, values)
    if (Object.keys(left).length > 0) copy[field] = left
    else delete copy[field]
  }
}

function convertedKeys(
  draft: MigrationDraft,
  field: string,
  values: Readonly<Record<string, unknown>>,
): Mutable {
  const left: Mutable = {}
  for (const [key, value] of Object.entries(values)) {
    const path = `metadata.${field}["${key}"]`
    if (key === lastApplied || key === ofTheOperator) continue
    if (key === restartedAt) {
      left['mcpserver.gatehouse.dev/restarted-at'] = value
      draft.note(path, 'renamed', 'is mcpserver.gatehouse.dev/restarted-at')
    } else if (/(?:^|\.)toolhive\.stacklok\.(?:dev|io)\//.test(key)) {
      draft.note(path, 'differs', 'has no counterpart; it is left out')
    } else left[key] = value
  }
  return left
}
