/**
 * Checks, filters and quotes JSON text as bytes. Large text is processed in slices that yield to the event loop, so a
 * large response does not delay other calls. Numbers keep their digits, because nothing is parsed.
 */
import { arrayEnd, arrayStart, joined, type TurnWork, visitElementsInTurns } from '../../../mcp/index.ts'

/** Number of bytes and characters between yields. */
const sliceBytes = 128 * 1024
const sliceCharacters = 256 * 1024

/** Returns true for one JSON value. Returns false for invalid JSON, and for values that MCP messages must not contain. */
export function* isJsonValue(bytes: Buffer): TurnWork<boolean> {
  let values = 0
  try {
    // As the only element of an array, the value can have any type.
    yield* visitElementsInTurns(yield* joined([arrayStart, bytes, arrayEnd]), () => void values++)
  } catch {
    return false
  }
  return values === 1
}

/** Returns the text as a JSON string. */
export function* quoted(text: string): TurnWork<Buffer> {
  const pieces: Buffer[] = []
  for (let at = 0; at === 0 || at < text.length; at += sliceCharacters) {
    // A surrogate pair that is split here becomes two escapes, which JSON defines as the same character.
    pieces.push(Buffer.from(JSON.stringify(text.slice(at, at + sliceCharacters)).slice(1, -1)))
    yield
  }
  return yield* joined([quote, ...pieces, quote])
}

const quote = Buffer.from('"')

/** Member names to keep, with the names to keep below each of them; undefined keeps the whole value. */
export type FieldTree = ReadonlyMap<string, FieldTree | undefined>

/** Returns the tree of paths such as `data.id`. A path includes all paths below it. */
export function fieldTree(paths: readonly string[]): FieldTree {
  return treeOf(paths.map((path) => path.split('.')))
}

function treeOf(paths: readonly (readonly string[])[]): FieldTree {
  const groups = Map.groupBy(paths, ([first = '']) => first)
  return new Map(
    [...groups].map(([name, group]) => {
      const below = group.map(([, ...rest]) => rest)
      return [name, below.some((rest) => rest.length === 0) ? undefined : treeOf(below)]
    }),
  )
}

/**
 * Returns the value with only the members of the tree. The tree applies to each item of a list. The text must be valid,
 * and its depth limits the recursion.
 */
export function* withOnly(json: Buffer, tree: FieldTree): TurnWork<Buffer> {
  const filter = new Filter(json)
  yield* filter.value(tree)
  return filter.kept
}

const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d]
const [quoteByte, backslash, comma, lastBlank] = [0x22, 0x5c, 0x2c, 0x20]

/** Copies the parts to keep. */
class Filter {
  readonly #bytes: Buffer
  readonly #output: Buffer
  #size = 0
  #at = 0
  #yieldedAt = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#output = Buffer.allocUnsafe(bytes.length)
  }

  get kept(): Buffer {
    return this.#output.subarray(0, this.#size)
  }

  *value(tree: FieldTree | undefined): TurnWork<void> {
    const first = this.#next()
    if (tree !== undefined && first === openObject) yield* this.#members(tree)
    else if (tree !== undefined && first === openArray) yield* this.#items(tree)
    else {
      const start = this.#at
      yield* this.#skipValue()
      this.#keep(start, this.#at)
    }
  }

  *#items(tree: FieldTree): TurnWork<void> {
    let start = this.#at++
    for (;;) {
      const byte = this.#bytes[this.#at] ?? closeArray
      if (byte === openObject || byte === openArray) {
        this.#keep(start, this.#at)
        yield* this.value(tree)
        start = this.#at
      } else if (byte === quoteByte) this.#skipString()
      else {
        this.#at++
        if (byte === closeArray) break
      }
      if (this.#isSliceOver()) yield
    }
    this.#keep(start, this.#at)
  }

  *#members(tree: FieldTree): TurnWork<void> {
    this.#keepByte()
    let isFirst = true
    while (this.#next() !== closeObject) {
      const separator = this.#at
      if (this.#next() === comma) this.#at++
      this.#next()
      const start = this.#at
      this.#skipString()
      const raw = this.#bytes.toString('utf8', start, this.#at)
      const name = raw.includes('\\') ? String(JSON.parse(raw)) : raw.slice(1, -1)
      this.#next()
      this.#at++
      if (!tree.has(name)) yield* this.#skipValue()
      else {
        if (!isFirst) this.#keep(separator, separator + 1)
        isFirst = false
        this.#keep(start, this.#at)
        yield* this.value(tree.get(name))
      }
    }
    this.#keepByte()
  }

  *#skipValue(): TurnWork<void> {
    let depth = 0
    for (this.#next(); this.#at < this.#bytes.length; ) {
      if (this.#isSliceOver()) yield
      const byte = this.#bytes[this.#at] ?? 0
      const isEnd = byte === closeObject || byte === closeArray
      if (depth === 0 && (isEnd || byte === comma)) return
      if (byte === quoteByte) this.#skipString()
      else {
        if (isEnd) depth--
        else if (byte === openObject || byte === openArray) depth++
        this.#at++
      }
    }
  }

  #isSliceOver(): boolean {
    if (this.#at - this.#yieldedAt < sliceBytes) return false
    this.#yieldedAt = this.#at
    return true
  }

  #skipString(): void {
    for (this.#at++; this.#at < this.#bytes.length && this.#bytes[this.#at] !== quoteByte; )
      this.#at += this.#bytes[this.#at] === backslash ? 2 : 1
    this.#at++
  }

  /** Skips blanks and returns the next byte. */
  #next(): number {
    while ((this.#bytes[this.#at] ?? closeArray) <= lastBlank) this.#at++
    return this.#bytes[this.#at] ?? closeArray
  }

  #keepByte(): void {
    this.#keep(this.#at, ++this.#at)
  }

  #keep(from: number, to: number): void {
    this.#size += this.#bytes.copy(this.#output, this.#size, from, to)
  }
}
