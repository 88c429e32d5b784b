/**
 * Checks one JSON value completely (RFC 8259) without building the value, and reports where names and values begin and
 * end. A caller can then replace one member while the rest of the message keeps its exact bytes (large numbers,
 * escapes, unknown members).
 *
 * The text may arrive in chunks, and the caller can discard each chunk. The scanner stops at the end of a chunk and
 * continues with the next one. The scanner does not check strings for UTF-8, and does not compare names.
 */
import {
  backslashByte,
  closeArray,
  closeObject,
  colonByte,
  commaByte,
  firstInWord,
  hexDigits,
  openArray,
  openObject,
  quoteByte,
  readString,
  scalarStart,
  scalarSteps,
  simpleEscapes,
  skipText,
  skipWhitespace,
  zero,
} from './bytes.ts'
import { JsonBoundError, JsonError, maxDepth, maxNameBytes, maxNumberBytes } from './errors.ts'

/**
 * The place where the scanner stopped: the end of the chunk, a name, the first byte of a value, or the end of a value.
 */
export type Stop = 'chunk' | 'name' | 'value' | 'end'

// States that describe what the scanner expects next.
const anyValue = 0
/** State in which a value or the end of an array is expected. */
const firstItem = 1
const anyName = 2
/** State in which a name or the end of an object is expected. */
const firstName = 3
const afterName = 4
const afterValue = 5
const done = 6
/** State after a chunk that ended within a token. */
const inScalar = 7
const inText = 8
const inName = 9

const noBytes = Buffer.alloc(0)

export interface ScannerOptions {
  /**
   * Maximum nesting depth at which names and values are reported. The default is 0, which reports only the value
   * itself.
   */
  readonly watched?: number
  /**
   * Maximum number of values. The scanner throws JsonBoundError if there are more values. By default, there is no
   * limit.
   */
  readonly values?: number | undefined
}

export class JsonScanner {
  /** Maximum nesting depth at which names and values are reported. */
  watched: number
  /** Number of open containers. */
  depth = 0
  /** Number of values that have begun. Callers may reset this number. */
  values = 0
  /** The decoded name that was reported last. */
  name = ''
  /** Length of the last name as written, including the quotes. */
  nameBytes = 0
  readonly #maxValues: number
  #chunk: Buffer = noBytes
  /** Offset of the chunk, for error messages. */
  #offset = 0
  #at = 0
  #next = anyValue
  /** Kinds of the open containers. True for an object, and false for an array. */
  readonly #nesting: boolean[] = []
  /** The range of the current name in its last chunk, and the name's bytes from earlier chunks. */
  #nameChunk: Buffer = noBytes
  #nameFrom = 0
  #nameTo = 0
  #nameBefore: Buffer | undefined
  /** Number of hexadecimal digits that an escape still needs. -1 after a backslash. */
  #escape = 0
  /** State of a partially read number or word (see `scalarSteps`). */
  #scalar = scalarStart
  #scalarBytes = 0
  /** True once the value at `at` has been reported. */
  #isReported = false

  constructor({ watched = 0, values = Infinity }: ScannerOptions = {}) {
    this.watched = watched
    this.#maxValues = values
  }

  /** Index in the chunk. Refers to the first byte of a value, or to the byte after a name or value. */
  get at(): number {
    return this.#at
  }

  /** True once the value has ended. Only whitespace may follow. */
  get isDone(): boolean {
    return this.#next === done
  }

  /** The last name that was reported, as written and including the quotes. */
  get rawName(): Buffer {
    const part = this.#nameChunk.subarray(this.#nameFrom, this.#nameTo)
    return this.#nameBefore ? Buffer.concat([this.#nameBefore, part]) : part
  }

  /** Ends the text. Returns true if the value is complete. */
  end(): boolean {
    if (this.#next === inScalar && this.depth === 0 && this.#scalar >= zero) this.#next = done
    return this.isDone
  }

  /** Continues with the next chunk. */
  feed(chunk: Buffer, offset = 0): void {
    this.#chunk = chunk
    this.#offset = offset
    this.#at = 0
  }

  /** Continues to the next stop. Throws JsonError if the text is invalid. */
  advance(): Stop {
    const chunk = this.#chunk
    if (this.#next > done) {
      const stop = this.#resume(chunk)
      if (stop) return stop
    }
    while (this.#at < chunk.length) {
      const c = chunk[this.#at] ?? 0
      if (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) this.#at = skipWhitespace(chunk, this.#at)
      else {
        const stop = this.#token(c, chunk)
        if (stop) return stop
      }
    }
    return 'chunk'
  }

  /** Continues the token in which the last chunk ended. */
  #resume(chunk: Buffer): Stop | undefined {
    if (this.#next === inScalar) return this.#restOfScalar(chunk)
    if (this.#next === inName) return this.#restOfName(chunk)
    return this.#isAfterText(chunk) ? this.#ended() : undefined
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
    this.#checkDepth()
    if (this.depth <= this.watched && !this.#isReported) {
      this.#isReported = true
      return 'value'
    }
    this.#isReported = false
    if (++this.values > this.#maxValues)
      throw this.#beyond(`a member has more than ${this.#maxValues} values`)
    if (c === quoteByte) {
      this.#at++
      this.#next = inText
      return this.#isAfterText(chunk) ? this.#ended() : undefined
    }
    if (c === openObject || c === openArray) {
      this.#nesting[this.depth++] = c === openObject
      this.#next = c === openObject ? firstName : firstItem
      this.#at++
      return undefined
    }
    this.#next = inScalar
    this.#scalar = scalarStart
    this.#scalarBytes = 0
    return this.#restOfScalar(chunk)
  }

  #checkDepth(): void {
    if (this.depth > maxDepth + 1) throw this.#beyond(`values are nested more than ${maxDepth} levels deep`)
  }

  #beginName(c: number, chunk: Buffer): Stop | undefined {
    this.#checkDepth()
    if (c !== quoteByte) throw this.#error('string expected')
    this.#next = inName
    this.#nameFrom = this.#at
    this.#nameBefore = undefined
    this.nameBytes = 0
    this.#at++
    return this.#restOfName(chunk)
  }

  #afterValue(c: number): Stop | undefined {
    const inObject = this.#nesting[this.depth - 1] === true
    if (c === (inObject ? closeObject : closeArray)) return this.#close()
    if (c !== commaByte) throw this.#error('comma or end expected')
    this.#at++
    this.#next = inObject ? anyName : anyValue
    return undefined
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

  #restOfScalar(chunk: Buffer): Stop | undefined {
    let at = this.#at
    let state = this.#scalar
    for (; at < chunk.length; at++) {
      const next = scalarSteps[state * 256 + (chunk[at] ?? 0)] ?? 0
      if (next === 0) break
      state = next
    }
    this.#scalarBytes += at - this.#at
    this.#scalar = state
    this.#at = at
    if (this.#scalarBytes > maxNumberBytes)
      throw this.#beyond(`a number is longer than ${maxNumberBytes} bytes`)
    if (at === chunk.length) return undefined
    if (state >= zero) return this.#ended()
    throw this.#error(state === scalarStart || state >= firstInWord ? 'value expected' : 'digit expected')
  }

  #restOfName(chunk: Buffer): Stop | undefined {
    const isEnd = this.#isAfterText(chunk)
    this.nameBytes += this.#at - this.#nameFrom
    if (this.nameBytes > maxNameBytes) throw this.#beyond(`a name is longer than ${maxNameBytes} bytes`)
    this.#nameChunk = chunk
    this.#nameTo = this.#at
    const isWatched = this.depth <= this.watched
    if (!isEnd) {
      // Copy the name, because the caller may discard the chunk.
      if (isWatched) this.#nameBefore = Buffer.from(this.rawName)
      this.#nameFrom = 0
      return undefined
    }
    this.#next = afterName
    if (!isWatched) return undefined
    const { rawName } = this
    this.name = readString(rawName, 0, rawName.length)
    return 'name'
  }

  /** Reads the rest of a string. Returns true if the string has ended, and false if the chunk has ended first. */
  #isAfterText(chunk: Buffer): boolean {
    let i = this.#escape === 0 ? this.#at : this.#restOfEscape(chunk, this.#at)
    for (;;) {
      i = skipText(chunk, i)
      const c = chunk[i]
      if (c === backslashByte) {
        this.#escape = -1
        i = this.#restOfEscape(chunk, i + 1)
        continue
      }
      this.#at = c === quoteByte ? i + 1 : i
      if (c === quoteByte) return true
      if (c === undefined) return false
      throw this.#error('unfinished string')
    }
  }

  /** Reads the rest of an escape. Returns the index after the part of the escape that is in this chunk. */
  #restOfEscape(chunk: Buffer, at: number): number {
    let i = at
    for (; this.#escape !== 0 && i < chunk.length; i++) {
      const c = chunk[i] ?? 0
      if (this.#escape > 0) {
        if (!hexDigits[c]) throw new JsonError('invalid Unicode escape', this.#offset + i)
        this.#escape--
      } else if (c === 0x75) this.#escape = 4
      else if (simpleEscapes[c]) this.#escape = 0
      else throw new JsonError('invalid escape', this.#offset + i)
    }
    return i
  }

  #beyond(bound: string): JsonBoundError {
    return new JsonBoundError(bound, this.#offset + this.#at)
  }

  #error(what: string): JsonError {
    return new JsonError(what, this.#offset + this.#at)
  }
}
