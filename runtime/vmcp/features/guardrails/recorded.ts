/**
 * Masks records of calls in the audit log, in spans and in the console. Applies all rules regardless of action,
 * direction, scope and exceptions. A call can be recorded before its target is known, and refused calls are recorded
 * too.
 *
 * Masking runs within one turn of the event loop, so the work for each record is limited. Anything beyond the limit is
 * omitted from the record.
 */
import { atOnce, type TurnWork } from '../../../mcp/index.ts'
import type { MaskText } from '../../../observe/index.ts'
import { apart, type MaskedRange, RuleSearch, ScanLimit, withMasks } from './scan/matches.ts'
import type { CompiledRule } from './rules.ts'

/** Maximum number of steps. Executing this many steps takes about 10 ms. */
const maxSteps = 120_000
const leftOut = '[redacted]'

export function recordMask(rules: readonly CompiledRule[]): () => MaskText {
  // All records share these searches, because records are masked one after another.
  const searches = rules.map(
    ({ settings: { name, action }, searched }) => new RuleSearch({ name, action, searched, except: [] }),
  )
  return () => {
    let steps = 0
    function spend(taken: number): TurnWork<void> {
      steps += taken
      if (steps > maxSteps) throw new ScanLimit('the record takes too long to check')
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
