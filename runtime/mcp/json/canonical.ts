/**
 * Returns the same text for a JSON value, regardless of the value's formatting. Uses the JSON Canonicalization Scheme,
 * with exact decimals for numbers that a double cannot distinguish. Strings are not normalized, so strings that look
 * equal may differ.
 *
 * In a JSON Schema, the order of `required` has no meaning, so the elements of `required` are sorted. The order of all
 * other elements is significant.
 * Source: RFC 8785; JSON Schema 2020-12, core (applicators) and validation 6.5.3.
 */
import { openArray, openObject, quoteByte, readString } from './bytes.ts'
import { DuplicateMember, JsonError, maxDepth, maxMembers, tooManyMembers } from './errors.ts'
import { JsonScanner } from './scanner.ts'
import type { TurnWork } from './turns.ts'

export interface CanonicalOptions {
  /** True if the value is a JSON Schema. */
  readonly schema?: boolean
  readonly maxValues?: number
}

/** Number of values between two yields. */
const sliceValues = 2_000

/** Role of a value in a JSON Schema. */
type Role = 'data' | 'schema' | 'schemas' | 'required'

interface Frame {
  readonly role: Role
  /** The text of each array element. Undefined for an object. */
  readonly elements: string[] | undefined
  /** The members of an object. Undefined for an array. */
  readonly members: Map<string, string> | undefined
  name: string
}

/** Returns the canonical text. Throws JsonError for invalid JSON, for a duplicate member, or if a limit is exceeded. */
export function* canonicalText(bytes: Buffer, options: CanonicalOptions = {}): TurnWork<string> {
  const scanner = new JsonScanner({ watched: maxDepth + 1, values: options.maxValues })
  scanner.feed(bytes)
  const frames: Frame[] = []
  let from = 0
  let text = ''
  for (let stop = scanner.advance(); stop !== 'chunk'; stop = scanner.advance()) {
    const frame = frames.at(-1)
    if (stop === 'name') addName(scanner, frame)
    else if (stop === 'value') {
      if (scanner.values % sliceValues === sliceValues - 1) yield
      from = scanner.at
      const c = bytes[from]
      if (c !== openObject && c !== openArray) continue
      frames.push(frameOf(c === openObject, roleOf(frame, options.schema === true)))
    } else {
      const isContainer = frames.length > scanner.depth
      text = isContainer ? textOf(frames.pop()) : scalarText(bytes, from, scanner.at)
      add(frames.at(-1), text)
    }
  }
  if (!scanner.end()) throw new JsonError('unfinished value', bytes.length)
  // Only a number can extend to the end of the text.
  return text === '' ? scalarText(bytes, from, bytes.length) : text
}

function frameOf(isObject: boolean, role: Role): Frame {
  return {
    role,
    elements: isObject ? undefined : [],
    members: isObject ? new Map() : undefined,
    name: '',
  }
}

function addName({ name, at }: JsonScanner, frame: Frame | undefined): void {
  if (!frame?.members) return
  if (frame.members.has(name)) throw new DuplicateMember()
  if (frame.members.size === maxMembers) throw tooManyMembers(at)
  frame.name = name
}

function add(frame: Frame | undefined, text: string): void {
  if (frame?.elements) frame.elements.push(text)
  else frame?.members?.set(frame.name, text)
}

/** Concatenates with `+`, which does not copy any text until the result is read. */
function textOf(frame: Frame | undefined): string {
  const { role, elements, members } = frame ?? {}
  let text = ''
  if (elements) {
    const sorts = role === 'required' && elements.every((one) => one.startsWith('"'))
    for (const one of sorts ? elements.sort(byText) : elements) text += text === '' ? one : `,${one}`
    return `[${text}]`
  }
  for (const [name, value] of [...(members ?? [])].sort(([a], [b]) => byText(a, b)))
    text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`
  return `{${text}}`
}

/** Compares by UTF-16 code units, which is the order that RFC 8785 specifies for names. */
function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const schemaMaps: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
])
const schemaMembers: ReadonlySet<string> = new Set([
  'additionalItems',
  'additionalProperties',
  'allOf',
  'anyOf',
  'contains',
  'contentSchema',
  'else',
  'if',
  'items',
  'not',
  'oneOf',
  'prefixItems',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
])

/** Returns the role of a value that begins within `frame`. */
function roleOf(frame: Frame | undefined, schema: boolean): Role {
  if (!frame) return schema ? 'schema' : 'data'
  if (frame.elements) return frame.role === 'schema' ? 'schema' : 'data'
  if (frame.role === 'schemas') return 'schema'
  if (frame.role !== 'schema') return 'data'
  if (frame.name === 'required') return 'required'
  if (schemaMaps.has(frame.name)) return 'schemas'
  return schemaMembers.has(frame.name) ? 'schema' : 'data'
}

function scalarText(bytes: Buffer, from: number, to: number): string {
  const c = bytes[from]
  if (c === quoteByte) return JSON.stringify(readString(bytes, from, to))
  if (c === 0x74) return 'true'
  if (c === 0x66) return 'false'
  if (c === 0x6e) return 'null'
  return numberText(bytes.toString('latin1', from, to), from)
}

/**
 * Returns the RFC 8785 text of a number that a double represents exactly as written. Returns an exact decimal for any
 * other number.
 */
function numberText(raw: string, at: number): string {
  const exact = decimalOf(raw, at)
  const plain = Number(raw)
  if (!Number.isFinite(plain)) return exact
  const text = JSON.stringify(plain)
  return decimalOf(text, at) === exact ? text : exact
}

const numberForm = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
const maxExponentDigits = 12

/**
 * Returns `<sign><digits>E<exponent>`, with no leading or trailing zeros among the digits. Returns `0` for any zero.
 */
function decimalOf(raw: string, at: number): string {
  const match = numberForm.exec(raw)
  if (!match) throw new JsonError('number expected', at)
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  if (exponent.length > maxExponentDigits) throw new JsonError('exponent too long', at)
  const digits = withoutLeadingZeros(`${whole}${fraction}`)
  if (digits === '') return '0'
  const significant = withoutTrailingZeros(digits)
  const power = Number(exponent) - fraction.length + (digits.length - significant.length)
  return `${sign}${significant}E${power}`
}

function withoutLeadingZeros(digits: string): string {
  let from = 0
  while (digits[from] === '0') from++
  return digits.slice(from)
}

function withoutTrailingZeros(digits: string): string {
  let to = digits.length
  while (digits[to - 1] === '0') to--
  return digits.slice(0, to)
}
