/** Guardrail checks that JSON Schema cannot express: expressions that cannot be used, and settings that never match. */
import type { RedactRule } from '../generated/types.ts'
import { PatternError } from '../workflow/pattern.ts'
import { fieldsOf, listOf } from '../validation/fields.ts'
import { below, type Violation } from '../validation/violations.ts'
import { LinearExpression } from './expression.ts'

/**
 * Maximum total number of instructions in all expressions. Each instruction costs time to check, to compile, and to run
 * on each character of the text.
 */
const maxTotalSize = 5_000

/** Size assumed for an expression that cannot be used. */
const unusableSize = 100

/**
 * Returns the violations of `guardrails`, which must have passed the schema. `path` is its location in the document.
 */
export function guardrailViolations(guardrails: unknown, path: string): readonly Violation[] {
  let left = maxTotalSize
  const expressions = rulesIn(guardrails, path, ['redact']).flatMap(({ rule, at }) =>
    listOf(rule['expressions']).flatMap((source, i) => {
      if (typeof source !== 'string' || left < 0) return []
      const checked = checkOf(source)
      left -= typeof checked === 'number' ? checked : unusableSize
      const isTooMuch = typeof checked === 'number' && left < 0
      const problem = isTooMuch ? 'the expressions of all rules up to this one are too large' : checked
      if (typeof problem === 'number') return []
      return [{ path: below(below(at, 'expressions'), i), message: `cannot be used: ${problem}` }]
    }),
  )
  return [...namesTwice(guardrails, path), ...expressions]
}

/**
 * Logs and metrics identify rules by name only. The schema checks uniqueness within one list; this check covers all
 * lists.
 */
function namesTwice(guardrails: unknown, path: string): readonly Violation[] {
  const known = new Map<unknown, string>()
  return rulesIn(guardrails, path, allLists).flatMap(({ rule, at, list }) => {
    const other = known.get(rule['name'])
    known.set(rule['name'], other ?? list)
    if (other === undefined || other === list) return []
    return [{ path: below(at, 'name'), message: `duplicate name: a rule in ${other} has the same name` }]
  })
}

/** Returns the size of an expression, or an error message. */
function checkOf(source: string): number | string {
  try {
    return new LinearExpression(source, { checksOnly: true }).size
  } catch (error) {
    if (error instanceof PatternError) return error.message
    throw error
  }
}

/**
 * Warns about valid settings that have no effect: limits that no result can reach, and exceptions for values that the
 * rule does not cover. `maxResultBytes` is the limit from `operational` in the same configuration.
 */
export function guardrailWarnings(
  guardrails: unknown,
  path: string,
  maxResultBytes: number | undefined,
): readonly Violation[] {
  return [...idleExceptions(guardrails, path), ...idleSizes(guardrails, path, maxResultBytes)]
}

function idleSizes(guardrails: unknown, path: string, most = Number.POSITIVE_INFINITY): Violation[] {
  return listOf(fieldsOf(guardrails)['sizes']).flatMap((rule, i) => {
    const given = fieldsOf(rule)['maxResultBytes']
    if (typeof given !== 'number' || given <= most) return []
    const message = `exceeds operational.maxResultBytes (${most}), so the rule never applies`
    return [{ path: `${below(below(path, 'sizes'), i)}.maxResultBytes`, message }]
  })
}

function idleExceptions(guardrails: unknown, path: string): readonly Violation[] {
  return rulesIn(guardrails, path, allLists).flatMap(({ rule, at }) => {
    const match = fieldsOf(rule['match'])
    const { direction = 'results' } = rule as Partial<RedactRule>
    return listOf(rule['except']).flatMap((given, i) => {
      const exception = fieldsOf(given)
      const place = below(below(at, 'except'), i)
      return [
        ...(['backends', 'tools'] as const)
          .filter((member) => isApart(match[member], exception[member]))
          .map((member) => ({
            path: below(place, member),
            message: `none of these names is in match.${member}: the exception has no effect`,
          })),
        ...listOf(exception['pointers']).flatMap((pointer, k) =>
          isElsewhere(String(pointer), direction)
            ? [
                {
                  path: below(below(place, 'pointers'), k),
                  message: `the rule applies to ${direction} only: the exception has no effect`,
                },
              ]
            : [],
        ),
      ]
    })
  })
}

function isApart(wanted: unknown, excepted: unknown): boolean {
  if (!Array.isArray(wanted) || !Array.isArray(excepted)) return false
  return !excepted.some((one) => wanted.includes(one))
}

/** True when a rule for results refers to a member that only params have, or vice versa. */
function isElsewhere(pointer: string, direction: string): boolean {
  const [, first = ''] = pointer.split('/')
  if (direction === 'results') return first === 'arguments'
  return direction === 'arguments' && ['content', 'structuredContent', 'contents', 'messages'].includes(first)
}

const allLists = ['redact', 'sizes', 'mark'] as const

function rulesIn(guardrails: unknown, path: string, lists: readonly (typeof allLists)[number][]) {
  return lists.flatMap((list) => {
    const at = below(path, list)
    return listOf(fieldsOf(guardrails)[list]).map((rule, i) => ({
      list,
      rule: fieldsOf(rule),
      at: below(at, i),
    }))
  })
}
