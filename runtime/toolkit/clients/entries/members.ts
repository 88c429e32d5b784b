/** Reads an entry's fields and checks their types. `noteUnknown` adds a note for each field that was not read. */
import { hiddenInLine, isFields, isRawJson } from '../../../../schemas/index.ts'
import type { Note, Unusable } from './entry.ts'

export class EntryMembers {
  readonly #raw: Readonly<Record<string, unknown>>
  readonly #notes: Note[]
  readonly #used = new Set<string>()
  /** Set when a field has the wrong type. */
  failure: Unusable | undefined

  constructor(raw: Readonly<Record<string, unknown>>, notes: Note[]) {
    this.#raw = raw
    this.#notes = notes
  }

  /** True when the field exists and is not empty. */
  has(name: string): boolean {
    return !isEmpty(this.peek(name))
  }

  peek(name: string): unknown {
    return Object.hasOwn(this.#raw, name) ? this.#raw[name] : undefined
  }

  take(name: string): unknown {
    this.#used.add(name)
    return this.peek(name)
  }

  /** Also accepts words such as yes and no, which YAML 1.1 allows and users write for true and false. */
  boolean(name: string): boolean | undefined {
    const value = this.peek(name)
    const isTrue = /^(?:true|yes|on)$/i.test(String(value))
    if (!isTrue && !/^(?:false|no|off)$/i.test(String(value))) return undefined
    this.#used.add(name)
    return isTrue
  }

  text(name: string): string | undefined {
    const value = this.take(name)
    if (value === undefined || value === null) return undefined
    return typeof value === 'string' ? value : this.#wrong(name, 'a string')
  }

  /** Returns a list of strings. Numbers and booleans are converted to strings. */
  texts(name: string): readonly string[] | undefined {
    const value = this.take(name)
    if (value === undefined || value === null) return undefined
    const texts = Array.isArray(value) ? value.map(asText) : undefined
    if (texts?.every((text) => text !== undefined)) return texts
    return this.#wrong(name, 'a list of strings')
  }

  /** Returns a list of names, from strings or objects with a name. */
  names(name: string): readonly string[] | undefined {
    const value = this.peek(name)
    if (!Array.isArray(value)) return this.texts(name)
    this.#used.add(name)
    const names = value.map((item: unknown) => (isFields(item) ? asText(item['name']) : asText(item)))
    return names.every((item) => item !== undefined) ? names : this.#wrong(name, 'a list of names')
  }

  /** Returns strings, keyed by name, without null members. Empty when the field is absent. */
  textMap(name: string): ReadonlyMap<string, string> {
    const value = this.take(name)
    if (value === undefined || value === null) return new Map()
    const entries = isFields(value)
      ? Object.entries(value)
          .filter(([, item]) => item !== null)
          .map(([key, item]) => [key, asText(item)] as const)
      : []
    const texts = entries.filter((entry): entry is readonly [string, string] => entry[1] !== undefined)
    if (!isFields(value) || texts.length !== entries.length) this.#wrong(name, 'an object with string values')
    return new Map(texts)
  }

  /** Returns the fields of a nested object, or undefined when the field is not an object. */
  inner(name: string): EntryMembers | undefined {
    const value = this.peek(name)
    if (!isFields(value)) return undefined
    this.#used.add(name)
    return new EntryMembers(value, this.#notes)
  }

  noteIfSet(field: string, text: string, { loses }: { readonly loses: boolean }): void {
    const isSet = this.has(field) && !this.#used.has(field)
    this.#used.add(field)
    if (isSet) this.#notes.push({ field, text, loses })
  }

  /** Adds a note that a field uses an undocumented but unambiguous format. */
  noteRepair(field: string, text: string): void {
    this.#notes.push({ field, text, loses: false })
  }

  noteUnknown(): void {
    for (const field of Object.keys(this.#raw)) {
      if (this.#used.has(field) || !this.has(field)) continue
      this.#notes.push({ field: printableName(field), text: 'is an unknown field', loses: true })
    }
  }

  #wrong(name: string, expected: string): undefined {
    this.failure ??= { kind: 'unusable', why: `has a member "${name}" that is not ${expected}` }
    return undefined
  }
}

function asText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (isRawJson(value)) return value.rawJSON
  return typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint'
    ? String(value)
    : undefined
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false) return true
  if (Array.isArray(value)) return value.length === 0
  return isFields(value) && Object.keys(value).length === 0
}

/** Replaces hidden characters, which could control a terminal, in text from a user's file. */
export function printable(text: string): string {
  return text.replaceAll(hiddenInLine, '?')
}

/** Shortens a name from a user's file to fit into a table. */
export function printableName(name: string): string {
  const plain = printable(name)
  return plain.length > 60 ? `${plain.slice(0, 59)}…` : plain
}
