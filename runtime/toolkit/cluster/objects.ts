/** Reads any object in a cluster by its path. A missing permission is a result, not an error. */
import { isFields } from '../../../schemas/index.ts'
import type { JsonRecord } from '../../oauth/index.ts'

export interface ObjectPath {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace?: string
  /** Absent for a list. */
  readonly name?: string
}

/** `forbidden` and `absent` refer to the object, `unauthorized` and `unreachable` to the cluster. */
export type ReadFailure = 'absent' | 'forbidden' | 'unauthorized' | 'unreachable'

export type ClusterReader = (path: ObjectPath) => Promise<JsonRecord | ReadFailure>

export function itemsOf(list: JsonRecord): readonly JsonRecord[] {
  const { items } = list
  return Array.isArray(items) ? items.filter(isFields) : []
}

/** Returns the value at a path of member names. */
export function at(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce<unknown>((inner, name) => (isFields(inner) ? inner[name] : undefined), value)
}

export function textAt(value: unknown, ...names: readonly string[]): string | undefined {
  const found = at(value, ...names)
  return typeof found === 'string' ? found : undefined
}

export function listAt(value: unknown, ...names: readonly string[]): readonly JsonRecord[] {
  const found = at(value, ...names)
  return Array.isArray(found) ? found.filter(isFields) : []
}
