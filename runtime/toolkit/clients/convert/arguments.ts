/**
 * Replaces secrets in a program's arguments with variables.
 *
 * Kubernetes expands `$(NAME)` in a podTemplateSpec, and `gatehouse dev` in a local command, so a secret argument
 * becomes a variable from a Secret. Recognizes flags, assignments, headers, URLs and known tokens.
 */
import { envName } from '../../../../schemas/index.ts'
import { literalOf, type Reference, type Value } from '../entries/value.ts'
import { isSecretName, secretInUrl, tokenIn } from './secrets.ts'

export interface ConvertedArguments {
  /** The arguments with `$(NAME)` instead of secrets. A literal `$(` is escaped; see escapeReferences. */
  readonly args: readonly string[]
  /** The unchanged arguments, when they contain no secret. */
  readonly literal: readonly string[] | undefined
  /** Variables that the arguments refer to, with their values. */
  readonly variables: ReadonlyMap<string, Value>
  /** One-based positions of the arguments that contain a secret. */
  readonly positions: readonly number[]
}

/** `usedNames` contains the variable names that are already in use. `keep` leaves secrets in the arguments. */
export function convertArguments(
  args: readonly Value[],
  usedNames: ReadonlySet<string>,
  keep: boolean,
): ConvertedArguments {
  const variables = new Map<string, Value>()
  const positions: number[] = []
  const converted = args.map((value, index) => {
    const text = literalOf(value)
    if (text === undefined) return value.map((part) => variableReference(part, variables, usedNames)).join('')
    const secret = keep ? undefined : secretIn(text, literalOf(args[index - 1] ?? []) ?? '')
    if (!secret) return escapeReferences(text)
    positions.push(index + 1)
    const name = freeName(secret.name ?? `ARG_${index + 1}`, new Set([...usedNames, ...variables.keys()]))
    variables.set(name, [text.slice(secret.start, secret.end)])
    return `${escapeReferences(text.slice(0, secret.start))}$(${name})${escapeReferences(text.slice(secret.end))}`
  })
  const literal = variables.size > 0 ? undefined : args.map((value) => literalOf(value) ?? '')
  return { args: converted, literal, variables, positions }
}

/** Converts a reference to `$(NAME)` if the server has a variable with the same value. */
function variableReference(
  part: string | Reference,
  variables: Map<string, Value>,
  usedNames: ReadonlySet<string>,
): string {
  if (typeof part === 'string') return escapeReferences(part)
  const known = [...variables].find(([, value]) => value.length === 1 && value[0] === part)?.[0]
  const name = known ?? freeName(envName(part.name), new Set([...usedNames, ...variables.keys()]))
  variables.set(name, [part])
  return `$(${name})`
}

/** Escapes `$(NAME)` and a trailing `$`, so that Kubernetes keeps the text unchanged. */
export function escapeReferences(text: string): string {
  return /\$(?:[$(]|$)/.test(text) ? text.replaceAll('$', '$$$$') : text
}

interface SecretRange {
  readonly start: number
  readonly end: number
  /** Suggested variable name. */
  readonly name: string | undefined
}

/** Returns the secret in an argument. `before` is the preceding argument. */
function secretIn(text: string, before: string): SecretRange | undefined {
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

function afterName(text: string, pattern: RegExp): SecretRange | undefined {
  const match = pattern.exec(text)
  if (!match || match[0].length === text.length) return undefined
  return { start: match[0].length, end: text.length, name: envName(match[1] ?? '') }
}

function withoutName(found: { start: number; end: number } | undefined): SecretRange | undefined {
  return found && { ...found, name: undefined }
}

/** A URL that contains a secret becomes one variable, because its parts may be encoded. */
function urlSecret(text: string, from: number): SecretRange | undefined {
  const url = text.slice(from)
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(url) || !URL.canParse(url)) return undefined
  return secretInUrl(new URL(url)) === undefined
    ? undefined
    : { start: from, end: text.length, name: undefined }
}

function freeName(wanted: string, usedNames: ReadonlySet<string>): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? wanted : `${wanted}_${n}`
    if (!usedNames.has(name)) return name
  }
}
