/**
 * Walks a JSON value as bytes, like scan.ts, but stops wherever it is told to and goes on from there: a large value is
 * read in many turns of the event loop. Accepts what scan.ts accepts, but for numbers of more than 64 KiB.
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
import { afterEscape, JsonError, longRun, maxDepth, skipPlain, skipScalar, skipWhitespace } from './scan.ts'

const maxNumber = 64 * 1024

/** What comes next. */
const anyValue = 0
/** A value, or the end of an array. */
const firstItem = 1
const anyName = 2
/** A name, or the end of an object. */
const firstName = 3
const afterName = 4
const afterValue = 5
const inString = 6
const inName = 7
const done = 8

export class JsonWalk {
  readonly #text: Uint8Array
  /** 1 = inside an object, 0 = inside an array; one entry per open container. */
  readonly #nesting = new Uint8Array(maxDepth + 2)
  #at = 0
  #depth = 0
  #next = done

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
    this.#next = anyValue
  }

  /** Goes on to about `limit`. True when the value has ended. Throws JsonError. */
  advance(limit: number): boolean {
    const until = Math.min(limit, this.#text.length)
    const part = this.#text.subarray(0, until)
    const wide = this.#text.subarray(0, until + maxNumber + 1)
    while (this.#next !== done) {
      if (this.#at >= until) {
        if (until >= this.#text.length) throw new JsonError('unfinished value', this.#at)
        return false
      }
      if (this.#next === inString || this.#next === inName) this.#string(part)
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
      case firstItem:
        if (c === closeArray) this.#close()
        else this.#value(c, wide)
        return
      case anyValue:
        this.#value(c, wide)
        return
      case firstName:
        if (c === closeObject) this.#close()
        else this.#name(c)
        return
      case anyName:
        this.#name(c)
        return
      case afterName:
        if (c !== colonByte) throw new JsonError('colon expected', this.#at)
        this.#at++
        this.#next = anyValue
        return
      default:
        this.#afterValue(c)
    }
  }

  #value(c: number | undefined, wide: Uint8Array): void {
    if (this.#depth > maxDepth) throw new JsonError('nesting too deep', this.#at)
    if (c === openObject || c === openArray) {
      const inObject = c === openObject
      this.#nesting[++this.#depth] = inObject ? 1 : 0
      this.#at++
      this.#next = inObject ? firstName : firstItem
    } else if (c === quoteByte) {
      this.#at++
      this.#next = inString
    } else {
      const end = skipScalar(wide, this.#at)
      if (end - this.#at > maxNumber) throw new JsonError('number too long', this.#at)
      this.#at = end
      this.#ended()
    }
  }

  #name(c: number | undefined): void {
    if (this.#depth > maxDepth) throw new JsonError('nesting too deep', this.#at)
    if (c !== quoteByte) throw new JsonError('string expected', this.#at)
    this.#at++
    this.#next = inName
  }

  #afterValue(c: number | undefined): void {
    const inObject = this.#nesting[this.#depth] === 1
    if (c === commaByte) {
      this.#at++
      this.#next = inObject ? anyName : anyValue
    } else if (c === (inObject ? closeObject : closeArray)) this.#close()
    else throw new JsonError('comma or end expected', this.#at)
  }

  #close(): void {
    this.#at++
    this.#depth--
    this.#ended()
  }

  #ended(): void {
    this.#next = this.#depth === 0 ? done : afterValue
  }

  /** The rest of a string, as far as `part` goes. An escape may go beyond. */
  #string(part: Uint8Array): void {
    let i = this.#at
    let turn = i + longRun
    while (i < part.length) {
      const c = part[i]
      if (c === quoteByte) {
        this.#at = i + 1
        if (this.#next === inName) this.#next = afterName
        else this.#ended()
        return
      }
      if (c === backslashByte) {
        i = afterEscape(this.#text, i)
        turn = i + longRun
      } else if (c === undefined || c < 0x20) throw new JsonError('unfinished string', i)
      else i++
      if (i >= turn && i < part.length) {
        i = skipPlain(part, i)
        turn = i + longRun
      }
    }
    this.#at = i
  }
}
