/** Reads the fields of a run configuration. `rest` returns the fields that were not read. */
import { type Fields, fieldsOf } from '../../../../schemas/index.ts'
import type { MigrationDraft, ObjectContext } from '../objects/draft.ts'

export class Reader {
  readonly #doc: Fields
  readonly #seen = new Set<string>()

  constructor(doc: Fields) {
    this.#doc = doc
  }

  raw(field: string): unknown {
    this.#seen.add(field)
    const value = this.#doc[field]
    return value === null ? undefined : value
  }

  /** Returns undefined when the field is empty or not a string. */
  text(field: string): string | undefined {
    const value = this.raw(field)
    return typeof value === 'string' && value !== '' ? value : undefined
  }

  number(field: string): number | undefined {
    const value = this.raw(field)
    return typeof value === 'number' && value !== 0 ? value : undefined
  }

  flag(field: string): boolean {
    return this.raw(field) === true
  }

  texts(field: string): readonly string[] {
    const value = this.raw(field)
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
  }

  fields(field: string): Fields | undefined {
    const value = fieldsOf(this.raw(field))
    return Object.keys(value).length > 0 ? value : undefined
  }

  /** Marks as read the fields that are relevant only on the original machine. */
  ignore(...fields: readonly string[]): void {
    for (const field of fields) this.#seen.add(field)
  }

  /** Returns the fields that have a value and were not read. */
  rest(): readonly string[] {
    return Object.entries(this.#doc)
      .filter(([field, value]) => !this.#seen.has(field) && !isEmpty(value))
      .map(([field]) => field)
  }
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === 0) return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

/** Normalizes keys to lowercase letters and digits, so that `JWKSURL`, `jwks_url` and `jwksUrl` compare as equal. */
export function looseFields(value: Fields): ReadonlyMap<string, unknown> {
  return new Map(
    Object.entries(value)
      .filter(([, field]) => !isEmpty(field))
      .map(([key, field]) => [key.toLowerCase().replaceAll(/[^a-z0-9]/g, ''), field]),
  )
}

/** Returns the fields that have a value, keyed by Gatehouse's names. */
export function renamedFields(value: Fields, names: Readonly<Record<string, string>>): Fields {
  const loose = looseFields(value)
  return Object.fromEntries(
    Object.entries(names).flatMap(([from, to]) => (loose.has(from) ? [[to, loose.get(from)]] : [])),
  )
}

export interface RunConfigParts {
  readonly reader: Reader
  /** The object's name, and the prefix for objects that are added for it. */
  readonly name: string
  readonly draft: MigrationDraft
  readonly context: ObjectContext
}
