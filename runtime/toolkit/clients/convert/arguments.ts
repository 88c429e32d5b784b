/**
 * Secrets among the arguments of a program: where they are, and the variable that takes their place.
 *
 * Kubernetes puts `$(NAME)` in place in a podTemplateSpec, `gatehouse dev` in a local command, so a secret argument
 * becomes a variable from a Secret. Flags, assignments, headers, URLs and known tokens are recognised.
 */
import { envName } from '../../../../schemas/index.ts'
import { literalOf, type Reference, type Value } from '../entries/value.ts'
import { isSecretName, secretInUrl, tokenIn } from './secrets.ts'

export interface ConvertedArguments {
  /** With `$(NAME)` for what moved away; a literal `$(` is escaped. */
  readonly args: readonly string[]
  /** As they are, when nothing moved away. */
  readonly literal: readonly string[] | undefined
  /** Variables that the arguments need, with what they hold. */
  readonly variables: ReadonlyMap<string, Value>
  /** One-based positions of the arguments that held a secret. */
  readonly positions: readonly number[]
}

/** `taken`: names that the environment has already. `keep`: secrets stay where they are. */
export function convertArguments(
  args: readonly Value[],
  taken: ReadonlySet<string>,
  keep: boolean,
): ConvertedArguments {
  const variables = new Map<string, Value>()
  const positions: number[] = []
  const converted = args.map((value, index) => {
    const text = literalOf(value)
    if (text === undefined) return value.map((part) => pieceOf(part, variables, taken)).join('')
    const secret = keep ? undefined : secretIn(text, literalOf(args[index - 1] ?? []) ?? '')
    if (!secret) return escaped(text)
    positions.push(index + 1)
    const name = freeName(secret.name ?? `ARG_${index + 1}`, new Set([...taken, ...variables.keys()]))
    variables.set(name, [text.slice(secret.start, secret.end)])
    return `${escaped(text.slice(0, secret.start))}$(${name})${escaped(text.slice(secret.end))}`
  })
  const literal = variables.size > 0 ? undefined : args.map((value) => literalOf(value) ?? '')
  return { args: converted, literal, variables, positions }
}

/** A reference becomes one to a variable of the server that holds the same. */
function pieceOf(
  part: string | Reference,
  variables: Map<string, Value>,
  taken: ReadonlySet<string>,
): string {
  if (typeof part === 'string') return escaped(part)
  const known = [...variables].find(([, value]) => value.length === 1 && value[0] === part)?.[0]
  const name = known ?? freeName(envName(part.name), new Set([...taken, ...variables.keys()]))
  variables.set(name, [part])
  return `$(${name})`
}

/** Escapes a text so that Kubernetes, which expands `$(NAME)`, leaves it as it is, also in front of `$(NAME)`. */
export function escaped(text: string): string {
  return /\$(?:[$(]|$)/.test(text) ? text.replaceAll('$', '$$$$') : text
}

interface Found {
  readonly start: number
  readonly end: number
  /** What the variable may be called. */
  readonly name: string | undefined
}

/** The secret in one argument; `before` is the argument in front of it. */
function secretIn(text: string, before: string): Found | undefined {
  const flag = /^--?([A-Za-z][\w-]*)$/.exec(before)?.[1]
  const isFlag = text.startsWith('-')
  const isHeaderFlag = flag !== undefined && /^(?:headers?|H)$/i.test(flag)
  if (isHeaderFlag) return afterName(text, /^([\w-]+):\s*/)
  if (flag !== undefined && isSecretName(flag) && !isFlag && text !== '') {
    return { start: 0, end: text.length, name: envName(flag) }
  }
  const assigned = /^(?:--?)?([A-Za-z][\w-]*)=/.exec(text)
  if (assigned && isSecretName(assigned[1] ?? '') && text.length > assigned[0].length) {
    return { start: assigned[0].length, end: text.length, name: envName(assigned[1] ?? '') }
  }
  const header = /^([A-Za-z][\w-]*):\s*/.exec(text)
  if (header && isSecretName(header[1] ?? '') && !text.startsWith('//', header[0].length)) {
    return afterName(text, /^([\w-]+):\s*/)
  }
  return urlSecret(text, assigned?.[0].length ?? 0) ?? withoutName(tokenIn(text))
}

function afterName(text: string, pattern: RegExp): Found | undefined {
  const match = pattern.exec(text)
  if (!match || match[0].length === text.length) return undefined
  return { start: match[0].length, end: text.length, name: envName(match[1] ?? '') }
}

function withoutName(found: { start: number; end: number } | undefined): Found | undefined {
  return found && { ...found, name: undefined }
}

/** A URL with a secret moves as a whole: its parts may be encoded in ways of their own. */
function urlSecret(text: string, from: number): Found | undefined {
  const url = text.slice(from)
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(url) || !URL.canParse(url)) return undefined
  return secretInUrl(new URL(url)) === undefined
    ? undefined
    : { start: from, end: text.length, name: undefined }
}

function freeName(wanted: string, taken: ReadonlySet<string>): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? wanted : `${wanted}_${n}`
    if (!taken.has(name)) return name
  }
}
