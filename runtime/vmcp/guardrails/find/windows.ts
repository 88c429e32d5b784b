/**
 * A search by one expression of the language through texts that come in pieces. The expression looks back at no more than one
 * character, and at no more than `reach` characters in all, so that its time is linear in the text.
 */
import type { Search } from './search.ts'

export interface WindowPattern {
  /** Global. */
  readonly regExp: RegExp
  /** True for texts without any match; cheap, and never true by mistake. */
  readonly isFree: (text: string) => boolean
  /** Characters of the longest match, with what it looks ahead at. */
  readonly reach: number
  /** Matches that follow each other become one of up to so many characters. Default: they stay apart. */
  readonly joins?: number
}

/** As much of the text before as an expression looks back at. */
const context = 4
/** Characters for one step. */
const freePerStep = 64
const charactersPerStep = 4

export class WindowSearch implements Search {
  readonly minLength = 1
  readonly spans: number[] = []
  readonly #pattern: WindowPattern
  #text = ''
  /** Characters before `#text`. */
  #base = 0
  /** Where the search goes on in `#text`. */
  #from = 0
  #isLast = false
  #isDone = true

  constructor(pattern: WindowPattern) {
    this.#pattern = pattern
  }

  begin(): void {
    this.#text = ''
    this.#base = 0
    this.#from = 0
    this.spans.length = 0
  }

  push(piece: string, isLast: boolean): void {
    const begin = Math.max(0, this.#from - context)
    this.#text = this.#text.slice(begin) + piece
    this.#base += begin
    this.#from -= begin
    this.#isLast = isLast
    this.#isDone = false
  }

  advance(): number {
    if (this.#isDone) return 0
    this.#isDone = true
    const text = this.#text
    const { regExp, isFree, reach, joins = 0 } = this.#pattern
    // A match that begins further on may go beyond what is here.
    const until = this.#isLast ? text.length : text.length - reach
    if (until <= this.#from) return 1
    if (isFree(text)) {
      this.#from = until
      return 1 + text.length / freePerStep
    }
    let end = this.#from
    regExp.lastIndex = end
    for (let found = regExp.exec(text); found; found = regExp.exec(text)) {
      const { index } = found
      if (index >= until) break
      end = index + found[0].length
      this.#found(this.#base + index, this.#base + end, joins)
    }
    this.#from = Math.max(until, end)
    return 1 + text.length / charactersPerStep
  }

  #found(begin: number, end: number, joins: number): void {
    const { spans } = this
    const last = spans.length - 1
    if (last > 0 && spans[last] === begin && end - (spans[last - 1] ?? 0) <= joins) spans[last] = end
    else spans.push(begin, end)
  }
}
