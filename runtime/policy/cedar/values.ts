/**
 * Converts JSON values to Cedar values.
 *
 * Cedar has 64-bit integers and decimals with four digits, but no null. A value without a Cedar representation becomes
 * undefined, and the caller must not treat such a value as absent.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, incomingAuth.authz; Cedar, entity JSON format.
 */
import { isRawJson } from '../../../schemas/index.ts'
import type { CedarValue } from '../../../schemas/cedar/index.ts'

/** Maximum nesting of converted objects and lists. */
const maxDepth = 10
/** Maximum length of converted strings. */
export const maxTextLength = 64 * 1024
/**
 * Maximum product of the string length and the total pattern length. The engine takes about 3 ns per unit for near
 * matches.
 */
const maxCompared = 4_000_000
/** Strings up to this length are always passed to policies. */
const minText = 2048
const minLong = -(2n ** 63n)
const maxLong = 2n ** 63n - 1n
/** Largest decimal that fits in 64 bits. */
const maxDecimal = 922_337_203_685_477

/** Members that Cedar interprets as entities or extension values. Untrusted data must not contain these members. */
const escapeMembers: ReadonlySet<string> = new Set(['__entity', '__extn', '__expr'])

/**
 * Limit on the data that policies receive about one caller or one call. Values that exceed the limit are treated as
 * having no Cedar representation.
 */
export class Budget {
  readonly #maxText: number
  #characters = 2 * maxTextLength

  constructor(maxText = maxTextLength) {
    this.#maxText = maxText
  }

  /**
   * Returns false when a string of this length exceeds the budget. Charges for every value, even an oversized value.
   */
  take(length: number): boolean {
    if (length > this.#maxText) return false
    this.#characters -= length + 8
    return this.#characters >= 0
  }
}

/** Returns the maximum length of the strings that are passed to policies whose patterns have this total length. */
export function longestText(patternLength: number): number {
  return Math.min(maxTextLength, Math.max(minText, Math.floor(maxCompared / Math.max(1, patternLength))))
}

/** Returns the Cedar value, or undefined. Callers must omit null values before the call. */
export function toCedar(value: unknown, budget: Budget, depth = 0): CedarValue | undefined {
  if (!budget.take(typeof value === 'string' ? value.length : 0)) return undefined
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? value : undefined
    case 'boolean':
      return value
    case 'number':
      return numberToCedar(value)
    case 'object':
      if (isRawJson(value)) return numberTextToCedar(value.rawJSON)
      if (value === null || depth >= maxDepth) return undefined
      return Array.isArray(value) ? listToCedar(value, budget, depth) : objectToCedar(value, budget, depth)
    default:
      return undefined
  }
}

function listToCedar(list: readonly unknown[], budget: Budget, depth: number): CedarValue | undefined {
  const values: CedarValue[] = []
  for (const item of list) {
    const value = toCedar(item, budget, depth + 1)
    if (value === undefined) return undefined
    values.push(value)
  }
  return values
}

function objectToCedar(object: object, budget: Budget, depth: number): CedarValue | undefined {
  const members: [string, CedarValue][] = []
  for (const [name, item] of Object.entries(object) as [string, unknown][]) {
    if (item === null) continue
    const value = toCedar(item, budget, depth + 1)
    if (value === undefined || escapeMembers.has(name) || !name.isWellFormed() || !budget.take(name.length))
      return undefined
    members.push([name, value])
  }
  return Object.fromEntries(members)
}

/** Whole numbers become Longs; other numbers become decimals rounded to four digits. */
function numberToCedar(value: number): CedarValue | undefined {
  // Adding zero converts -0 to 0.
  if (Number.isInteger(value)) return Number.isSafeInteger(value) ? value + 0 : undefined
  if (!(Math.abs(value) < maxDecimal)) return undefined
  return { __extn: { fn: 'decimal', arg: value.toFixed(4) } }
}

/** Converts a number from its original JSON text; integers keep all their digits. */
export function numberTextToCedar(text: string): CedarValue | undefined {
  if (!/^-?\d{16,19}$/.test(text)) return numberToCedar(Number(text))
  const long = BigInt(text)
  if (long < minLong || long > maxLong) return undefined
  return exactNumber(String(long))
}

interface RawJson {
  rawJSON(text: string): CedarValue
}

/** Wraps a number to keep its digits unchanged in the engine's JSON input. */
function exactNumber(text: string): CedarValue {
  return (JSON as unknown as RawJson).rawJSON(text)
}
