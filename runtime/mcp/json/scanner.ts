/**
 * Checks one JSON value completely (RFC 8259) without building it, and reports where names and values begin and end. So
 * a message keeps its exact bytes (large numbers, escapes, unknown members) while one of its members is replaced.
 *
 * The text may arrive in chunks, and no chunk needs to be kept: the scanner stops at the end of each one and continues
 * with the next. Does not check strings for UTF-8, and does not compare names.
 */
import {
  backslashByte,
  closeArray,
  closeObject,
  colonByte,
  commaByte,
  longRun,
  openArray,
  openObject,
  quoteByte,
  readString,
  skipPlain,
  skipWhitespace,
} from './bytes.ts'
import { JsonError, maxDepth, TooManyValues } from './errors.ts'

const maxNumberBytes = 64 * 1024
const maxNameBytes = 64 * 1024

/** Where the scanner has stopped: at the end of the chunk, after a name, at the first byte of a value, or after one. */
export type Stop = 'chunk' | 'name' | 'value' | 'end'

// What the scanner expects next.
const anyValue = 0
/** A value, or the end of an array. */
const firstItem = 1
const anyName = 2
/** A name, or the end of an object. */
const firstName = 3
const afterName = 4
const afterValue = 5
const done = 6
/** The chunk has ended within a token. */
const inNumber = 7
const inWord = 8
const inText = 9
const inName = 10

// How much of a number has been read.
const minus = 0
const zero = 1
const whole = 2
const point = 3
const fraction = 4
const exponent = 5
const exponentSign = 6
const exponentDigits = 7

const noBytes = Buffer.alloc(0)

export interface ScannerOptions {
  /** Reports names and values of containers that are nested at most so deep. Default 0: only the value itself. */
  readonly watched?: number
  /** Maximum depth of a value; default `maxDepth`. */
  readonly depth?: number
  /** Throws TooManyValues when `values` exceeds this. Default: no limit. */
  readonly values?: number | undefined
}

export class JsonScanner {
  /** Reports names and values of containers that are nested at most so deep. */
  watched: number
  /** Number of open containers. */
  depth = 0
  /** Number of values that have begun. The user may reset it. */
  values = 0
  /** The latest name that was reported, decoded. */
  name = ''
  readonly #maxDepth: number
  readonly #maxValues: number
  #chunk: Buffer = noBytes
  /** Offset of the chunk, for errors. */
  #offset = 0
  #at = 0
  #next = anyValue
  /** True for an object, false for an array; one entry per open container. */
  readonly #nesting: boolean[] = []
  /** The range of the current name in its last chunk, and its bytes from earlier chunks. */
  #nameChunk: Buffer = noBytes
  #nameFrom = 0
  #nameTo = 0
  #nameBefore: Buffer | undefined
  /** Hexadecimal digits that an escape still needs; -1 after a backslash. */
  #escape = 0
  #number = minus
  #numberBytes = 0
  #word = ''
  #wordAt = 0
  /** The value at `at` was reported. */
  #isReported = false

  constructor({ watched = 0, depth = maxDepth, values = Infinity }: ScannerOptions = {}) {
    this.watched = watched
    this.#maxDepth = depth
    this.#maxValues = values
  }

  /** Index in the chunk: the first byte of a value, or the byte after a name or value. */
  get at(): number {
    return this.#at
  }

  /** True when the value has ended; only white space may follow. */
  get isDone(): boolean {
    return this.#next === done
  }

  /** Length of `rawName`. */
  get nameBytes(): number {
    return this.#nameTo - this.#nameFrom + (this.#nameBefore?.length ?? 0)
  }

  /** The latest name that was reported, as it was written, with its quotes. */
  get rawName(): Buffer {
    const part = this.#nameChunk.subarray(this.#nameFrom, this.#nameTo)
    return this.#nameBefore ? Buffer.concat([this.#nameBefore, part]) : part
  }

  /** Ends the text. Returns true when the value is complete. */
  end(): boolean {
    if (this.#next === inNumber && this.depth === 0 && isNumberEnd(this.#number)) this.#next = done
    return this.isDone
  }

  /** Continues with the next chunk. */
  feed(chunk: Buffer, offset = 0): void {
    this.#chunk = chunk
    this.#offset = offset
    this.#at = 0
  }

  /** Continues to the next stop. Throws JsonError. */
  advance(): Stop {
    const chunk = this.#chunk
    if (this.#next > done) {
      const stop = this.#resume(chunk)
      if (stop) return stop
    }
    while (this.#at < chunk.length) {
      const c = chunk[this.#at] ?? 0
      const stop =
        c <= 0x20 && (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09)
          ? this.#blanks(chunk)
          : this.#token(c, chunk)
      if (stop) return stop
    }
    return 'chunk'
  }

  #blanks(chunk: Buffer): undefined {
    this.#at = skipWhitespace(chunk, this.#at)
  }

  /** Continues the token that the last chunk ended in. */
  #resume(chunk: Buffer): Stop | undefined {
    if (this.#next === inNumber) return this.#digits(chunk)
    if (this.#next === inWord) return this.#letters(chunk)
    return this.#next === inText ? this.#text(chunk) : this.#restOfName(chunk)
  }

  #token(c: number, chunk: Buffer): Stop | undefined {
    switch (this.#next) {
      case anyValue:
        return this.#value(c, chunk)
      case firstItem:
        return c === closeArray ? this.#close() : this.#value(c, chunk)
      case firstName:
        return c === closeObject ? this.#close() : this.#beginName(c, chunk)
      case anyName:
        return this.#beginName(c, chunk)
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

  #value(c: number, chunk: Buffer): Stop | undefined {
    if (this.depth <= this.watched && !this.#isReported) {
      this.#checkDepth()
      this.#isReported = true
      return 'value'
    }
    this.#checkDepth()
    this.#isReported = false
    if (++this.values > this.#maxValues) throw new TooManyValues(this.#offset + this.#at)
    if (c === quoteByte) {
      this.#at++
      this.#next = inText
      return this.#text(chunk)
    }
    if (c === openObject || c === openArray) {
      this.#nesting[this.depth++] = c === openObject
      this.#next = c === openObject ? firstName : firstItem
      this.#at++
      return undefined
    }
    if (c === 0x2d || isDigit(c)) {
      this.#next = inNumber
      this.#number = c === 0x2d ? minus : c === 0x30 ? zero : whole
      this.#numberBytes = 1
      this.#at++
      return this.#digits(chunk)
    }
    this.#word = c === 0x74 ? 'true' : c === 0x66 ? 'false' : 'null'
    this.#wordAt = 0
    this.#next = inWord
    return this.#letters(chunk)
  }

  #checkDepth(): void {
    if (this.depth > this.#maxDepth) throw this.#error('nesting too deep')
  }

  #beginName(c: number, chunk: Buffer): Stop | undefined {
    this.#checkDepth()
    if (c !== quoteByte) throw this.#error('string expected')
    this.#next = inName
    this.#nameFrom = this.#at
    this.#nameBefore = undefined
    this.#at++
    return this.#restOfName(chunk)
  }

  #afterValue(c: number): Stop | undefined {
    const inObject = this.#nesting[this.depth - 1] === true
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
    return this.depth <= this.watched ? 'end' : undefined
  }

  #digits(chunk: Buffer): Stop | undefined {
    let at = this.#at
    const before = at
    let state = this.#number
    while (at < chunk.length) {
      const next = afterDigit(state, chunk[at] ?? 0)
      if (next < 0) break
      state = next
      at++
    }
    this.#number = state
    this.#at = at
    this.#numberBytes += at - before
    if (this.#numberBytes > maxNumberBytes) throw this.#error('number too long')
    if (at === chunk.length) return undefined
    if (!isNumberEnd(state)) throw this.#error('digit expected')
    return this.#ended()
  }

  #letters(chunk: Buffer): Stop | undefined {
    const word = this.#word
    while (this.#wordAt < word.length) {
      if (this.#at === chunk.length) return undefined
      if (chunk[this.#at] !== word.charCodeAt(this.#wordAt)) throw this.#error('value expected')
      this.#at++
      this.#wordAt++
    }
    return this.#ended()
  }

  #text(chunk: Buffer): Stop | undefined {
    return this.#isAfterText(chunk) ? this.#ended() : undefined
  }

  #restOfName(chunk: Buffer): Stop | undefined {
    const isWatched = this.depth <= this.watched
    if (this.#isAfterText(chunk)) {
      this.#next = afterName
      return isWatched ? this.#endName(chunk) : undefined
    }
    if (!isWatched) return undefined
    const part = chunk.subarray(this.#nameFrom)
    this.#nameBefore = this.#nameBefore ? Buffer.concat([this.#nameBefore, part]) : Buffer.from(part)
    this.#nameFrom = 0
    this.#checkName(this.#nameBefore.length)
    return undefined
  }

  #endName(chunk: Buffer): Stop {
    this.#nameChunk = chunk
    this.#nameTo = this.#at
    this.#checkName(this.nameBytes)
    const raw = this.#nameBefore ? this.rawName : undefined
    this.name = raw ? readString(raw, 0, raw.length) : readString(chunk, this.#nameFrom, this.#at)
    return 'name'
  }

  #checkName(bytes: number): void {
    if (bytes > maxNameBytes) throw this.#error('name too long')
  }

  /** Reads the rest of a string. Returns true when it has ended, and false when the chunk has. */
  #isAfterText(chunk: Buffer): boolean {
    let i = this.#at
    if (this.#escape !== 0) i = this.#restOfEscape(chunk, i)
    let turn = i + longRun
    while (i < chunk.length) {
      const c = chunk[i] ?? 0
      if (c === quoteByte) {
        this.#at = i + 1
        return true
      }
      if (c === backslashByte) {
        if (simpleEscapes[chunk[i + 1] ?? 0]) i += 2
        else {
          this.#escape = -1
          i = this.#restOfEscape(chunk, i + 1)
        }
        turn = i + longRun
      } else if (c < 0x20) {
        this.#at = i
        throw this.#error('unfinished string')
      } else i++
      if (i >= turn && i < chunk.length) {
        i = skipPlain(chunk, i)
        turn = i + longRun
      }
    }
    this.#at = i
    return false
  }

  /** Reads the rest of an escape. Returns the index after the part of it that is in the chunk. */
  #restOfEscape(chunk: Buffer, at: number): number {
    let i = at
    for (; this.#escape !== 0 && i < chunk.length; i++) {
      const c = chunk[i] ?? 0
      if (this.#escape > 0) {
        if (!hexDigits[c]) throw new JsonError('bad unicode escape', this.#offset + i)
        this.#escape--
      } else if (c === 0x75) this.#escape = 4
      else if (simpleEscapes[c]) this.#escape = 0
      else throw new JsonError('bad escape', this.#offset + i)
    }
    return i
  }

  #error(what: string): JsonError {
    return new JsonError(what, this.#offset + this.#at)
  }
}

/** 1 for the hexadecimal digits. */
const hexDigits = new Uint8Array(256)
for (const digit of '0123456789abcdefABCDEF') hexDigits[digit.charCodeAt(0)] = 1

/** 1 for characters that form an escape with the backslash alone. */
const simpleEscapes = new Uint8Array(256)
for (const letter of '"\\/bfnrt') simpleEscapes[letter.charCodeAt(0)] = 1

function isDigit(c: number): boolean {
  return c >= 0x30 && c <= 0x39
}

function isNumberEnd(state: number): boolean {
  return state === zero || state === whole || state === fraction || state === exponentDigits
}

/** Returns the state of a number after one more byte; -1 when the byte does not belong to it. */
function afterDigit(state: number, c: number): number {
  if (isDigit(c)) {
    if (state === whole || state === fraction || state === exponentDigits) return state
    if (state === minus) return c === 0x30 ? zero : whole
    if (state === zero) return -1
    return state === point ? fraction : exponentDigits
  }
  if (c === 0x2e) return state === zero || state === whole ? point : -1
  if (c === 0x65 || c === 0x45) return state === zero || state === whole || state === fraction ? exponent : -1
  return (c === 0x2b || c === 0x2d) && state === exponent ? exponentSign : -1
}
