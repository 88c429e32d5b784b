/** Lists the guardrails that apply to a call, for operators. Scans no data. */
import type { Guardrails } from '../../../../schemas/index.ts'
import { compileMarks, delimitedBy } from './marks.ts'
import {
  type ActiveRule,
  type GuardrailAction,
  type Direction,
  rulesFor,
  type Subject,
  scopedRule,
} from './rules.ts'
import { compileSizes, limitsFor } from './sizes.ts'

/** Returns one line for each guardrail, in the order in which the guardrails are applied. */
export function explainGuardrails(guardrails: Guardrails | undefined, subject: Subject): readonly string[] {
  const { redact = [], sizes = [], mark = [] } = guardrails ?? {}
  const { hidden, delimited } = compileMarks(mark)
  const scanRules = [...hidden, ...redact.map(scopedRule)]
  const limits = limitsFor(compileSizes(sizes), subject)
  return (['arguments', 'results'] as const).flatMap((direction) => {
    const limit = limits[direction]
    const size = limit ? [`${direction}: ${limit.rule} (at most ${limit.bytes} bytes)`] : []
    const last = direction === 'results' ? delimitedBy(delimited, subject) : []
    return [...size, ...linesOf([...rulesFor(scanRules, direction, subject), ...last], direction)]
  })
}

function linesOf(rules: readonly ActiveRule[], direction: Direction): readonly string[] {
  return rules.map(({ name, action, except }) => {
    const left = except.length > 0 ? ', with exceptions by pointer' : ''
    return `${direction}: ${name} (${actionNames[action] ?? action}${left})`
  })
}

const actionNames: Readonly<Partial<Record<GuardrailAction, string>>> = {
  mark: 'hidden characters are made visible',
  strip: 'hidden characters are removed',
  escape: 'delimiters',
}
