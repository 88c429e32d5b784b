/** Finds a rule's matches in text that may arrive in pieces, and merges the ranges of several rules. */
import { ModuleError } from '../../../../../schemas/index.ts'
import type { TurnWork } from '../../../../mcp/index.ts'
import { shownHidden } from '../find/hidden.ts'
import type { Search } from '../find/search.ts'
import type { TextRange } from './leaf.ts'
import type { ActiveRule } from '../rules.ts'

/** Thrown if the scan of a value exceeds its limits. */
export class ScanLimit extends ModuleError {}

/** Number of steps in a slice of work, which takes about a millisecond. */
export const sliceSteps = 12_000
/** Maximum number of matches in a value. The number is limited because each replacement takes time. */
export const maxMatches = 100_000

/** Receives the number of steps taken. Yields at the end of a slice. */
export type TakeSteps = (steps: number) => TurnWork<void>

export class RuleSearch {
  readonly rule: ActiveRule
  /** Length of the shortest possible match. */
  readonly minLength: number
  readonly #searches: readonly Search[]

  constructor(rule: ActiveRule) {
    this.rule = rule
    this.#searches = rule.searched.map((make) => make())
    this.minLength = Math.min(...this.#searches.map(({ minLength }) => minLength))
  }

  /** Collects the ranges in the whole text, grouped by pattern. Throws ScanLimit. */
  *find(texts: readonly string[], spend: TakeSteps): TurnWork<readonly TextRange[]> {
    const found: TextRange[] = []
    for (const search of this.#searches) {
      search.begin()
      for (let k = 0; k < texts.length; k++) {
        if (search.spans.length > 2 * maxMatches) throw new ScanLimit('the value has too many matches')
        search.push(texts[k] ?? '', k === texts.length - 1)
        for (;;) {
          const steps = search.advance(sliceSteps)
          yield* spend(1 + steps)
          if (steps < sliceSteps) break
        }
      }
      const { spans } = search
      if (spans.length > 2 * maxMatches) throw new ScanLimit('the value has too many matches')
      for (let i = 0; i < spans.length; i += 2) found.push({ begin: spans[i] ?? 0, end: spans[i + 1] ?? 0 })
    }
    return found
  }
}

export interface MaskedRange extends TextRange {
  /** The rule that matched. */
  readonly rule: string
  /** The rule's action. The default is `mask`. */
  readonly action?: ActiveRule['action'] | undefined
}

/** Sorts ranges and merges overlapping ranges. A merged range keeps the rule of its first part. */
export function apart(ranges: MaskedRange[]): readonly MaskedRange[] {
  const joined: MaskedRange[] = []
  for (const range of ranges.sort((a, b) => a.begin - b.begin || b.end - a.end)) {
    const before = joined.at(-1)
    if (before && range.begin < before.end) {
      if (range.end > before.end) joined[joined.length - 1] = { ...before, end: range.end }
    } else joined.push(range)
  }
  return joined
}

/** Replaces ranges of the text with masks. The ranges must be in ascending order and must not overlap. */
export function withMasks(text: string, ranges: readonly MaskedRange[]): string {
  let [masked, from] = ['', 0]
  for (const { begin, end, rule } of ranges) {
    masked += text.slice(from, begin) + maskOf(rule)
    from = end
  }
  return masked + text.slice(from)
}

/** Returns the replacement for a match. */
export function replacementOf({ rule, action = 'mask' }: MaskedRange, matched: string): string {
  if (action === 'mark') return shownHidden(matched)
  if (action === 'strip') return ''
  return action === 'escape' ? '&lt;' : maskOf(rule)
}

/** The text of ranges. Callers request the ranges in ascending order. */
export class RangeTexts {
  readonly #texts: readonly string[]
  #index = 0
  /** Number of characters before the piece. */
  #base = 0

  constructor(texts: readonly string[]) {
    this.#texts = texts
  }

  of({ begin, end }: TextRange): string {
    for (let piece = this.#piece; this.#base + piece.length <= begin; piece = this.#piece) {
      if (this.#index === this.#texts.length) return ''
      this.#base += piece.length
      this.#index++
    }
    let [text, at, base] = ['', this.#index, this.#base]
    for (; base < end && at < this.#texts.length; at++) {
      const piece = this.#texts[at] ?? ''
      text += piece.slice(Math.max(0, begin - base), end - base)
      base += piece.length
    }
    return text
  }

  get #piece(): string {
    return this.#texts[this.#index] ?? ''
  }
}

function maskOf(rule: string): string {
  return `[redacted:${rule}]`
}
