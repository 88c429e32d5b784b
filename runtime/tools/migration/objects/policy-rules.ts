/** Expands Cedar entity short forms that other readers accept. */
import { exactJson, type Fields, isFields } from '../../../../schemas/index.ts'
import type { MigrationDraft } from './draft.ts'

/** `pattern` matches strings that contain a JSON list of entities. */
export function convertPolicies(draft: MigrationDraft, pattern: string): void {
  for (const { parent, key, value, path } of draft.fieldsAt(pattern)) {
    const entities = entitiesIn(value)
    if (!entities?.some(isShort)) continue
    parent[key] = JSON.stringify(entities.map(fullEntity))
    draft.note(path, 'renamed', 'each entity now has a uid (type and id) and a list of parents')
  }
}

function entitiesIn(value: unknown): readonly unknown[] | undefined {
  if (typeof value !== 'string') return undefined
  try {
    const parsed = exactJson(value)
    return Array.isArray(parsed) ? parsed : undefined
  } catch {
    // Policy validation reports the error.
    return undefined
  }
}

function isShort(entity: unknown): boolean {
  return (
    isFields(entity) && (typeof entity['uid'] === 'string' || !('parents' in entity) || !('attrs' in entity))
  )
}

function fullEntity(entity: unknown): unknown {
  if (!isFields(entity)) return entity
  const { uid, attrs = {}, parents = [], ...remaining } = entity
  return { uid: fullUid(uid), attrs, parents, ...remaining }
}

/** Converts `Tool::weather` and `Tool::"weather"` to a type and an id. */
function fullUid(uid: unknown): unknown {
  if (typeof uid !== 'string') return uid
  const [, type, quoted, plain] = /^((?:\w+::)*\w+)::(?:"(.*)"|([^"]+))$/.exec(uid) ?? []
  return type === undefined ? uid : ({ type, id: quoted ?? plain } satisfies Fields)
}
