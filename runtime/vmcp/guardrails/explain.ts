/** Which guardrails concern a call, for operators. Nothing is looked through. */
import type { Guardrails } from '../../../schemas/index.ts'
import { type CompiledRule, type Direction, rulesFor, type Subject, uncompiledRules } from './rules.ts'
import { compileSizes, limitsFor } from './sizes.ts'

/** One line for each, in the order in which they act. */
export function explainGuardrails(guardrails: Guardrails | undefined, subject: Subject): readonly string[] {
  const rules = uncompiledRules(guardrails?.redact ?? [])
  const limits = limitsFor(compileSizes(guardrails?.sizes ?? []), subject)
  return (['arguments', 'results'] as const).flatMap((direction) => {
    const limit = limits[direction]
    const size = limit ? [`${direction}: ${limit.rule} (at most ${limit.bytes} bytes)`] : []
    return [...size, ...linesOf(rules, direction, subject)]
  })
}

function linesOf(rules: readonly CompiledRule[], direction: Direction, subject: Subject): readonly string[] {
  return rulesFor(rules, direction, subject).map(({ name, action, except }) => {
    const left = except.length > 0 ? ', with exceptions by pointer' : ''
    return `${direction}: ${name} (${action}${left})`
  })
}
