/** Of a text that comes in pieces, the part that a search still has to look at. */
export class TextWindow {
  text = ''
  /** Characters of the whole text before `text`. */
  base = 0
  /** Where the search goes on in `text`. */
  from = 0
  readonly #context: number
  #isLast = false

  /** `context`: how many characters before that place stay, for a search that looks back. */
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

  /** A match that begins here or further on may go beyond what is there, when none is longer than `reach`. */
  until(reach: number): number {
    return this.#isLast ? this.text.length : this.text.length - reach
  }
}
