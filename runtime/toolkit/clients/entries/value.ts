/** A string with references to variables, parsed in the client's syntax. Anything else in the string is literal. */
import type { VariableSyntax } from '../catalog/client-row.ts'

export interface Reference {
  /**
   * env: a variable in the client's environment. input: a value that the user enters. file: the contents of a file.
   * place: a value that only the client can resolve, such as the open folder.
   */
  readonly kind: 'env' | 'input' | 'file' | 'home' | 'place'
  readonly name: string
  /** Default value if the variable is not set. */
  readonly fallback?: string
}

/** Literal strings and references in order. */
export type Value = readonly (string | Reference)[]

/** `any` is for unknown clients' files and combines all syntaxes that do not conflict. */
export type ReadSyntax = VariableSyntax | 'any'

const braces = String.raw`\$\{(?<env>[A-Za-z_]\w*)(?::-(?<fallback>[^}]*))?\}`
const prefixed = String.raw`\$\{(?<kind>env|input|file|command|config):(?<name>[^}]+)\}|\$\{(?<place>workspaceFolder|workspaceRoot|workspaceFolderBasename|userHome|pathSeparator|extensionInstallFolder)(?::[^}]*)?\}`
const dollar = String.raw`\$(?<bare>[A-Za-z_]\w*)`
const bareBraces = String.raw`\{(?<kind>env|file):(?<name>[^}]+)\}`

const patterns: Readonly<Record<ReadSyntax, RegExp | undefined>> = {
  none: undefined,
  braces: new RegExp(braces, 'g'),
  dollar: new RegExp(`${braces}|${dollar}`, 'g'),
  prefixed: new RegExp(prefixed, 'g'),
  'bare-braces': new RegExp(bareBraces, 'g'),
  any: new RegExp(`${prefixed}|${braces}`, 'g'),
}

export function parseValue(text: string, syntax: ReadSyntax): Value {
  const pattern = patterns[syntax]
  if (!pattern) return text === '' ? [] : [text]
  const parts: (string | Reference)[] = []
  let at = 0
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) parts.push(text.slice(at, match.index))
    parts.push(referenceOf(match.groups ?? {}))
    at = match.index + match[0].length
  }
  if (at < text.length) parts.push(text.slice(at))
  return parts
}

function referenceOf(groups: Readonly<Record<string, string | undefined>>): Reference {
  const { env, fallback, bare, kind, name = '', place } = groups
  if (place === 'userHome') return { kind: 'home', name: place }
  if (place !== undefined) return { kind: 'place', name: place }
  if (kind === 'input' || kind === 'file') return { kind, name }
  if (kind === 'command' || kind === 'config') return { kind: 'place', name: `${kind}:${name}` }
  return { kind: 'env', name: env ?? bare ?? name, ...(fallback !== undefined && { fallback }) }
}

/** Returns the text if it does not contain a reference. */
export function literalOf(value: Value): string | undefined {
  return value.every((part) => typeof part === 'string') ? value.join('') : undefined
}

export function referencesIn(value: Value): readonly Reference[] {
  return value.filter((part) => typeof part !== 'string')
}

/** Splits a literal string at the first match. Returns undefined when there is no match. */
export function splitValue(value: Value, separator: RegExp): readonly [Value, Value] | undefined {
  for (const [index, part] of value.entries()) {
    if (typeof part !== 'string') continue
    const match = separator.exec(part)
    if (!match) continue
    const before = part.slice(0, match.index)
    const after = part.slice(match.index + match[0].length)
    return [
      [...value.slice(0, index), ...(before ? [before] : [])],
      [...(after ? [after] : []), ...value.slice(index + 1)],
    ]
  }
  return undefined
}

/** Replaces references that `lookup` resolves. Keeps all other references. */
export function fillValue(value: Value, lookup: (reference: Reference) => Value | undefined): Value {
  const filled = value.flatMap((part) => (typeof part === 'string' ? [part] : (lookup(part) ?? [part])))
  const parts: (string | Reference)[] = []
  for (const part of filled) {
    const last = parts.at(-1)
    if (typeof part === 'string' && typeof last === 'string') parts[parts.length - 1] = last + part
    else parts.push(part)
  }
  return parts
}

/**
 * Returns the words of a command line in a single string, such as `npx -y package`. A string that begins with a path is
 * one word, because a path may contain spaces.
 */
export function commandWords(value: Value): readonly Value[] {
  const [first] = value
  if (
    typeof first !== 'string' ||
    !/^\s*(?:[\w.@-]+|"[^"]*")\s+\S/.test(`${first}${value.length > 1 ? 'x' : ''}`)
  )
    return [value]
  const words: (string | Reference)[][] = [[]]
  let isQuoted = false
  for (const part of value) {
    if (typeof part !== 'string') {
      words.at(-1)?.push(part)
      continue
    }
    for (const [piece] of part.matchAll(/"|\s+|[^"\s]+/g)) {
      if (piece === '"') {
        isQuoted = !isQuoted
        // Empty quotes represent an empty word.
        words.at(-1)?.push('')
      } else if (!isQuoted && piece.trim() === '') words.push([])
      else words.at(-1)?.push(piece)
    }
  }
  return words.filter((word) => word.length > 0).map((word) => fillValue(word, () => undefined))
}
