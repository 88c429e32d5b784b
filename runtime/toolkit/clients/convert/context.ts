/** What the conversion of one entry works with. */
import { ModuleError } from '../../../../schemas/index.ts'
import { literalOf, fillValue, type Reference, referencesIn, type Value } from '../entries/value.ts'
import type { ConvertOptions } from './options.ts'
import type { SecretStore, ConvertedManifest, SecretKey } from './secret-store.ts'
import type { Note } from '../entries/entry.ts'

export interface ManifestDraft {
  readonly manifest: ConvertedManifest
  readonly notes: readonly Note[]
}

/** Why an entry is not taken: the end of a sentence about it. */
export class NotTaken extends ModuleError {}

export class ConversionContext {
  /** Name of the object. */
  readonly name: string
  /** Name in the client's file. */
  readonly original: string
  readonly options: ConvertOptions
  readonly annotations: Readonly<Record<string, string>>
  /** Keys that were put for this entry. */
  readonly keys: SecretKey[] = []
  readonly #secrets: SecretStore

  constructor(
    given: { name: string; original: string; annotations: Readonly<Record<string, string>> },
    options: ConvertOptions,
    secrets: SecretStore,
  ) {
    this.name = given.name
    this.original = given.original
    this.annotations = given.annotations
    this.options = options
    this.#secrets = secrets
  }

  /** With everything in place that is known. Throws NotTaken for what only the client knows. */
  filled(value: Value, field: string): Value {
    // Neither a process nor a container can be started with one.
    if (value.some((part) => typeof part === 'string' && part.includes('\0')))
      throw new NotTaken(`its ${field} contains a NUL character`)
    for (const { kind, name } of referencesIn(value)) {
      if (kind === 'place') throw new NotTaken(`its ${field} uses \${${name}}, which only the client knows`)
      if (kind === 'file')
        throw new NotTaken(`its ${field} takes the contents of a file; give the value itself`)
    }
    return fillValue(value, (reference) => {
      const known = this.#known(reference)
      return known === undefined ? undefined : [known]
    })
  }

  /** The text of a value that must be known now. */
  text(value: Value, field: string): string {
    const filled = this.filled(value, field)
    const text = literalOf(filled)
    if (text !== undefined) return text
    const names = referencesIn(filled).map(({ name }) => name)
    throw new NotTaken(`its ${field} uses ${names.join(', ')}: set it and say --resolve-env`)
  }

  /** Puts a value into a Secret; a reference alone stays under the name of what it refers to. */
  secret(wanted: string, value: Value): SecretKey {
    const [only] = value
    const name = value.length === 1 && typeof only === 'object' ? only.name : wanted
    const key = this.#secrets.put(this.name, name, value)
    this.keys.push(key)
    return key
  }

  /** Takes back what was put for this entry: all of it, or some keys. */
  forget(keys: readonly SecretKey[] = this.keys): void {
    this.#secrets.forget(keys)
    const gone = new Set(keys)
    this.keys.splice(0, this.keys.length, ...this.keys.filter((key) => !gone.has(key)))
  }

  #known(reference: Reference): string | undefined {
    if (reference.kind === 'home') return this.options.home
    return this.options.resolve(reference) ?? reference.fallback
  }
}
