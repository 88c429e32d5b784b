/**
 * A search for one thing through texts that come in pieces: a built-in pattern or an expression. What is found is told as
 * ranges of characters from the beginning of the text.
 */
import { LinearExpression, ExpressionSearch } from '../../../../../schemas/guardrails/index.ts'
import { type BuiltInPattern, type PatternName, patterns } from './patterns.ts'
import { TextWindow } from './text-window.ts'

export interface Search {
  /** No shorter text has a match. */
  readonly minLength: number
  /** Begin and end of each match, ascending and apart. */
  readonly spans: readonly number[]
  /** Begins another text. */
  begin(): void
  /** The next piece; the one before must have been searched. */
  push(piece: string, isLast: boolean): void
  /** Goes on for about so many steps; answers how many it took. Less than that: it is done with what it has. */
  advance(steps: number): number
}

/** Makes searches of one kind; several may run at a time. */
export type Searched = () => Search

export function searchedPattern(name: PatternName): Searched {
  return () => new PatternSearch(patterns[name])
}

/** Throws PatternError. */
export function searchedExpression(source: string): Searched {
  const expression = new LinearExpression(source)
  return () => Object.assign(new ExpressionSearch(expression), { minLength: 1 })
}

/** No match of a built-in pattern is longer. */
const longestMatch = 33_000
/** As much of the text before as a pattern looks at. */
const context = 64
/**
 * Escapes of what a text may be in its turn (JSON, URL, output of a terminal): the letters at their end would seem to belong
 * to what follows. Not %40, the @ of an address.
 */
const escape = /\\u[0-9A-Fa-f]{4}|\\[bfnrt]|%(?!40)[0-9A-Fa-f]{2}|\p{Cc}\[[0-9;]{0,16}m/gu
const mayEscape = /[\\%]|\p{Cc}\[/u
/** Characters for one step: patterns are read by the engine of the language. */
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
