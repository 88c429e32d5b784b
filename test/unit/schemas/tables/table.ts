/**
 * The shape of the tables: one row per field of the spec documents, with values that are accepted and values that are
 * refused. The same rows are put to the validators here and to a real API server.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }
export type Doc = { readonly [name: string]: Json }

/** A value that stands for "the field is not there". */
export const absent = Symbol('absent')

export interface Row {
  /** Requirement that the row proves; '' for a row that no requirement names. */
  readonly id: string
  /** Path of the field in the document. */
  readonly at: string
  /** Refused when absent. */
  readonly required?: true
  /** Value that an absent field gets; not given: it stays absent and is accepted. */
  readonly default?: Json
  readonly good?: readonly (Json | typeof absent)[]
  readonly bad?: readonly (Json | typeof absent)[]
  /** Path of the problem that bad values give; the field's own path when not given. */
  readonly failure?: string
}

export interface Table {
  readonly name: string
  /** A valid document that holds the parents of all fields of the table. */
  readonly base: Doc
  readonly rows: readonly Row[]
}

/** A copy of the document with the value at the path; parents are made when missing. */
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

/** An object or a list; both are reached by key. */
function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** The value at the path; undefined when there is none. */
export function valueAt(doc: unknown, path: string): unknown {
  let value = doc
  for (const key of keysOf(path)) value = isContainer(value) ? value[key] : undefined
  return value
}

/** `a.b[0].c` and `a["x.y"]` as keys. */
function keysOf(path: string): string[] {
  return [...path.matchAll(/\["([^"]+)"\]|([^.[\]]+)/g)].map((match) => match[1] ?? match[2] ?? '')
}

/** Values that most fields of a type refuse. */
export const notString: readonly Json[] = [1, true, {}, []]
const notBoolean: readonly Json[] = ['true', 1, {}]
export const notInteger: readonly Json[] = ['1', 1.5, true]
export const notDuration: readonly Json[] = ['', '30', '30 s', '-30s', '1d', '.5s', '1h 30m', '1H', 30]
export const durations: readonly Json[] = ['30s', '1h30m', '1.5h', '100ms', '5us', '5µs', '7ns', '1h1m1s1ms']
export const notName: readonly Json[] = ['', 'Upper', 'under_score', '-a', 'a-', 'a..b', 'x'.repeat(254), 1]
export const notProvider: readonly Json[] = ['', 'A', 'a_b', '-a', 'a-', 'x'.repeat(64), 'a.b']

export const secretRef = { name: 'secret', key: 'key' }

/** The two rows of a SecretRef at a path. */
export function secretRows(at: string): readonly Row[] {
  return [
    { id: '2.shape.SecretRef', at: `${at}.name`, required: true, bad: ['', 1] },
    { id: '2.shape.SecretRef', at: `${at}.key`, required: true, bad: ['', 1, 'a b'] },
  ]
}

/** A duration field. */
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
