/**
 * The format of the tables: one row per field of the specification, with accepted and rejected values. The validators
 * and a real API server check the same rows.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }
export type Doc = { readonly [name: string]: Json }

/** A value that marks the field as absent. */
export const absent = Symbol('absent')

export interface Row {
  /** Requirement that the row proves; '' for a row without a requirement. */
  readonly id: string
  /** Path of the field in the document. */
  readonly at: string
  /** Rejected when absent. */
  readonly required?: true
  /** Default of the field. Without a default, an absent field stays absent and is accepted. */
  readonly default?: Json
  readonly good?: readonly (Json | typeof absent)[]
  readonly bad?: readonly (Json | typeof absent)[]
  /** Path of the problem that bad values cause; by default the field's own path. */
  readonly failure?: string
}

export interface Table {
  readonly name: string
  /** A valid document that contains the parents of all fields of the table. */
  readonly base: Doc
  readonly rows: readonly Row[]
}

/** Returns a copy of the document with the value at the path; missing parents are created. */
export function withValue(doc: Doc, path: string, value: Json | typeof absent): Doc {
  const copy = structuredClone(doc)
  const keys = keysOf(path)
  const last = keys.pop() ?? ''
  let parent: Record<string, unknown> = copy
  for (const key of keys) {
    parent[key] ??= {}
    const next = parent[key]
    if (!isContainer(next)) throw new Error(`${path}: ${key} is not an object`)
    parent = next
  }
  if (value === absent) {
    if (Array.isArray(parent)) throw new Error(`${path}: an item cannot be absent`)
    delete parent[last]
  } else parent[last] = value
  return copy
}

/** Returns true for an object or a list; both are accessed by key. */
function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Returns the value at the path, or undefined. */
export function valueAt(doc: unknown, path: string): unknown {
  let value = doc
  for (const key of keysOf(path)) value = isContainer(value) ? value[key] : undefined
  return value
}

/** Parses a path such as `a.b[0].c` or `a["x.y"]` into keys. */
function keysOf(path: string): string[] {
  return [...path.matchAll(/\["([^"]+)"\]|([^.[\]]+)/g)].map((match) => match[1] ?? match[2] ?? '')
}

/** Values that are rejected by most string fields. */
export const notString: readonly Json[] = [1, true, {}, []]
const notBoolean: readonly Json[] = ['true', 1, {}]
export const notInteger: readonly Json[] = ['1', 1.5, true]
export const notDuration: readonly Json[] = ['', '30', '30 s', '-30s', '1d', '.5s', '1h 30m', '1H', 30]
export const durations: readonly Json[] = ['30s', '1h30m', '1.5h', '100ms', '5us', '5µs', '7ns', '1h1m1s1ms']
export const notName: readonly Json[] = ['', 'Upper', 'under_score', '-a', 'a-', 'a..b', 'x'.repeat(254), 1]
export const notProvider: readonly Json[] = ['', 'A', 'a_b', '-a', 'a-', 'x'.repeat(64), 'a.b']

export const secretRef = { name: 'secret', key: 'key' }

/** Returns the two rows of a SecretRef at a path. */
export function secretRows(at: string): readonly Row[] {
  return [
    { id: '2.shape.SecretRef', at: `${at}.name`, required: true, bad: ['', 1] },
    { id: '2.shape.SecretRef', at: `${at}.key`, required: true, bad: ['', 1, 'a b'] },
  ]
}

/** Returns the row of a duration field. */
export function durationRow(id: string, at: string, value?: Json): Row {
  const row: Row = { id, at, good: durations, bad: notDuration }
  return value === undefined ? row : { ...row, default: value }
}

export function booleanRow(id: string, at: string, value?: boolean): Row {
  const row: Row = { id, at, good: [true, false], bad: notBoolean }
  return value === undefined ? row : { ...row, default: value }
}

export function document(kind: string, spec: Doc): Doc {
  return { apiVersion: 'gatehouse.dev/v1beta1', kind, metadata: { name: 'example' }, spec }
}
