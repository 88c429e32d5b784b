/**
 * Reads the members of an object or the elements of an array, in slices that yield to the event loop.
 *
 * The members of a large object are cached for as long as its buffer lives, so that several JsonObjects of the same
 * buffer cost no more than one.
 */
import { openArray, openObject } from './bytes.ts'
import { JsonError, maxDepth, maxMembers, TooManyMembers } from './errors.ts'
import { JsonScanner, type Stop } from './scanner.ts'
import { atOnce, largeBytes, sliceBytes, type TurnWork } from './turns.ts'

/** One member of an object: its decoded name, the index where the name begins, and the range of the value. */
export interface JsonMember {
  readonly name: string
  readonly nameAt: number
  readonly from: number
  readonly to: number
}

/** Scans a text in slices. The stop `chunk` is the end of a slice. */
class SlicedScan extends JsonScanner {
  readonly #text: Buffer
  #from = 0
  #to = 0

  constructor(text: Buffer, values = Infinity) {
    // The outermost container does not count.
    super({ watched: 1, depth: maxDepth + 1, values })
    this.#text = text
    this.#feedSlice()
  }

  #feedSlice(): void {
    this.#from = this.#to
    this.#to = Math.min(this.#from + sliceBytes, this.#text.length)
    const isWhole = this.#to - this.#from === this.#text.length
    this.feed(isWhole ? this.#text : this.#text.subarray(this.#from, this.#to), this.#from)
  }

  /** Index in the whole text. */
  get position(): number {
    return this.#from + this.at
  }

  /** Moves to the next slice. Returns false after the last one. Throws JsonError when the value is not complete. */
  hasNextSlice(): boolean {
    if (this.#to < this.#text.length) {
      this.#feedSlice()
      return true
    }
    if (!this.isDone) throw new JsonError('unfinished value', this.#to)
    return false
  }

  /** Stops at the first byte of the outermost value, which must be a container that begins with `opening`. */
  *open(opening: number): TurnWork<void> {
    while (this.advance() === 'chunk') if (this.hasNextSlice()) yield
    if (this.#text[this.position] === opening) return
    throw new JsonError(`${opening === openObject ? 'object' : 'array'} expected`, this.position)
  }
}

const membersRead = new WeakMap<Uint8Array, readonly JsonMember[]>()

/**
 * Returns the members of the object that is the whole of `bytes`, checked completely. Does not compare names: see
 * JsonObject. Throws TooManyMembers for more than `maxMembers`, and TooManyValues when one member has more than
 * `maxValues` values.
 */
export function membersOf(bytes: Buffer, maxValues?: number): readonly JsonMember[] {
  const read = bytes.length < largeBytes ? undefined : membersRead.get(bytes)
  return read ?? atOnce(scanMembers(bytes, maxValues))
}

/** Reads the members of a large object ahead of `membersOf`. Does nothing for a small one. Throws JsonError. */
export function* readMembers(bytes: Buffer): TurnWork<void> {
  if (bytes.length < largeBytes || membersRead.has(bytes)) return
  membersRead.set(bytes, yield* scanMembers(bytes))
}

function* scanMembers(bytes: Buffer, maxValues?: number): TurnWork<readonly JsonMember[]> {
  const scan = new SlicedScan(bytes, maxValues)
  yield* scan.open(openObject)
  const members: JsonMember[] = []
  let nameAt = 0
  let from = 0
  for (;;) {
    const stop: Stop = scan.advance()
    if (stop === 'name') nameAt = scan.position - scan.nameBytes
    else if (stop === 'value') {
      from = scan.position
      scan.values = 0
    } else if (stop === 'end') {
      if (scan.depth === 0) continue
      if (members.length === maxMembers) throw new TooManyMembers(nameAt)
      members.push({ name: scan.name, nameAt, from, to: scan.position })
    } else if (scan.hasNextSlice()) yield
    else return members
  }
}

/**
 * Calls `visit` with the range of each element of the array that is the whole of `text`. Runs the work that `visit`
 * returns before it continues.
 */
export function* visitElementsInTurns(
  text: Buffer,
  visit: (from: number, to: number) => TurnWork<void> | undefined,
): TurnWork<void> {
  const scan = new SlicedScan(text)
  yield* scan.open(openArray)
  let from = 0
  for (;;) {
    const stop = scan.advance()
    if (stop === 'value') from = scan.position
    else if (stop === 'end') {
      if (scan.depth === 0) continue
      const work = visit(from, scan.position)
      if (work) yield* work
    } else if (stop === 'chunk') {
      if (!scan.hasNextSlice()) return
      yield
    }
  }
}

/**
 * Returns the elements of the array that is the whole of `text`, as slices that share its memory. Throws JsonError for
 * more than `max`.
 */
export function scanElements(text: Buffer, max = Infinity): Buffer[] {
  const elements: Buffer[] = []
  atOnce(
    visitElementsInTurns(text, (from, to) => {
      if (elements.length >= max) throw new JsonError('too many elements', from)
      elements.push(text.subarray(from, to))
      return undefined
    }),
  )
  return elements
}
