/** Splits UTF-8 that arrives in chunks into parts. Each part ends with a complete character. Detects invalid UTF-8. */
import { isUtf8 } from 'node:buffer'
import { JsonError } from './errors.ts'

const nothing = Buffer.alloc(0)

export class Utf8Parts {
  readonly #replaces: boolean
  /** The first bytes of a character that is still incomplete. */
  #incomplete: Buffer = nothing

  /** If `replaces` is true, replaces invalid UTF-8 with U+FFFD instead of rejecting it. */
  constructor(replaces: boolean) {
    this.#replaces = replaces
  }

  /** True if no incomplete character is pending. */
  get isWhole(): boolean {
    return this.#incomplete.length === 0
  }

  /** Adds a chunk and returns the parts that are complete. Throws JsonError for invalid UTF-8. */
  take(chunk: Buffer): readonly Buffer[] {
    if (this.isWhole && (chunk.at(-1) ?? 0) < 0x80) return [this.#checked(chunk)]
    const parts: Buffer[] = []
    let from = 0
    if (!this.isWhole) {
      from = Math.min(widthOf(this.#incomplete[0] ?? 0) - this.#incomplete.length, chunk.length)
      this.#incomplete = Buffer.concat([this.#incomplete, chunk.subarray(0, from)])
      if (this.#incomplete.length < widthOf(this.#incomplete[0] ?? 0)) return parts
      parts.push(this.#checked(this.#incomplete))
    }
    const end = endOfWhole(chunk, from)
    this.#incomplete = end === chunk.length ? nothing : Buffer.from(chunk.subarray(end))
    if (end > from) parts.push(this.#checked(chunk.subarray(from, end)))
    return parts
  }

  #checked(part: Buffer): Buffer {
    if (isUtf8(part)) return part
    if (this.#replaces) return Buffer.from(part.toString())
    throw new JsonError('not UTF-8', 0)
  }
}

/** Returns the length of the character that begins with a byte. */
function widthOf(c: number): number {
  if (c < 0xc0 || c >= 0xf8) return 1
  return c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2
}

/** Returns the index after the last complete character. */
function endOfWhole(chunk: Buffer, from: number): number {
  for (let k = 1; k <= 3 && chunk.length - k >= from; k++) {
    const c = chunk[chunk.length - k] ?? 0
    if ((c & 0xc0) === 0x80) continue
    return widthOf(c) > k ? chunk.length - k : chunk.length
  }
  return chunk.length
}
