/**
 * Fills the inputs of an entry: fixed values, `--set`, and defaults. A secret always becomes a reference, which the
 * manifest resolves from a Secret. Collects every missing and every invalid input.
 */
import { isSecret, type Reference, tokenIn, type Value } from '../../toolkit/clients/index.ts'
import type { EntryInput } from './entry.ts'

/** Values of `--set`, by input. An empty list selects a flag, or makes the input a secret. */
export type InputValues = ReadonlyMap<string, readonly string[]>

/** An input that the user can set. */
export interface KnownInput {
  readonly name: string
  readonly isSecret: boolean
  readonly isRequired: boolean
  readonly description: string | undefined
}

export class Inputs {
  /** Violations of the given values; each begins with the input's name. */
  readonly problems: string[] = []
  /** Required inputs without a value. */
  readonly missing: KnownInput[] = []
  readonly known = new Map<string, KnownInput>()
  readonly #given: InputValues

  constructor(given: InputValues) {
    this.#given = given
  }

  /** Returns the values of an input: none when it is optional and unset, several only when it is repeatable. */
  values(name: string, input: EntryInput, isRepeated = false): readonly Value[] {
    if (input.value !== undefined) return [this.#template(input.value, input.variables ?? {})]
    const given = this.#register(name, input)
    if (this.known.get(name)?.isSecret === true) return this.#secret(name, input, given)
    if (given !== undefined) {
      if (given.length === 0) this.#requireValue(name)
      else if (given.length > 1 && !isRepeated) this.problems.push(`${name}: can be set only once`)
      for (const text of given) this.#check(name, text, input)
      return given.map((text) => [text])
    }
    if (input.default !== undefined) return [[input.default]]
    this.#require(name, input)
    return []
  }

  /** True unless `--set` gives the argument a value. */
  isFlag(name: string, input: EntryInput): boolean {
    return (this.#register(name, input) ?? []).length === 0
  }

  /** True for a required flag, and for a flag that `--set` names without a value. */
  isSwitchedOn(name: string, input: EntryInput): boolean {
    return input.isRequired === true || this.#given.has(name)
  }

  /** Returns the text of a variable in a URL. Undefined when it has no value, which is then reported. */
  urlPart(name: string, input: EntryInput, { isHost }: { readonly isHost: boolean }): string | undefined {
    const given = this.#register(name, input)
    if (input.isSecret === true) {
      this.problems.push(`${name}: is a secret in the URL, which the manifest would contain`)
      return undefined
    }
    if (given?.length === 0) this.#requireValue(name)
    if (given !== undefined && given.length > 1) this.problems.push(`${name}: can be set only once`)
    const text = input.value ?? given?.[0] ?? (isHost ? undefined : input.default)
    if (text === undefined) {
      this.#require(name, { ...input, isRequired: true })
      return undefined
    }
    if (given !== undefined) this.#check(name, text, input)
    if (!/^[A-Za-z0-9._~-]{1,253}$/.test(text) || text === '.' || text === '..') {
      this.problems.push(`${name}: a value in a URL can contain only letters, digits and . _ ~ -`)
      return undefined
    }
    return text
  }

  #secret(name: string, input: EntryInput, given: readonly string[] | undefined): readonly Value[] {
    if (given !== undefined && given.length > 0) {
      this.problems.push(
        `${name}: is a secret, and other users of this machine can see the command line; put its value in the Secret`,
      )
      return []
    }
    return input.isRequired === true || given !== undefined ? [[reference(name)]] : []
  }

  /** Replaces `{name}` with the variable's value. Other text in braces is literal. */
  #template(text: string, variables: Readonly<Record<string, EntryInput>>): Value {
    const parts: (string | Reference)[] = []
    for (const piece of text.split(/(\{[^{}]*\})/)) {
      const name = /^\{(.*)\}$/.exec(piece)?.[1]
      const variable = name !== undefined && Object.hasOwn(variables, name) ? variables[name] : undefined
      if (name === undefined || variable === undefined) parts.push(piece)
      else parts.push(...(this.values(name, { ...variable, isRequired: true })[0] ?? []))
    }
    return parts.filter((part) => part !== '')
  }

  #register(name: string, input: EntryInput): readonly string[] | undefined {
    const given = this.#given.get(name)
    this.known.set(name, {
      name,
      isSecret: isSecretInput(name, input) || (given?.length === 0 && acceptsAnyText(input)),
      isRequired: input.isRequired === true,
      description: input.description,
    })
    return given
  }

  #requireValue(name: string): void {
    this.problems.push(`${name}: requires a value, as in --set ${name}=VALUE`)
  }

  #require(name: string, input: EntryInput): void {
    if (input.isRequired !== true || this.missing.some((one) => one.name === name)) return
    this.missing.push({ name, isSecret: false, isRequired: true, description: input.description })
  }

  #check(name: string, text: string, { choices, format }: EntryInput): void {
    if (tokenIn(text))
      this.problems.push(
        `${name}: the value contains a token, which registry.lock would store; use --set ${name} without a value, and put the value in the Secret`,
      )
    if (choices && choices.length > 0 && !choices.includes(text))
      this.problems.push(`${name}: must be one of: ${choices.join(', ')}`)
    if (format === 'number' && !/^-?\d+(?:\.\d+)?$/.test(text))
      this.problems.push(`${name}: must be a number`)
    if (format === 'boolean' && text !== 'true' && text !== 'false')
      this.problems.push(`${name}: must be true or false`)
  }
}

/** True for declared secrets, and for names such as API_KEY, because authors forget the declaration. */
function isSecretInput(name: string, input: EntryInput): boolean {
  return input.isSecret === true || (input.value === undefined && isSecret(name, 'value'))
}

/** True for an input whose value can be a secret, even if the entry does not declare it. */
function acceptsAnyText({ format = 'string', choices = [] }: EntryInput): boolean {
  return format === 'string' && choices.length === 0
}

function reference(name: string): Reference {
  return { kind: 'input', name }
}
