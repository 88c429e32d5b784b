/**
 * Reads stored JSON back into typed records. Anything that does not match the record's shape is treated as absent.
 *
 * A record written by another version of this server must never be partially interpreted, so there is no coercion.
 * Does no I/O.
 */
import { isFields, own } from '../../../schemas/index.ts'

/** Returns the value if it matches the shape, otherwise undefined. */
export type RecordShape<T> = (value: unknown) => T | undefined

export const text: RecordShape<string> = (value) => (typeof value === 'string' ? value : undefined)

export const count: RecordShape<number> = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

export const flag: RecordShape<boolean> = (value) => (typeof value === 'boolean' ? value : undefined)

export function oneOf<const T extends string>(...values: readonly T[]): RecordShape<T> {
  return (value) => values.find((candidate) => candidate === value)
}

export function list<T>(item: RecordShape<T>): RecordShape<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) return undefined
    const items = value.map(item)
    return items.every((one) => one !== undefined) ? items : undefined
  }
}

interface Optional<T> {
  readonly optional: RecordShape<T>
}

/** A member that may be absent. */
export function maybe<T>(shape: RecordShape<T>): Optional<T> {
  return { optional: shape }
}

type Member = RecordShape<unknown> | Optional<unknown>
type Members = Readonly<Record<string, Member>>
type OptionalKeys<M> = { [K in keyof M]: M[K] extends Optional<unknown> ? K : never }[keyof M]

/** The type that a set of members describes. */
export type Of<M> = {
  readonly [K in Exclude<keyof M, OptionalKeys<M>>]: M[K] extends RecordShape<infer T> ? T : never
} & { readonly [K in OptionalKeys<M>]?: (M[K] extends Optional<infer T> ? T : never) | undefined }

/** Parses an object with these fields and drops all other fields. */
export function record<const M extends Members>(members: M): RecordShape<Of<M>> {
  const each = Object.entries(members).map(([name, member]) => ({
    name,
    optional: typeof member !== 'function',
    shape: typeof member === 'function' ? member : member.optional,
  }))
  return (value) => {
    if (!isFields(value)) return undefined
    const out: Record<string, unknown> = {}
    for (const { name, optional, shape } of each) {
      const given = own(value, name)
      if (optional && given === undefined) continue
      const read = shape(given)
      if (read === undefined) return undefined
      out[name] = read
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every member was read by its own shape
    return out as Of<M>
  }
}

/** Parses JSON text into the shape; undefined for anything else. */
export function decode<T>(shape: RecordShape<T>, json: string | undefined): T | undefined {
  if (json === undefined) return undefined
  try {
    return shape(JSON.parse(json))
  } catch {
    return undefined
  }
}
