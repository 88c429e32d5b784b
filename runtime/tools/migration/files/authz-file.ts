/** Converts a policy file (`version`, `type`, and the section for that type) to an MCPAuthzConfig. */
import { apiVersion, type Fields, fieldsOf } from '../../../../schemas/index.ts'
import { convertObject } from '../objects/object.ts'
import type { MigrationDraft, ObjectContext } from '../objects/draft.ts'

export function isAuthzFile(doc: Fields): boolean {
  return doc['apiVersion'] === undefined && 'version' in doc && ('cedar' in doc || 'pdp' in doc)
}

export function convertAuthzFile(doc: Fields, name: string, context: ObjectContext): MigrationDraft {
  const section = doc['type'] === 'httpv1' ? 'pdp' : 'cedar'
  const draft = convertObject(
    {
      apiVersion,
      kind: 'MCPAuthzConfig',
      metadata: { name },
      spec: { type: doc['type'] ?? 'cedarv1', config: fieldsOf(doc[section]) },
    },
    context,
  )
  draft.note(section, 'renamed', `becomes MCPAuthzConfig ${name}: refer to it in authzConfigRef`)
  return draft
}
