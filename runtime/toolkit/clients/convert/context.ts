/** The state used while converting one entry. */
import { ModuleError } from '../../../../schemas/index.ts'
import { literalOf, fillValue, type Reference, referencesIn, type Value } from '../entries/value.ts'
import type { ConvertOptions } from './options.ts'
import type { SecretStore, ConvertedManifest, SecretKey } from './secret-store.ts'
import type { Note } from '../entries/entry.ts'

export interface ManifestDraft {
  readonly manifest: ConvertedManifest
  readonly notes: readonly Note[]
}

/** The reason why an entry is not converted, phrased as the end of a sentence about the entry. */
export class NotTaken extends ModuleError {}

export class ConversionContext {
  /** The object's name. */
  readonly name: string
  /** The entry's name in the client's file. */
  readonly original: string
  readonly options: ConvertOptions
  readonly annotations: Readonly<Record<string, string>>
  /** Keys of Secrets that belong to this entry. */
  readonly keys: SecretKey[] = []
  readonly #secrets: SecretStore

  constructor(
    entry: { name: string; original: string; annotations: Readonly<Record<string, string>> },
    options: ConvertOptions,
    secrets: SecretStore,
  ) {
    this.name = entry.name
    this.original = entry.original
    this.annotations = entry.annotations
    this.options = options
    this.#secrets = secrets
  }

  /** Replaces all known references. Throws NotTaken for references that only the client can resolve. */
  filled(value: Value, field: string): Value {
    // Processes and containers cannot be started with a NUL character in a value.
    if (value.some((part) => typeof part === 'string' && part.includes('\0')))
      throw new NotTaken(`its ${field} contains a NUL character`)
    for (const { kind, name } of referencesIn(value)) {
      if (kind === 'place')
        throw new NotTaken(`its ${field} uses \${${name}}, which only the client can resolve`)
      if (kind === 'file') throw new NotTaken(`its ${field} is read from a file; specify the value directly`)
    }
    return fillValue(value, (reference) => {
      const known = this.#known(reference)
      return known === undefined ? undefined : [known]
    })
  }

  /** Returns a value's literal text. Throws NotTaken when a reference is unresolved. */
  text(value: Value, field: string): string {
    const filled = this.filled(value, field)
    const text = literalOf(filled)
    if (text !== undefined) return text
    const names = referencesIn(filled).map(({ name }) => name)
    throw new NotTaken(`its ${field} uses ${names.join(', ')}: set it and use --resolve-env`)
  }

  /** Stores a value in a Secret. A single reference is stored under the name of its variable. */
  secret(wanted: string, value: Value): SecretKey {
    const [only] = value
    const name = value.length === 1 && typeof only === 'object' ? only.name : wanted
    const key = this.#secrets.put(this.name, name, value)
    this.keys.push(key)
    return key
  }

  /** Removes some or all of the values stored for this entry. */
  forget(keys: readonly SecretKey[] = this.keys): void {
    this.#secrets.forget(keys)
    const removed = new Set(keys)
    this.keys.splice(0, this.keys.length, ...this.keys.filter((key) => !removed.has(key)))
  }

  #known(reference: Reference): string | undefined {
    if (reference.kind === 'home') return this.options.home
    return this.options.resolve(reference) ?? reference.fallback
  }
}
