/** Decodes the text of a JSON string. Maps ranges of the text's characters to bytes. */
import { type TurnWork } from '../../../../mcp/index.ts'

/** Approximate number of bytes of a string that are decoded into one piece of text. */
const blockBytes = 32 * 1024

export interface TextBlocks {
  /** The decoded text, in pieces. */
  readonly texts: readonly string[]
  /** Index of the byte after the closing quote. */
  readonly end: number
}

/** Decodes a string in blocks. `at` is the index of the opening quote. `spend` receives the number of bytes read. */
export function* textBlocks(
  bytes: Buffer,
  at: number,
  spend: (bytes: number) => TurnWork<void>,
): TurnWork<TextBlocks> {
  const texts: string[] = []
  let from = at + 1
  for (;;) {
    const until = from + blockBytes
    let hasEscapes = false
    let i = from
    let c = bytes[i]
    // Blocks end at character boundaries.
    while (c !== 0x22 && c !== undefined && (i < until || (c & 0xc0) === 0x80)) {
      if (c === 0x5c) {
        hasEscapes = true
        i += bytes[i + 1] === 0x75 ? 6 : 2
      } else i++
      c = bytes[i]
    }
    const raw = bytes.toString('utf8', from, i)
    texts.push(hasEscapes ? String(JSON.parse(`"${raw}"`)) : raw)
    yield* spend(i - from)
    from = i
    if (c === 0x22 || c === undefined) return { texts, end: i + 1 }
  }
}

/** A range of characters in the text. */
export interface TextRange {
  readonly begin: number
  readonly end: number
}

export interface RawRange {
  readonly from: number
  readonly to: number
  /** Index of the range in the given list. */
  readonly index: number
}

/** Maps ascending, non-overlapping ranges to the bytes of a string. The string's text starts at `at`. */
export function* rawRanges(
  bytes: Buffer,
  at: number,
  ranges: readonly TextRange[],
): TurnWork<readonly RawRange[]> {
  const cursor = new Cursor(bytes, at)
  const raw: RawRange[] = []
  for (const [index, { begin, end }] of ranges.entries()) {
    yield* cursor.go(begin)
    const from = cursor.at
    yield* cursor.go(end)
    raw.push({ from, to: cursor.at, index })
  }
  return raw
}

class Cursor {
  readonly #bytes: Buffer
  at: number
  #characters = 0

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.at = at
  }

  /**
   * Moves to the byte at which this UTF-16 unit starts. For the second half of a pair, moves to the end of the
   * character.
   */
  *go(to: number): TurnWork<void> {
    const bytes = this.#bytes
    let { at } = this
    let characters = this.#characters
    while (characters < to) {
      const until = Math.min(to, characters + blockBytes)
      while (characters < until) {
        const c = bytes[at] ?? 0
        characters++
        if (c === 0x5c) at += bytes[at + 1] === 0x75 ? 6 : 2
        else if (c < 0x80) at++
        else if (c < 0xe0) at += 2
        else if (c < 0xf0) at += 3
        else {
          at += 4
          characters++
        }
      }
      if (characters < to) yield
    }
    this.at = at
    this.#characters = characters
  }
}
