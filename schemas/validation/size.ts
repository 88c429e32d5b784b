/**
 * Limits the size of documents before validation, because validators visit every value and report every error. Rejects
 * numbers that a double would round.
 *
 * The limits are far above the size of real documents (a rendered configuration is 240 KiB) and far below sizes that
 * take too long or overflow the stack.
 */
import { isRawJson, roundedNumber } from '../json/exact-json.ts'
import { isFields } from './fields.ts'
import { below, type Violation } from './violations.ts'

export interface SizeLimits {
  /** Maximum number of objects, lists and scalars. */
  readonly values: number
  /** Maximum number of items in one list and of members in one object. */
  readonly members: number
  /** Maximum total length of all strings and names, in characters. */
  readonly characters: number
}

/** The API server stores at most 1.5 MiB per object. */
export const manifestSize: SizeLimits = { values: 20_000, members: 2_000, characters: 1_500_000 }
/** Limits for files, which are trusted because hooks or the operator write them. */
export const runtimeSize: SizeLimits = { values: 100_000, members: 5_000, characters: 8_000_000 }

const maxDepth = 200

const maxRounded = 20

/**
 * Returns a violation for the first part that is too large. Otherwise, returns violations for the first 20 numbers that
 * a double would round.
 */
export function boundsViolations(document: unknown, limits: SizeLimits): readonly Violation[] {
  const rounded: Violation[] = []
  let values = 0
  let characters = 0
  const path: (string | number)[] = []

  /**
   * Returns the first violation or undefined. If the violation concerns a single value, `path` then points to that
   * value.
   */
  function visit(value: unknown): Violation | undefined {
    values += 1
    if (values > limits.values) return { path: '', message: `contains more than ${limits.values} values` }
    if (path.length > maxDepth) return { path: '', message: `is nested more than ${maxDepth} levels deep` }
    if (typeof value === 'string') characters += value.length
    if (characters > limits.characters)
      return { path: '', message: `contains more than ${limits.characters} characters` }
    if (Array.isArray(value)) return tooMany(value.length, 'items') ?? visitAll(value.entries())
    if (!isFields(value)) return undefined
    if (isRawJson(value)) {
      if (rounded.length < maxRounded)
        rounded.push({ path: path.reduce<string>(below, ''), message: roundedNumber(value.rawJSON) })
      return undefined
    }
    const members = Object.entries(value)
    for (const [name] of members) characters += name.length
    return tooMany(members.length, 'members') ?? visitAll(members)
  }

  function visitAll(members: Iterable<readonly [string | number, unknown]>): Violation | undefined {
    for (const [key, member] of members) {
      path.push(key)
      const violation = visit(member)
      if (violation) return violation
      path.pop()
    }
    return undefined
  }

  function tooMany(count: number, what: string): Violation | undefined {
    if (count <= limits.members) return undefined
    const message = `has ${count} ${what}; at most ${limits.members} are allowed`
    return { path: path.reduce<string>(below, ''), message }
  }

  const oversize = visit(document)
  return oversize ? [oversize] : rounded
}
