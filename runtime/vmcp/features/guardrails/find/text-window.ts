/** The part of a text that has not been searched completely. The text arrives in pieces. */
export class TextWindow {
  text = ''
  /** Number of characters before `text` in the whole text. */
  base = 0
  /** Position in `text` at which the search continues. */
  from = 0
  readonly #context: number
  #isLast = false

  /** `context` is the number of characters to keep before that position, for lookbehind. */
  constructor(context: number) {
    this.#context = context
  }

  begin(): void {
    this.text = ''
    this.base = 0
    this.from = 0
  }

  push(piece: string, isLast: boolean): void {
    const begin = Math.max(0, this.from - this.#context)
    this.text = this.text.slice(begin) + piece
    this.base += begin
    this.from -= begin
    this.#isLast = isLast
  }

  /**
   * Returns the first position at which a match of at most `reach` characters could extend beyond the available text.
   */
  until(reach: number): number {
    return this.#isLast ? this.text.length : this.text.length - reach
  }
}
