/** Entities of policies: short forms that another reader of Cedar's JSON accepts, written out. */
import { exactJson, type Fields, isFields } from '../../../../schemas/index.ts'
import type { MigrationDraft } from './draft.ts'

/** `pattern` leads to a text that holds a JSON list of entities. */
export function convertPolicies(draft: MigrationDraft, pattern: string): void {
  for (const { parent, key, value, path } of draft.places(pattern)) {
    const entities = entitiesIn(value)
    if (!entities?.some(isShort)) continue
    parent[key] = JSON.stringify(entities.map(full))
    draft.note(path, 'renamed', 'entities have uid as type and id, and parents')
  }
}

function entitiesIn(value: unknown): readonly unknown[] | undefined {
  if (typeof value !== 'string') return undefined
  try {
    const parsed = exactJson(value)
    return Array.isArray(parsed) ? parsed : undefined
  } catch {
    // The check of policies reports it.
    return undefined
  }
}

function isShort(entity: unknown): boolean {
  return (
    isFields(entity) && (typeof entity['uid'] === 'string' || !('parents' in entity) || !('attrs' in entity))
  )
}

function full(entity: unknown): unknown {
  if (!isFields(entity)) return entity
  const { uid, attrs = {}, parents = [], ...others } = entity
  return { uid: fullUid(uid), attrs, parents, ...others }
}

/** `Tool::weather` and `Tool::"weather"` as type and id. */
function fullUid(uid: unknown): unknown {
  if (typeof uid !== 'string') return uid
  const [, type, quoted, plain] = /^((?:\w+::)*\w+)::(?:"(.*)"|([^"]+))$/.exec(uid) ?? []
  return type === undefined ? uid : ({ type, id: quoted ?? plain } satisfies Fields)
}
