/**
 * Searches texts that arrive in pieces for a built-in pattern or an expression. Reports matches as character ranges
 * from the start of the text.
 */
import { LinearExpression, ExpressionSearch } from '../../../../../schemas/guardrails/index.ts'
import { type BuiltInPattern, type PatternName, patterns } from './patterns.ts'
import { TextWindow } from './text-window.ts'

export interface Search {
  /** Length of the shortest possible match. */
  readonly minLength: number
  /** Start and end of each match, in ascending order and without overlaps. */
  readonly spans: readonly number[]
  /** Starts another text. */
  begin(): void
  /** Adds the next piece. The previous piece must have been searched completely. */
  push(piece: string, isLast: boolean): void
  /**
   * Continues for about `steps` steps and returns the number of steps taken. A smaller number means that all available
   * text has been searched.
   */
  advance(steps: number): number
}

/** Creates a search for one pattern or expression. Several searches from one function may run at the same time. */
export type Searched = () => Search

export function searchedPattern(name: PatternName): Searched {
  return () => new PatternSearch(patterns[name])
}

/** Returns a function that creates searches for an expression. Throws PatternError if the expression is invalid. */
export function searchedExpression(source: string): Searched {
  const expression = new LinearExpression(source)
  return () => Object.assign(new ExpressionSearch(expression), { minLength: 1 })
}

/** Maximum length of a built-in pattern's match. */
const longestMatch = 33_000
/** Number of preceding characters that a pattern may examine. */
const context = 64
/**
 * Escapes in formats that the text may contain (JSON, URL, terminal output). Without this pattern, an escape's last
 * letters would look like a part of the following text. Excludes %40, the @ of an address.
 */
const escape = /\\u[0-9A-Fa-f]{4}|\\[bfnrt]|%(?!40)[0-9A-Fa-f]{2}|\p{Cc}\[[0-9;]{0,16}m/gu
const mayEscape = /[\\%]|\p{Cc}\[/u
/** Number of characters that count as one step, for patterns that the regular expression engine evaluates. */
const charactersPerStep = 8

class PatternSearch implements Search {
  readonly minLength: number
  readonly spans: number[] = []
  readonly #pattern: BuiltInPattern
  readonly #window = new TextWindow(context)
  #isDone = true

  constructor(pattern: BuiltInPattern) {
    this.#pattern = pattern
    this.minLength = pattern.minLength
  }

  begin(): void {
    this.#window.begin()
    this.spans.length = 0
  }

  push(piece: string, isLast: boolean): void {
    this.#window.push(piece, isLast)
    const { text } = this.#window
    if (mayEscape.test(text)) this.#window.text = text.replaceAll(escape, blanks)
    this.#isDone = false
  }

  advance(): number {
    if (this.#isDone) return 0
    this.#isDone = true
    const { text, base, from } = this.#window
    const { regExp, needs, exact, leads } = this.#pattern
    const until = this.#window.until(longestMatch)
    if (until <= from) return 0
    if (needs !== undefined && !text.includes(needs, from)) {
      this.#window.from = until
      return text.length / charactersPerStep / 4
    }
    regExp.lastIndex = from
    for (let found = regExp.exec(text); found; found = regExp.exec(text)) {
      const { index } = found
      if (index >= until) break
      const length = exact ? exact(found[0]) : found[0].length
      regExp.lastIndex = length === 0 ? index + 1 : index + length
      const before = leads ? (found[1]?.length ?? 0) : 0
      const begin = Math.max(base + index - before, this.spans.at(-1) ?? 0)
      if (length > 0) this.spans.push(begin, base + index + length)
    }
    const [end = 0] = this.spans.slice(-1)
    this.#window.from = Math.max(until, end - base)
    return text.length / charactersPerStep
  }
}

function blanks(found: string): string {
  return ' '.repeat(found.length)
}
