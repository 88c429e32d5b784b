/**
 * Masks in what is recorded of calls: the audit log, spans and the console. By all rules, whatever their action, direction,
 * place and exceptions: a call may be recorded before it is known where it goes, and although it was refused.
 *
 * Works within the turn, so that there is little it may do for one record; what is left then is not recorded.
 */
import { atOnce, type TurnWork } from '../../../mcp/index.ts'
import type { MaskText } from '../../../observe/index.ts'
import { apart, type MaskedRange, RuleSearch, ScanLimit, withMasks } from './look/matches.ts'
import type { CompiledRule } from './rules.ts'

/** Some 10 ms. */
const maxSteps = 120_000
const leftOut = '[redacted]'

export function recordMask(rules: readonly CompiledRule[]): () => MaskText {
  // Shared by all records: one is masked after the other.
  const searches = rules.map(
    ({ settings: { name, action }, searched }) => new RuleSearch({ name, action, searched, except: [] }),
  )
  return () => {
    let steps = 0
    function spend(taken: number): TurnWork<void> {
      steps += taken
      if (steps > maxSteps) throw new ScanLimit('the record takes too long to look through')
      return nothing()
    }
    return (text) => {
      if (steps > maxSteps) return leftOut
      try {
        return masked(text, searches, spend)
      } catch {
        return leftOut
      }
    }
  }
}

function masked(
  text: string,
  searches: readonly RuleSearch[],
  spend: (taken: number) => TurnWork<void>,
): string {
  const ranges: MaskedRange[] = []
  for (const search of searches) {
    if (text.length < search.minLength) continue
    const { name: rule } = search.rule
    for (const range of atOnce(search.find([text], spend))) ranges.push({ ...range, rule })
  }
  return ranges.length === 0 ? text : withMasks(text, apart(ranges))
}

function* nothing(): TurnWork<void> {}
