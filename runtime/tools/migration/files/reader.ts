/** Reads the fields of a run configuration one by one; what nobody asked for is reported at the end. */
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

  /** undefined when the field is empty or no text. */
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

  /** Fields of no use elsewhere, such as those of the machine that the server ran on. */
  ignore(...fields: readonly string[]): void {
    for (const field of fields) this.#seen.add(field)
  }

  /** Fields with a value that nobody read. */
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

/** Keys as `JWKSURL`, `jwks_url` and `jwksUrl` are one: letters and digits in lower case. */
export function looseFields(value: Fields): ReadonlyMap<string, unknown> {
  return new Map(
    Object.entries(value)
      .filter(([, field]) => !isEmpty(field))
      .map(([key, field]) => [key.toLowerCase().replaceAll(/[^a-z0-9]/g, ''), field]),
  )
}

/** Fields that have a value, under our names. */
export function renamedFields(value: Fields, names: Readonly<Record<string, string>>): Fields {
  const loose = looseFields(value)
  return Object.fromEntries(
    Object.entries(names).flatMap(([from, to]) => (loose.has(from) ? [[to, loose.get(from)]] : [])),
  )
}

/** The input and output that all parts of a run configuration share during its conversion. */
export interface RunConfigParts {
  readonly reader: Reader
  /** Name of the object, and name prefix of the objects that are created for it. */
  readonly name: string
  readonly draft: MigrationDraft
  readonly context: ObjectContext
}
