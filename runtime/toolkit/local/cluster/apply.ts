/**
 * Applies a desired child to the live object with a three-way merge, like Metacontroller's dynamic apply. Removes
 * fields that were previously applied and are no longer desired, sets desired fields, and keeps all other fields.
 *
 * Replaces lists of objects as a whole, because only the hooks write children of the local cluster.
 */
import { cloneJson, isRawJson, isFields, lastAppliedAnnotation } from '../../../../schemas/index.ts'
import type { LocalObject } from '../../manifests/objects.ts'

/**
 * Returns the live object after applying `desired`. `live` is undefined on creation. Keeps the status and system
 * metadata.
 */
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
