/**
 * Walks a JSON value as bytes, like json-scan.ts, but stops wherever it is told to and goes on from there: a large value is
 * read in many turns of the event loop. Accepts what json-scan.ts accepts, but for numbers of more than 64 KiB.
 */
import {
  afterEscape,
  JsonError,
  LONG_RUN,
  MAX_DEPTH,
  skipPlain,
  skipScalar,
  skipWhitespace,
} from './json-scan.ts'

const MAX_NUMBER = 64 * 1024

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const COLON = 0x3a
const COMMA = 0x2c

/** What comes next. */
const VALUE = 0
/** A value, or the end of an array. */
const FIRST_ITEM = 1
const NAME = 2
/** A name, or the end of an object. */
const FIRST_NAME = 3
const AFTER_NAME = 4
const AFTER_VALUE = 5
const IN_STRING = 6
const IN_NAME = 7
const DONE = 8

export class JsonWalk {
  readonly #text: Uint8Array
  /** 1 = inside an object, 0 = inside an array; one entry per open container. */
  readonly #nesting = new Uint8Array(MAX_DEPTH + 2)
  #at = 0
  #depth = 0
  #next = DONE

  constructor(text: Uint8Array) {
    this.#text = text
  }

  /** Where the walk is: the index after the value once that has been walked. */
  get at(): number {
    return this.#at
  }

  /** `at` is the first byte of a value. */
  start(at: number): void {
    this.#at = at
    this.#depth = 0
    this.#next = VALUE
  }

  /** Goes on to about `limit`. True when the value has ended. Throws JsonError. */
  advance(limit: number): boolean {
    const until = Math.min(limit, this.#text.length)
    const part = this.#text.subarray(0, until)
    const wide = this.#text.subarray(0, until + MAX_NUMBER + 1)
    while (this.#next !== DONE) {
      if (this.#at >= until) {
        if (until >= this.#text.length) throw new JsonError('unfinished value', this.#at)
        return false
      }
      if (this.#next === IN_STRING || this.#next === IN_NAME) this.#string(part)
      else {
        const c = part[this.#at]
        if (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) this.#at = skipWhitespace(part, this.#at)
        else this.#token(c, wide)
      }
    }
    return true
  }

  /** One token; `c` is its first byte, no white space. */
  #token(c: number | undefined, wide: Uint8Array): void {
    switch (this.#next) {
      case FIRST_ITEM:
        if (c === CLOSE_ARRAY) this.#close()
        else this.#value(c, wide)
        return
      case VALUE:
        this.#value(c, wide)
        return
      case FIRST_NAME:
        if (c === CLOSE_OBJECT) this.#close()
        else this.#name(c)
        return
      case NAME:
        this.#name(c)
        return
      case AFTER_NAME:
        if (c !== COLON) throw new JsonError('colon expected', this.#at)
        this.#at++
        this.#next = VALUE
        return
      default:
        this.#afterValue(c)
    }
  }

  #value(c: number | undefined, wide: Uint8Array): void {
    if (this.#depth > MAX_DEPTH) throw new JsonError('nesting too deep', this.#at)
    if (c === OPEN_OBJECT || c === OPEN_ARRAY) {
      const inObject = c === OPEN_OBJECT
      this.#nesting[++this.#depth] = inObject ? 1 : 0
      this.#at++
      this.#next = inObject ? FIRST_NAME : FIRST_ITEM
    } else if (c === QUOTE) {
      this.#at++
      this.#next = IN_STRING
    } else {
      const end = skipScalar(wide, this.#at)
      if (end - this.#at > MAX_NUMBER) throw new JsonError('number too long', this.#at)
      this.#at = end
      this.#ended()
    }
  }

  #name(c: number | undefined): void {
    if (this.#depth > MAX_DEPTH) throw new JsonError('nesting too deep', this.#at)
    if (c !== QUOTE) throw new JsonError('string expected', this.#at)
    this.#at++
    this.#next = IN_NAME
  }

  #afterValue(c: number | undefined): void {
    const inObject = this.#nesting[this.#depth] === 1
    if (c === COMMA) {
      this.#at++
      this.#next = inObject ? NAME : VALUE
    } else if (c === (inObject ? CLOSE_OBJECT : CLOSE_ARRAY)) this.#close()
    else throw new JsonError('comma or end expected', this.#at)
  }

  #close(): void {
    this.#at++
    this.#depth--
    this.#ended()
  }

  #ended(): void {
    this.#next = this.#depth === 0 ? DONE : AFTER_VALUE
  }

  /** The rest of a string, as far as `part` goes. An escape may go beyond. */
  #string(part: Uint8Array): void {
    let i = this.#at
    let turn = i + LONG_RUN
    while (i < part.length) {
      const c = part[i]
      if (c === QUOTE) {
        this.#at = i + 1
        if (this.#next === IN_NAME) this.#next = AFTER_NAME
        else this.#ended()
        return
      }
      if (c === BACKSLASH) {
        i = afterEscape(this.#text, i)
        turn = i + LONG_RUN
      } else if (c === undefined || c < 0x20) throw new JsonError('unfinished string', i)
      else i++
      if (i >= turn && i < part.length) {
        i = skipPlain(part, i)
        turn = i + LONG_RUN
      }
    }
    this.#at = i
  }
}
