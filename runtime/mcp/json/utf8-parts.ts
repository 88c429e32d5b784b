/** UTF-8 that arrives in chunks: hands it on in parts that end with whole characters, and says when it is none. */
import { isUtf8 } from 'node:buffer'
import { JsonError } from './errors.ts'

const nothing = Buffer.alloc(0)

export class Utf8Parts {
  readonly #replaces: boolean
  /** The beginning of a character whose end has not arrived. */
  #begun: Buffer = nothing

  /** `replaces`: U+FFFD stands for what is not UTF-8. Otherwise it is refused. */
  constructor(replaces: boolean) {
    this.#replaces = replaces
  }

  /** True when no character is unfinished. */
  get isWhole(): boolean {
    return this.#begun.length === 0
  }

  /** Throws JsonError. */
  take(chunk: Buffer): readonly Buffer[] {
    if (this.isWhole && (chunk.at(-1) ?? 0) < 0x80) return [this.#checked(chunk)]
    const parts: Buffer[] = []
    let from = 0
    if (!this.isWhole) {
      from = Math.min(widthOf(this.#begun[0] ?? 0) - this.#begun.length, chunk.length)
      this.#begun = Buffer.concat([this.#begun, chunk.subarray(0, from)])
      if (this.#begun.length < widthOf(this.#begun[0] ?? 0)) return parts
      parts.push(this.#checked(this.#begun))
    }
    const end = endOfWhole(chunk, from)
    this.#begun = end === chunk.length ? nothing : Buffer.from(chunk.subarray(end))
    if (end > from) parts.push(this.#checked(chunk.subarray(from, end)))
    return parts
  }

  #checked(part: Buffer): Buffer {
    if (isUtf8(part)) return part
    if (this.#replaces) return Buffer.from(part.toString())
    throw new JsonError('not UTF-8', 0)
  }
}

/** Bytes of the character that begins so. */
function widthOf(c: number): number {
  if (c < 0xc0 || c >= 0xf8) return 1
  return c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2
}

/** The index after the last character that is complete. */
function endOfWhole(chunk: Buffer, from: number): number {
  for (let k = 1; k <= 3 && chunk.length - k >= from; k++) {
    const c = chunk[chunk.length - k] ?? 0
    if ((c & 0xc0) === 0x80) continue
    return widthOf(c) > k ? chunk.length - k : chunk.length
  }
  return chunk.length
}
