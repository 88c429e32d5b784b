/**
 * Converts an object's metadata: keeps user-defined fields, and drops fields set by the API server and the operator.
 */
import { isFields } from '../../../../schemas/index.ts'
import type { MigrationDraft, Mutable } from './draft.ts'

/** Fields set by the API server. */
const serverFields = [
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
/** Annotation that matters only to the operator. */
const operatorAnnotation = 'mcpserver.toolhive.stacklok.dev/last-processed-restart'

export function convertMetadata(draft: MigrationDraft): void {
  delete draft.doc['status']
  const metadata = draft.doc['metadata']
  if (!isFields(metadata)) return
  const copy: Mutable = { ...metadata }
  for (const field of serverFields) delete copy[field]
  draft.doc['metadata'] = copy
  for (const field of ['annotations', 'labels']) {
    const values = copy[field]
    if (!isFields(values)) continue
    const kept = convertedKeys(draft, field, values)
    if (Object.keys(kept).length > 0) copy[field] = kept
    else delete copy[field]
  }
}

function convertedKeys(
  draft: MigrationDraft,
  field: string,
  values: Readonly<Record<string, unknown>>,
): Mutable {
  const kept: Mutable = {}
  for (const [key, value] of Object.entries(values)) {
    const path = `metadata.${field}["${key}"]`
    if (key === lastApplied || key === operatorAnnotation) continue
    if (key === restartedAt) {
      kept['mcpserver.gatehouse.dev/restarted-at'] = value
      draft.note(path, 'renamed', 'is now mcpserver.gatehouse.dev/restarted-at')
    } else if (/(?:^|\.)toolhive\.stacklok\.(?:dev|io)\//.test(key)) {
      draft.note(path, 'differs', 'has no counterpart and was removed')
    } else kept[key] = value
  }
  return kept
}
