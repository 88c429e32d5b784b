/**
 * Reads large JSON in many turns of the event loop: work that yields after each slice, and what runs it.
 *
 * What was read of a large object is cached for as long as its buffer lives, so that a JsonObject of the same buffer costs
 * nothing more.
 */
import { isUtf8 } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import {
  JsonError,
  maxMembers,
  type JsonMember,
  readString,
  scanMembers,
  skipString,
  skipWhitespace,
  TooManyMembers,
} from './scan.ts'
import { nextShare, shareIsOver } from './turn-shares.ts'
import { JsonWalk } from './walk.ts'

/** Yields where other work may have a turn. */
export type TurnWork<T> = Generator<undefined, T, undefined>

/** What is smaller is read at once. */
export const largeBytes: number = 256 * 1024
/** Bytes between two yields; 40,000 values at most, some 2 ms. */
const sliceBytes = 128 * 1024
const blanksSliceBytes = 1024 * 1024
const utf8SliceBytes = 1024 * 1024
/** Names of members that are read here. */
const maxNameBytes = 64 * 1024

/** Runs work to its end within this turn. */
export function atOnce<T>(work: TurnWork<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

/** Runs work in later turns, in which it has a share. */
export async function inTurns<T>(work: TurnWork<T>): Promise<T> {
  for (;;) {
    await nextShare()
    do {
      const step = work.next()
      if (step.done) return step.value
    } while (!shareIsOver())
  }
}

/** Runs work on some bytes: within this turn when they are few. */
export function workOn<T>(bytes: Buffer, work: TurnWork<T>): T | Promise<T> {
  return bytes.length < largeBytes ? atOnce(work) : inTurns(work)
}

export interface ScannedMembers {
  readonly members: readonly JsonMember[]
  /** The index after the closing brace, or after the white space behind that. */
  readonly end: number
}

const membersRead = new WeakMap<Uint8Array, ScannedMembers>()

/** As scanMembers of the object in `bytes`; what was read before is not read again. */
export function membersOf(bytes: Buffer, maxValues?: number): ScannedMembers {
  const read = bytes.length < largeBytes ? undefined : membersRead.get(bytes)
  return read ?? scanMembers(bytes, skipWhitespace(bytes, 0), maxValues)
}

/** Reads the members of a large object, for membersOf; of a small one it does nothing. Throws JsonError. */
export function* readMembers(bytes: Buffer): TurnWork<void> {
  if (bytes.length < largeBytes || membersRead.has(bytes)) return
  const members: JsonMember[] = []
  const slices = new Slices(bytes)
  const at = yield* slices.blanks(0)
  if (bytes[at] !== 0x7b) throw new JsonError('object expected', at)
  let i = yield* slices.blanks(at + 1)
  while (bytes[i] !== 0x7d || members.length > 0) {
    const nameAt = i
    const nameEnd = skipString(bytes.subarray(0, nameAt + maxNameBytes), nameAt)
    i = yield* slices.blanks(nameEnd)
    if (bytes[i] !== 0x3a) throw new JsonError('colon expected', i)
    const from = yield* slices.blanks(i + 1)
    const to = yield* slices.value(from)
    if (members.length === maxMembers) throw new TooManyMembers(nameAt)
    members.push({ name: readString(bytes, nameAt, nameEnd), nameAt, from, to })
    i = yield* slices.blanks(to)
    if (bytes[i] === 0x7d) break
    if (bytes[i] !== 0x2c) throw new JsonError('comma or end expected', i)
    i = yield* slices.blanks(i + 1)
  }
  membersRead.set(bytes, { members, end: yield* slices.blanks(i + 1) })
}

/** As visitElements; `visit` may have work of its own. */
export function* visitElementsInTurns(
  text: Buffer,
  visit: (from: number, to: number) => TurnWork<void> | undefined,
): TurnWork<void> {
  if (text[0] !== 0x5b) throw new JsonError('array expected', 0)
  const slices = new Slices(text)
  let i = yield* slices.blanks(1)
  if (text[i] === 0x5d) return
  for (;;) {
    const from = i
    const to = yield* slices.value(from)
    const work = visit(from, to)
    if (work) yield* work
    i = yield* slices.blanks(to)
    if (text[i] === 0x5d) return
    if (text[i] !== 0x2c) throw new JsonError('comma or end expected', i)
    i = yield* slices.blanks(i + 1)
  }
}

/** One value after the other; a slice may hold many, and a value many slices. */
class Slices {
  readonly #text: Uint8Array
  readonly #walk: JsonWalk
  #until = 0

  constructor(text: Uint8Array) {
    this.#text = text
    this.#walk = new JsonWalk(text)
  }

  /** The index after the value that begins at `from`. */
  *value(from: number): TurnWork<number> {
    const walk = this.#walk
    walk.start(from)
    while (from >= this.#until || !walk.advance(this.#until)) {
      this.#until = Math.max(from, walk.at) + sliceBytes
      yield
    }
    return walk.at
  }

  /** The index after the white space at `at`. */
  *blanks(at: number): TurnWork<number> {
    if ((this.#text[at] ?? 0x7b) > 0x20) return at
    let i = at
    for (;;) {
      const until = i + blanksSliceBytes
      i = skipWhitespace(this.#text.subarray(0, until), i)
      if (i < until) return i
      yield
    }
  }
}

/** False for bytes that are no UTF-8. */
export function* checkUtf8(bytes: Buffer): TurnWork<boolean> {
  for (let from = 0; from < bytes.length; ) {
    let to = Math.min(from + utf8SliceBytes, bytes.length)
    // Not within a character: its further bytes begin with the bits 10. There are three at most.
    for (let k = 0; k < 3 && to < bytes.length && ((bytes[to] ?? 0) & 0xc0) === 0x80; k++) to--
    if (!isUtf8(bytes.subarray(from, to))) return false
    from = to
    yield
  }
  return true
}

/** The same bytes when they are UTF-8; otherwise U+FFFD stands for what is not. */
export function* madeUtf8(bytes: Buffer): TurnWork<Buffer> {
  if (yield* checkUtf8(bytes)) return bytes
  const decoder = new StringDecoder('utf8')
  const pieces: Buffer[] = []
  for (let from = 0; from < bytes.length; from += utf8SliceBytes) {
    pieces.push(Buffer.from(decoder.write(bytes.subarray(from, from + utf8SliceBytes))))
    yield
  }
  pieces.push(Buffer.from(decoder.end()))
  return yield* joined(pieces)
}

const copySlice = 4 * 1024 * 1024

/** The pieces as one. */
export function* joined(pieces: readonly Buffer[], size = sizeOf(pieces)): TurnWork<Buffer> {
  const whole = Buffer.allocUnsafe(size)
  let at = 0
  let copied = 0
  for (const piece of pieces) {
    for (let from = 0; from < piece.length; from += copySlice) {
      const count = piece.copy(whole, at, from, from + copySlice)
      at += count
      copied += count
      if (copied < copySlice) continue
      copied = 0
      yield
    }
  }
  return whole
}

function sizeOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0)
}

/** As indexOf. */
export function* indexIn(bytes: Buffer, what: string, at: number): TurnWork<number> {
  for (let from = at; from < bytes.length; from += sliceBytes) {
    const found = bytes.subarray(from, from + sliceBytes + what.length - 1).indexOf(what)
    if (found >= 0) return from + found
    yield
  }
  return -1
}
