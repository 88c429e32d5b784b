/** JSON objects of unknown shape, read through guards. */
export type Fields = Readonly<Record<string, unknown>>

/** True for a JSON object; false for null and arrays. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value as a JSON object; an empty one when it is anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {}
}

/** The JSON object that a text is; undefined when it is anything else. */
export function jsonFields(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The items; none when it is not a list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The entry of a table by a name that somebody else chose: `constructor` and the like, which every object has, are none. */
export function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}
