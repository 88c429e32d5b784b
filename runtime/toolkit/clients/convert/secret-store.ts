/**
 * Collects the secret values of an import and says where each will be: in a Secret per server, or all in one, whose
 * values stand in a file of variables.
 */
import { envName } from '../../../../schemas/index.ts'
import { literalOf, type Reference, referencesIn, type Value } from '../entries/value.ts'

/** A manifest that conversion writes, with the fields that it sets. */
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

/** A reference to a key of a Secret. */
export interface SecretKey {
  readonly name: string
  readonly key: string
}

export type SecretForm = 'manifest' | 'env'

/** A value that nobody gave yet. */
export interface MissingValue extends SecretKey {
  /** The variables or questions that it stands for. */
  readonly variables: readonly string[]
}

export interface CollectedSecrets {
  readonly manifests: readonly ConvertedManifest[]
  /** Lines of the file of variables, for form env; the Secret's name goes with it. */
  readonly variables: { readonly secret: string; readonly values: ReadonlyMap<string, string> } | undefined
  readonly missing: readonly MissingValue[]
}

export class SecretStore {
  readonly #form: SecretForm
  readonly #shared: string
  readonly #values = new Map<string, Map<string, string>>()
  readonly #missing: MissingValue[] = []

  /** `group` names the one Secret of form env. */
  constructor(form: SecretForm, group: string) {
    this.#form = form
    this.#shared = `${group}-secrets`
  }

  /** Keeps a value for a server under a key that is not yet used; a text with open references waits to be filled in. */
  put(server: string, wanted: string, value: Value): SecretKey {
    const name = this.#form === 'env' ? this.#shared : `${server}-secrets`
    const values = this.#values.get(name) ?? new Map<string, string>()
    this.#values.set(name, values)
    const key = freeKey(this.#form === 'env' ? envName(`${server}_${wanted}`) : keyOf(wanted), values)
    const open = referencesIn(value)
    values.set(key, literalOf(value) ?? templateOf(value))
    if (open.length > 0) this.#missing.push({ name, key, variables: open.map((one) => one.name) })
    return { name, key }
  }

  /** Drops what a server put here, because it is not taken after all. */
  forget(keys: readonly SecretKey[]): void {
    for (const { name, key } of keys) {
      this.#values.get(name)?.delete(key)
      if (this.#values.get(name)?.size === 0) this.#values.delete(name)
      const index = this.#missing.findIndex((one) => one.name === name && one.key === key)
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

/** A reference alone is an empty value; within a text it shows what belongs there. */
function templateOf(value: Value): string {
  if (value.length === 1) return ''
  return value.map((part) => (typeof part === 'string' ? part : shownReference(part))).join('')
}

function shownReference({ name }: Reference): string {
  return `\${${name}}`
}

/** A key of a Secret has 253 characters at most; `freeKey` keeps cut ones apart and needs space for a number. */
function keyOf(name: string): string {
  return name.replaceAll(/[^-._a-zA-Z0-9]/g, '_').slice(0, 240) || 'value'
}

function freeKey(wanted: string, taken: ReadonlyMap<string, string>): string {
  for (let n = 1; ; n++) {
    const key = n === 1 ? wanted : `${wanted}_${n}`
    if (!taken.has(key)) return key
  }
}

function sorted(values: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...values].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
