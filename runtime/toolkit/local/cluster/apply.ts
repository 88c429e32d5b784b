/**
 * Three-way apply of a desired child over the live one, as Metacontroller's dynamic apply does it: what was applied
 * before and is no longer desired goes, what is desired is set, what others wrote stays.
 *
 * Lists of objects are replaced whole: nobody but the hooks writes to the local cluster's children.
 */
import { cloneJson, isRawJson, isFields, lastAppliedAnnotation } from '../../../../schemas/index.ts'
import type { LocalObject } from '../../manifests/objects.ts'

/** The live object after applying `desired`; `live` undefined on creation. Status and system metadata stay. */
export function applyChild(live: LocalObject | undefined, desired: LocalObject): LocalObject {
  const { status: _, ...wanted } = desired
  const previous = live ? lastApplied(live) : {}
  const merged = merge(live ?? {}, previous, wanted) as LocalObject
  merged.metadata.annotations = {
    ...merged.metadata.annotations,
    [lastAppliedAnnotation]: JSON.stringify(wanted),
  }
  return merged
}

type Json = Record<string, unknown>

function lastApplied(live: LocalObject): Json {
  const text = live.metadata.annotations?.[lastAppliedAnnotation]
  return text ? (JSON.parse(text) as Json) : {}
}

function merge(live: Json, previous: Json, desired: Json): Json {
  const result: Json = { ...live }
  for (const key of Object.keys(previous)) if (!(key in desired)) delete result[key]
  for (const [key, value] of Object.entries(desired)) {
    const before = result[key]
    result[key] =
      isFields(value) && !isRawJson(value)
        ? merge(isFields(before) ? before : {}, isFields(previous[key]) ? previous[key] : {}, value)
        : cloneJson(value)
  }
  return result
}
