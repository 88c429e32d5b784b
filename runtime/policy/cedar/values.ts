/**
 * Turns JSON values into Cedar values.
 *
 * Cedar has whole numbers of 64 bits, decimals of four digits, and nothing for null. What cannot be said in Cedar is
 * answered with undefined, and whoever asked must then not decide as if the value had not been there.
 * Source: docs/specification/virtual-server.md#incomingAuth, incomingAuth.authz; Cedar, entity JSON format.
 */
import { isRawJson } from '../../../schemas/index.ts'
import type { CedarValue } from '../../../schemas/cedar/index.ts'

/** Objects and lists nested deeper are not converted. */
const maxDepth = 10
/** Longer texts are not converted. */
export const maxTextLength = 64 * 1024
/** Characters of a text times those of all patterns: the engine takes about 3 ns for each where they almost match. */
const maxCompared = 4_000_000
/** Texts up to here are told whatever the patterns are. */
const minText = 2048
const minLong = -(2n ** 63n)
const maxLong = 2n ** 63n - 1n
/** Beyond this a decimal does not fit into 64 bits. */
const maxDecimal = 922_337_203_685_477

/** Members by which Cedar recognises entities and extension values: they must not come from outside. */
const escapeMembers: ReadonlySet<string> = new Set(['__entity', '__extn', '__expr'])

/** How much the policies see of one caller, or of one call: what is beyond it counts as what Cedar cannot hold. */
export class Budget {
  readonly #maxText: number
  #characters = 2 * maxTextLength

  constructor(maxText = maxTextLength) {
    this.#maxText = maxText
  }

  /** False when a text of this length is too much. Every value counts, whatever its length. */
  take(length: number): boolean {
    if (length > this.#maxText) return false
    this.#characters -= length + 8
    return this.#characters >= 0
  }
}

/** The longest text of a request that policies with patterns of so many characters are told. */
export function longestText(patternLength: number): number {
  return Math.min(maxTextLength, Math.max(minText, Math.floor(maxCompared / Math.max(1, patternLength))))
}

/** The Cedar value; undefined when there is none. Null is for the caller to leave out. */
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

/** Whole numbers are Longs, others decimals rounded to four digits. */
function numberToCedar(value: number): CedarValue | undefined {
  // Adding zero makes a plain zero of minus zero.
  if (Number.isInteger(value)) return Number.isSafeInteger(value) ? value + 0 : undefined
  if (!(Math.abs(value) < maxDecimal)) return undefined
  return { __extn: { fn: 'decimal', arg: value.toFixed(4) } }
}

/** A number as it was sent: whole numbers keep all their digits. */
export function numberTextToCedar(text: string): CedarValue | undefined {
  if (!/^-?\d{16,19}$/.test(text)) return numberToCedar(Number(text))
  const long = BigInt(text)
  if (long < minLong || long > maxLong) return undefined
  return exactNumber(String(long))
}

interface RawJson {
  rawJSON(text: string): CedarValue
}

/** A number that stays as it is on its way into the engine, which is JSON text. */
function exactNumber(text: string): CedarValue {
  return (JSON as unknown as RawJson).rawJSON(text)
}
