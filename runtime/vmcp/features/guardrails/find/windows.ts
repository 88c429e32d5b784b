/**
 * A search by one expression of the language through texts that come in pieces. The expression looks back at no more than one
 * character, and at no more than `reach` characters in all, so that its time is linear in the text.
 */
import type { Search } from './search.ts'
import { TextWindow } from './text-window.ts'

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
  readonly #window = new TextWindow(context)
  #isDone = true

  constructor(pattern: WindowPattern) {
    this.#pattern = pattern
  }

  begin(): void {
    this.#window.begin()
    this.spans.length = 0
  }

  push(piece: string, isLast: boolean): void {
    this.#window.push(piece, isLast)
    this.#isDone = false
  }

  advance(): number {
    if (this.#isDone) return 0
    this.#isDone = true
    const { text, base, from } = this.#window
    const { regExp, isFree, reach, joins = 0 } = this.#pattern
    const until = this.#window.until(reach)
    if (until <= from) return 1
    if (isFree(text)) {
      this.#window.from = until
      return 1 + text.length / freePerStep
    }
    let end = from
    regExp.lastIndex = end
    for (let found = regExp.exec(text); found; found = regExp.exec(text)) {
      const { index } = found
      if (index >= until) break
      end = index + found[0].length
      this.#found(base + index, base + end, joins)
    }
    this.#window.from = Math.max(until, end)
    return 1 + text.length / charactersPerStep
  }

  #found(begin: number, end: number, joins: number): void {
    const { spans } = this
    const last = spans.length - 1
    if (last > 0 && spans[last] === begin && end - (spans[last - 1] ?? 0) <= joins) spans[last] = end
    else spans.push(begin, end)
  }
}
