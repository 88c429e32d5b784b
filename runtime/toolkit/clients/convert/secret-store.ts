/**
 * Collects the secrets found during an import and assigns their keys. The secrets are stored in one Secret per server,
 * or in one shared Secret whose values are in a variables file.
 */
import { envName } from '../../../../schemas/index.ts'
import { literalOf, type Reference, referencesIn, type Value } from '../entries/value.ts'

/** A manifest that the conversion creates, with the fields that it sets. */
export interface ConvertedManifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: Readonly<Record<string, unknown>>
  readonly type?: string
  readonly stringData?: Readonly<Record<string, string>>
}

/** A reference to a key in a Secret. */
export interface SecretKey {
  readonly name: string
  readonly key: string
}

export type SecretForm = 'manifest' | 'env'

/** A secret whose value is still unknown. */
export interface MissingValue extends SecretKey {
  /** Variables or inputs that make up the value. */
  readonly variables: readonly string[]
}

export interface CollectedSecrets {
  readonly manifests: readonly ConvertedManifest[]
  /** Secret name and the lines of the variables file, for the `env` form. */
  readonly variables: { readonly secret: string; readonly values: ReadonlyMap<string, string> } | undefined
  readonly missing: readonly MissingValue[]
}

export class SecretStore {
  readonly #form: SecretForm
  readonly #shared: string
  readonly #values = new Map<string, Map<string, string>>()
  readonly #missing: MissingValue[] = []

  /** `group` is the name prefix of the shared Secret in the form `env`. */
  constructor(form: SecretForm, group: string) {
    this.#form = form
    this.#shared = `${group}-secrets`
  }

  /** Stores a value for a server under an unused key. A value with unresolved references is listed as missing. */
  put(server: string, wanted: string, value: Value): SecretKey {
    const name = this.#form === 'env' ? this.#shared : `${server}-secrets`
    const values = this.#values.get(name) ?? new Map<string, string>()
    this.#values.set(name, values)
    const key = freeKey(this.#form === 'env' ? envName(`${server}_${wanted}`) : keyOf(wanted), values)
    const open = referencesIn(value)
    values.set(key, literalOf(value) ?? templateOf(value))
    if (open.length > 0) this.#missing.push({ name, key, variables: open.map((reference) => reference.name) })
    return { name, key }
  }

  /** Removes the values for a server that is not converted. */
  forget(keys: readonly SecretKey[]): void {
    for (const { name, key } of keys) {
      this.#values.get(name)?.delete(key)
      if (this.#values.get(name)?.size === 0) this.#values.delete(name)
      const index = this.#missing.findIndex((value) => value.name === name && value.key === key)
      if (index >= 0) this.#missing.splice(index, 1)
    }
  }

  collected(): CollectedSecrets {
    const missing = this.#missing
    const shared = this.#values.get(this.#shared)
    if (this.#form === 'env') {
      return { manifests: [], variables: shared && { secret: this.#shared, values: sorted(shared) }, missing }
    }
    const manifests = [...this.#values]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, values]) => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name },
        type: 'Opaque',
        stringData: Object.fromEntries(sorted(values)),
      }))
    return { manifests, variables: undefined, missing }
  }
}

/** Returns '' for a single reference; otherwise returns the text with placeholders. */
function templateOf(value: Value): string {
  if (value.length === 1) return ''
  return value.map((part) => (typeof part === 'string' ? part : shownReference(part))).join('')
}

function shownReference({ name }: Reference): string {
  return `\${${name}}`
}

/** Secret keys have at most 253 characters. This limit leaves room for the number added by `freeKey`. */
function keyOf(name: string): string {
  return name.replaceAll(/[^-._a-zA-Z0-9]/g, '_').slice(0, 240) || 'value'
}

function freeKey(wanted: string, usedKeys: ReadonlyMap<string, string>): string {
  for (let n = 1; ; n++) {
    const key = n === 1 ? wanted : `${wanted}_${n}`
    if (!usedKeys.has(key)) return key
  }
}

function sorted(values: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...values].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
