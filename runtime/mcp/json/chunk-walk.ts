/**
 * Walks one JSON value that arrives in chunks, none of which need be held: checks it completely, as scan.ts does, and stops at
 * the names and values of the outer containers, so that these can be dealt with while the rest is still on its way.
 *
 * Texts are not checked for UTF-8, and names are not compared.
 */
import {
  backslashByte,
  closeArray,
  closeObject,
  colonByte,
  commaByte,
  openArray,
  openObject,
  quoteByte,
} from './bytes.ts'
import {
  isHexDigit,
  isSimpleEscape,
  JsonError,
  longRun,
  maxDepth,
  readString,
  skipPlain,
  skipWhitespace,
} from './scan.ts'

/** Where a walk has stopped. */
export type Stop = 'chunk' | 'name' | 'value' | 'end'

const maxNumberBytes = 64 * 1024
const maxNameBytes = 64 * 1024

/** What comes next. */
const anyValue = 0
/** A value, or the end of an array. */
const firstItem = 1
const anyName = 2
/** A name, or the end of an object. */
const firstName = 3
const afterName = 4
const afterValue = 5
const inNumber = 6
const inWord = 7
const inText = 8
const inName = 9
const done = 10

/** Within a number, what has been read of it. */
const minus = 0
const zero = 1
const whole = 2
const point = 3
const fraction = 4
const exponent = 5
const exponentSign = 6
const exponentDigits = 7

export class ChunkWalk {
  /** Containers that are at most so deep tell of their names and values. */
  watched = 0
  /** Open containers. */
  depth = 0
  /** The name that the walk has last stopped at, decoded and as it was. */
  name = ''
  rawName: Buffer = Buffer.alloc(0)
  #chunk: Buffer = Buffer.alloc(0)
  #at = 0
  #next = anyValue
  /** 1 = inside an object, 0 = inside an array; one entry per open container. */
  readonly #nesting = new Uint8Array(maxDepth + 2)
  /** Of a name, where it begins in this chunk, and what came of it in chunks before. */
  #nameFrom = 0
  #nameBefore: Buffer | undefined
  /** Hexadecimal digits that an escape still needs; -1 after a backslash. */
  #escape = 0
  #number = minus
  #numberBytes = 0
  #word = ''
  #wordAt = 0
  /** The walk stands before a value that has been told. */
  #isTold = false

  /** Where the walk is in its chunk: at the first byte of a value, or after what has ended. */
  get at(): number {
    return this.#at
  }

  /** True when the value has been walked to its end; white space may follow. */
  get isDone(): boolean {
    return this.#next === done
  }

  start(chunk: Buffer): void {
    this.#chunk = chunk
    this.#at = 0
  }

  /** Goes on to the next stop: a name has ended, a value begins, a value has ended, or the chunk has. Throws JsonError. */
  advance(): Stop {
    const chunk = this.#chunk
    while (this.#at < chunk.length) {
      const next = this.#next
      const stop = next === inText || next === inName ? this.#text(chunk) : this.#step(next, chunk)
      if (stop !== undefined) return stop
    }
    if (this.#next === inName && this.#isWatched) this.#holdName(chunk)
    return 'chunk'
  }

  get #isWatched(): boolean {
    return this.depth <= this.watched
  }

  #step(next: number, chunk: Buffer): Stop | undefined {
    const c = chunk[this.#at] ?? 0
    if (next === inNumber) return this.#digits(chunk)
    if (next === inWord) return this.#letter(c)
    if (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) {
      this.#at = skipWhitespace(chunk, this.#at)
      return undefined
    }
    switch (next) {
      case anyValue:
        return this.#value(c)
      case firstItem:
        return c === closeArray ? this.#close() : this.#value(c)
      case firstName:
        return c === closeObject ? this.#close() : this.#beginName(c)
      case anyName:
        return this.#beginName(c)
      case afterName:
        if (c !== colonByte) throw this.#error('colon expected')
        this.#at++
        this.#next = anyValue
        return undefined
      case afterValue:
        return this.#afterValue(c)
      default:
        throw this.#error('unexpected text after the value')
    }
  }

  #value(c: number): Stop | undefined {
    if (this.depth > maxDepth) throw this.#error('nesting too deep')
    if (this.#isWatched && !this.#isTold) {
      this.#isTold = true
      return 'value'
    }
    this.#isTold = false
    if (c === openObject || c === openArray) {
      this.#nesting[++this.depth] = c === openObject ? 1 : 0
      this.#next = c === openObject ? firstName : firstItem
      this.#at++
    } else if (c === quoteByte) {
      this.#next = inText
      this.#at++
    } else if (c === 0x2d || isDigit(c)) {
      this.#next = inNumber
      this.#number = c === 0x2d ? minus : c === 0x30 ? zero : whole
      this.#numberBytes = 1
      this.#at++
    } else {
      this.#word = c === 0x74 ? 'true' : c === 0x66 ? 'false' : 'null'
      this.#wordAt = 0
      this.#next = inWord
    }
    return undefined
  }

  #beginName(c: number): undefined {
    if (this.depth > maxDepth) throw this.#error('nesting too deep')
    if (c !== quoteByte) throw this.#error('string expected')
    this.#next = inName
    this.#nameFrom = this.#at
    this.#nameBefore = undefined
    this.#at++
  }

  #afterValue(c: number): Stop | undefined {
    const inObject = this.#nesting[this.depth] === 1
    if (c === commaByte) {
      this.#at++
      this.#next = inObject ? anyName : anyValue
      return undefined
    }
    if (c !== (inObject ? closeObject : closeArray)) throw this.#error('comma or end expected')
    return this.#close()
  }

  #close(): Stop | undefined {
    this.#at++
    this.depth--
    return this.#ended()
  }

  #ended(): Stop | undefined {
    this.#next = this.depth === 0 ? done : afterValue
    return this.#isWatched ? 'end' : undefined
  }

  #digits(chunk: Buffer): Stop | undefined {
    let at = this.#at
    const before = at
    while (at < chunk.length) {
      const next = afterDigit(this.#number, chunk[at] ?? 0)
      if (next < 0) break
      this.#number = next
      at++
    }
    this.#at = at
    this.#numberBytes += at - before
    if (this.#numberBytes > maxNumberBytes) throw this.#error('number too long')
    if (at === chunk.length) return undefined
    const state = this.#number
    if (state !== zero && state !== whole && state !== fraction && state !== exponentDigits)
      throw this.#error('digit expected')
    return this.#ended()
  }

  #letter(c: number): Stop | undefined {
    if (c !== this.#word.charCodeAt(this.#wordAt)) throw this.#error('value expected')
    this.#at++
    return ++this.#wordAt === this.#word.length ? this.#ended() : undefined
  }

  /** The rest of a text or name, as far as the chunk goes. */
  #text(chunk: Buffer): Stop | undefined {
    let i = this.#at
    if (this.#escape !== 0) i = this.#restOfEscape(chunk, i)
    let turn = i + longRun
    while (i < chunk.length) {
      const c = chunk[i] ?? 0
      if (c === quoteByte) {
        this.#at = i + 1
        if (this.#next === inText) return this.#ended()
        this.#next = afterName
        return this.#isWatched ? this.#endName(chunk) : undefined
      }
      if (c === backslashByte) {
        this.#escape = -1
        i = this.#restOfEscape(chunk, i + 1)
        turn = i + longRun
      } else if (c < 0x20) throw this.#error('unfinished string')
      else i++
      if (i >= turn && i < chunk.length) {
        i = skipPlain(chunk, i)
        turn = i + longRun
      }
    }
    this.#at = i
    return undefined
  }

  /** The index after what the chunk has of an escape. */
  #restOfEscape(chunk: Buffer, at: number): number {
    let i = at
    for (; this.#escape !== 0 && i < chunk.length; i++) {
      const c = chunk[i] ?? 0
      if (this.#escape > 0) {
        if (!isHexDigit(c)) throw this.#error('bad unicode escape')
        this.#escape--
      } else if (c === 0x75) this.#escape = 4
      else if (isSimpleEscape(c)) this.#escape = 0
      else throw this.#error('bad escape')
    }
    return i
  }

  #holdName(chunk: Buffer): void {
    const part = chunk.subarray(this.#nameFrom)
    this.#nameBefore = this.#nameBefore ? Buffer.concat([this.#nameBefore, part]) : Buffer.from(part)
    this.#nameFrom = 0
    if (this.#nameBefore.length > maxNameBytes) throw this.#error('name too long')
  }

  #endName(chunk: Buffer): Stop {
    const part = chunk.subarray(this.#nameFrom, this.#at)
    this.rawName = this.#nameBefore ? Buffer.concat([this.#nameBefore, part]) : part
    if (this.rawName.length > maxNameBytes) throw this.#error('name too long')
    this.name = readString(this.rawName, 0, this.rawName.length)
    return 'name'
  }

  #error(what: string): JsonError {
    return new JsonError(what, this.#at)
  }
}

function isDigit(c: number): boolean {
  return c >= 0x30 && c <= 0x39
}

/** The state of a number after one more byte; -1 when the byte is not a part of it. */
function afterDigit(state: number, c: number): number {
  if (isDigit(c)) {
    if (state === minus) return c === 0x30 ? zero : whole
    if (state === zero) return -1
    if (state === point) return fraction
    return state === exponent || state === exponentSign ? exponentDigits : state
  }
  if (c === 0x2e) return state === zero || state === whole ? point : -1
  if (c === 0x65 || c === 0x45) return state === zero || state === whole || state === fraction ? exponent : -1
  return (c === 0x2b || c === 0x2d) && state === exponent ? exponentSign : -1
}
