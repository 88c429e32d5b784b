/**
 * Turns JSON values into Cedar values.
 *
 * Cedar has whole numbers of 64 bits, decimals of four digits, and nothing for null. What cannot be said in Cedar is
 * answered with undefined, and whoever asked must then not decide as if the value had not been there.
 * Source: spec document 3, incomingAuth.authz; Cedar, entity JSON format.
 */
import type { Value } from './cedar.ts'

/** Objects and lists nested deeper are not converted. */
const MAX_DEPTH = 10
const MIN_LONG = -(2n ** 63n)
const MAX_LONG = 2n ** 63n - 1n
/** Beyond this a decimal does not fit into 64 bits. */
const MAX_DECIMAL = 922_337_203_685_477

/** Members by which Cedar recognises entities and extension values: they must not come from outside. */
const ESCAPES: ReadonlySet<string> = new Set(['__entity', '__extn', '__expr'])

/** The Cedar value; undefined when there is none. Null is for the caller to leave out. */
export function toCedar(value: unknown, depth = 0): Value | undefined {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? value : undefined
    case 'boolean':
      return value
    case 'number':
      return numberToCedar(value)
    case 'object':
      if (value === null || depth >= MAX_DEPTH) return undefined
      return Array.isArray(value) ? listToCedar(value, depth) : objectToCedar(value, depth)
    default:
      return undefined
  }
}

function listToCedar(list: readonly unknown[], depth: number): Value | undefined {
  const values: Value[] = []
  for (const item of list) {
    const value = toCedar(item, depth + 1)
    if (value === undefined) return undefined
    values.push(value)
  }
  return values
}

function objectToCedar(object: object, depth: number): Value | undefined {
  const members: [string, Value][] = []
  for (const [name, item] of Object.entries(object) as [string, unknown][]) {
    if (item === null) continue
    const value = toCedar(item, depth + 1)
    if (value === undefined || ESCAPES.has(name) || !name.isWellFormed()) return undefined
    members.push([name, value])
  }
  return Object.fromEntries(members)
}

/** Whole numbers are Longs, others decimals rounded to four digits. */
function numberToCedar(value: number): Value | undefined {
  // Adding zero makes a plain zero of minus zero.
  if (Number.isInteger(value)) return Number.isSafeInteger(value) ? value + 0 : undefined
  if (!(Math.abs(value) < MAX_DECIMAL)) return undefined
  return { __extn: { fn: 'decimal', arg: value.toFixed(4) } }
}

/** A number as it was sent: whole numbers keep all their digits. */
export function numberTextToCedar(text: string): Value | undefined {
  if (!/^-?\d{16,19}$/.test(text)) return numberToCedar(Number(text))
  const long = BigInt(text)
  if (long < MIN_LONG || long > MAX_LONG) return undefined
  return exactNumber(String(long))
}

interface RawJson {
  rawJSON(text: string): Value
}

/** A number that stays as it is on its way into the engine, which is JSON text. */
function exactNumber(text: string): Value {
  return (JSON as unknown as RawJson).rawJSON(text)
}
