/**
 * Serializes argument values for paths, queries, headers and forms. Everything except letters, digits and `~_.-` is
 * percent-encoded, so no value can affect other parts of the request.
 * Source: OpenAPI 3.1.1, "Style Values"; RFC 6570, section 3.2.
 */
import { GatehouseError } from '../../errors.ts'
import { headerValueViolation } from '../../headers.ts'
import { isRawJson } from '../../json/exact-json.ts'
import { isFields } from '../../validation/fields.ts'
import type { RequestInput } from '../model.ts'
import { pathValueViolation } from './path-value.ts'

/** Returns the error INVALID_PARAMS for a value that violates a rule of its input. */
export function invalidArgument({ argument }: RequestInput, rule: string): GatehouseError {
  const shown = JSON.stringify(argument.slice(0, 80))
  return new GatehouseError('INVALID_PARAMS', { detail: `invalid argument ${shown}: ${rule}` })
}

/** Returns the encoded text that replaces a path parameter in the template. */
export function pathText(input: RequestInput, value: unknown): string {
  const { style, explode } = input
  const prefix = style === 'label' ? '.' : ''
  const encoded = (text: string): string => {
    const violation = pathValueViolation(text)
    if (violation !== undefined) throw invalidArgument(input, violation)
    return encode(text)
  }
  const separator = style === 'label' && explode ? '.' : style === 'matrix' && explode ? ';' : ','
  const name = encode(input.name)
  const parts = partsOf(input, value)
  if (parts.kind === 'members') {
    if (parts.members.length === 0) throw invalidArgument(input, 'must not be empty')
    const text = parts.members
      .map(([key, member]) => `${encoded(key)}${explode ? '=' : ','}${encoded(member)}`)
      .join(separator)
    return style === 'matrix' ? `;${explode ? text : `${name}=${text}`}` : `${prefix}${text}`
  }
  if (parts.items.length === 0) throw invalidArgument(input, 'must not be empty')
  const items = parts.items.map(encoded)
  if (style !== 'matrix') return `${prefix}${items.join(separator)}`
  return explode ? items.map((item) => `;${name}=${item}`).join('') : `;${name}=${items.join(',')}`
}

/** An encoded name and an encoded value of a query or a form. */
export type EncodedPair = readonly [name: string, value: string]

/**
 * `reserved` contains lowercase names that an object's members must not have, such as the names of the other
 * parameters.
 */
export function queryPairs(
  input: RequestInput,
  value: unknown,
  reserved: ReadonlySet<string>,
): readonly EncodedPair[] {
  const { style, explode } = input
  const name = encode(input.name)
  const encoded = (text: string): string => {
    if (!text.isWellFormed()) throw invalidArgument(input, 'must be valid Unicode')
    return input.allowReserved ? encodeReserved(text) : encode(text)
  }
  const parts = partsOf(input, value)
  if (parts.kind === 'items') {
    if (style === 'json' || !parts.isList) return parts.items.map((item) => [name, encoded(item)])
    if (style === 'deepObject') return parts.items.map((item) => [`${name}%5B%5D`, encoded(item)])
    if (explode) return parts.items.map((item) => [name, encoded(item)])
    return parts.items.length === 0 ? [] : [[name, parts.items.map(encoded).join(delimiterOf(input))]]
  }
  if (style === 'deepObject')
    return parts.members.map(([key, member]) => {
      if (/[[\]]/.test(key)) throw invalidArgument(input, 'must not contain names with brackets')
      refuseReserved(input, `${input.name}[${key}]`, reserved)
      return [`${name}%5B${encode(key)}%5D`, encoded(member)]
    })
  if (explode) {
    for (const [key] of parts.members) refuseReserved(input, key, reserved)
    return parts.members.map(([key, member]) => [encode(key), encoded(member)])
  }
  const flat = parts.members.flatMap(([key, member]) => [encode(key), encoded(member)])
  return flat.length === 0 ? [] : [[name, flat.join(delimiterOf(input))]]
}

function refuseReserved(input: RequestInput, name: string, reserved: ReadonlySet<string>): void {
  if (mayMean(name, reserved))
    throw invalidArgument(input, `must not contain ${JSON.stringify(name.slice(0, 80))}`)
}

/**
 * True if a server could interpret `name` as one of the parameters, whose names are in lower case. Some servers
 * ignore case, and some treat `a[]` and `a[b]` as `a`.
 */
export function mayMean(name: string, parameters: ReadonlySet<string>): boolean {
  const lower = name.toLowerCase()
  return parameters.has(lower) || parameters.has(lower.split('[', 1)[0] ?? '')
}

export function headerText(input: RequestInput, value: unknown): string {
  const parts = partsOf(input, value)
  const text =
    parts.kind === 'items'
      ? parts.items.join(',')
      : parts.members.map(([key, member]) => `${key}${input.explode ? '=' : ','}${member}`).join(',')
  const violation = headerValueViolation(text)
  if (violation !== undefined) throw invalidArgument(input, violation)
  return text
}

function delimiterOf({ style }: RequestInput): string {
  return style === 'spaceDelimited' ? '%20' : style === 'pipeDelimited' ? '%7C' : ','
}

/** Limits for the value of a path, query or header parameter. Servers reject longer addresses and headers. */
const maxLength = 16_384
const maxParts = 1_000

type Parts =
  | { readonly kind: 'items'; readonly items: readonly string[]; readonly isList: boolean }
  | { readonly kind: 'members'; readonly members: readonly (readonly [string, string])[] }

/**
 * Splits a value into texts. Throws INVALID_PARAMS for nested lists and objects, because OpenAPI does not define their
 * form.
 */
function partsOf(input: RequestInput, value: unknown): Parts {
  const isScalar = typeof value !== 'object' || isRawJson(value)
  let length = 0
  const limited = (found: string): string => {
    length += found.length
    if (input.in !== 'body' && length > maxLength)
      throw invalidArgument(input, `must not have more than ${maxLength} characters`)
    return found
  }
  if (input.style === 'json' && !(isScalar && input.in === 'body'))
    return { kind: 'items', items: [limited(JSON.stringify(value) ?? '')], isList: false }
  const text = (part: unknown): string => {
    const found = scalarText(part)
    if (found === undefined)
      throw invalidArgument(input, 'must not contain null, nested lists or nested objects')
    return limited(found)
  }
  if (!isScalar && input.in !== 'body' && Object.keys(value ?? {}).length > maxParts)
    throw invalidArgument(input, `must not have more than ${maxParts} items or members`)
  if (Array.isArray(value)) return { kind: 'items', items: value.map(text), isList: true }
  if (!isFields(value) || isRawJson(value)) return { kind: 'items', items: [text(value)], isList: false }
  const members = Object.entries(value).filter(([, member]) => member !== null)
  for (const [key] of members) if (!key.isWellFormed()) throw invalidArgument(input, 'must be valid Unicode')
  return { kind: 'members', members: members.map(([key, member]) => [limited(key), text(member)]) }
}

function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined
  return isRawJson(value) ? value.rawJSON : undefined
}

/** Percent-encodes everything except `A-Za-z0-9_~.-`. The text must be well formed. */
function encode(text: string): string {
  let encoded = encodeURIComponent(text)
  for (const [character, escape] of escapes) encoded = encoded.replaceAll(character, escape)
  return encoded
}

/** Like `encode`, but keeps the reserved characters that cannot end a query value. Used for `allowReserved`. */
function encodeReserved(text: string): string {
  return encodeURIComponent(text).replaceAll(/%(?:2F|3A|3F|40|2C|3B|24)/g, decodeURIComponent)
}

/** The characters that `encodeURIComponent` keeps, except letters, digits and `~_.-`. */
const escapes = ['!', "'", '(', ')', '*'].map(
  (character) => [character, `%${character.charCodeAt(0).toString(16).toUpperCase()}`] as const,
)
