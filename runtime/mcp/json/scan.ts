/**
 * Walks JSON text as bytes: checks it completely (RFC 8259) and says where values begin and end, without building
 * them. That is what lets a message keep its exact bytes (large numbers, escapes, unknown members) while one member
 * of it is replaced.
 *
 * Strings are checked for control characters and escapes, not for UTF-8: the caller does that once per message.
 * Every error is thrown as JsonError.
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
import { ModuleError } from '../../../schemas/index.ts'

export class JsonError extends ModuleError {
  constructor(what: string, offset: number) {
    super(`${what} at byte ${offset}`)
  }
}

/** The same member twice in one object. */
export class DuplicateMember extends JsonError {
  constructor() {
    super('duplicate member', 0)
  }
}

/** An object with more members than are read. */
export class TooManyMembers extends JsonError {
  constructor(offset: number) {
    super('too many members', offset)
  }
}

/** A text with more values than the reader takes. */
export class TooManyValues extends JsonError {
  constructor(offset: number) {
    super('too many values', offset)
  }
}

/** Nesting beyond this is refused: no honest message comes near it, and readers further on may recurse. */
export const maxDepth = 256

/** An object that is read member by member has at most this many; comparing the names of more holds the event loop. */
export const maxMembers = 10_000

/** 1 = inside an object, 0 = inside an array; one entry per open container. Scanning is synchronous, so one is enough. */
const nesting = new Uint8Array(maxDepth + 1)

/** Runs of blanks, and texts, longer than this are read four bytes at a time. */
export const longRun = 64

export function skipWhitespace(text: Uint8Array, at: number): number {
  const long = at + longRun
  for (let i = at; i < long; i++) {
    const c = text[i]
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return i
  }
  return skipBlanks(text, long)
}

/** 1 for two bytes that are both white space. */
const blankPairs = new Uint8Array(0x10000)
const blankBytes = [0x20, 0x0a, 0x0d, 0x09]
for (const a of blankBytes) for (const b of blankBytes) blankPairs[a * 256 + b] = 1

function skipBlanks(text: Uint8Array, at: number): number {
  let i = at
  while (((text.byteOffset + i) & 3) !== 0 && isBlank(text[i])) i++
  if (((text.byteOffset + i) & 3) !== 0) return i
  const words = wordsFrom(text, i)
  let k = 0
  while (k < words.length) {
    const word = words[k] ?? 0
    if (blankPairs[word & 0xffff] !== 1 || blankPairs[word >>> 16] !== 1) break
    k++
  }
  i += k * 4
  while (isBlank(text[i])) i++
  return i
}

function isBlank(c: number | undefined): boolean {
  return c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09
}

/** The whole words of four bytes from `at` on, which is aligned. */
function wordsFrom(text: Uint8Array, at: number): Int32Array {
  return new Int32Array(text.buffer, text.byteOffset + at, (text.length - at) >> 2)
}

/** 1 for the hexadecimal digits. */
const hex = new Uint8Array(256)
for (const digit of '0123456789abcdefABCDEF') hex[digit.charCodeAt(0)] = 1

/** 1 for what may follow a backslash by itself. */
const simpleEscapes = new Uint8Array(256)
for (const letter of '"\\/bfnrt') simpleEscapes[letter.charCodeAt(0)] = 1

export function isHexDigit(c: number): boolean {
  return hex[c] === 1
}

/** True for what may follow a backslash by itself. */
export function isSimpleEscape(c: number): boolean {
  return simpleEscapes[c] === 1
}

/** `at` is what follows the backslash of any other escape. */
function skipEscape(text: Uint8Array, at: number): number {
  if (text[at] !== 0x75) throw new JsonError('bad escape', at)
  if (hex[text[at + 1] ?? 0] && hex[text[at + 2] ?? 0] && hex[text[at + 3] ?? 0] && hex[text[at + 4] ?? 0])
    return at + 5
  throw new JsonError('bad unicode escape', at)
}

/** `at` is a backslash; answers the index after the escape. */
export function afterEscape(text: Uint8Array, at: number): number {
  return simpleEscapes[text[at + 1] ?? 0] === 1 ? at + 2 : skipEscape(text, at + 1)
}

/** `at` is the opening quote; answers the index after the closing one. */
export function skipString(text: Uint8Array, at: number): number {
  if (text[at] !== quoteByte) throw new JsonError('string expected', at)
  let i = at + 1
  let turn = i + longRun
  for (;;) {
    const c = text[i]
    if (c === quoteByte) return i + 1
    if (c === backslashByte) {
      i = afterEscape(text, i)
      turn = i + longRun
    } else if (c === undefined || c < 0x20) throw new JsonError('unfinished string', i)
    else i++
    if (i >= turn) {
      i = skipPlain(text, i)
      turn = i + longRun
    }
  }
}

/** Skips whole words of four bytes in which nothing special is: no quote, no backslash, no control character. */
export function skipPlain(text: Uint8Array, at: number): number {
  let i = at
  while (((text.byteOffset + i) & 3) !== 0) {
    const c = text[i]
    if (c === undefined || c === quoteByte || c === backslashByte || c < 0x20) return i
    i++
  }
  const words = wordsFrom(text, i)
  let k = 0
  for (const end = words.length & ~3; k < end; k += 4) {
    const first = special(words[k] ?? 0) | special(words[k + 1] ?? 0)
    if ((first | special(words[k + 2] ?? 0) | special(words[k + 3] ?? 0)) !== 0) break
  }
  while (k < words.length && special(words[k] ?? 0) === 0) k++
  return i + k * 4
}

/**
 * 0 when none of the four bytes is special. The tests are the usual ones for "has a byte below n" and "has a zero byte"; with
 * one bit changed, control characters and the quote are what is below 0x21.
 */
function special(word: number): number {
  const low = word ^ 0x02020202
  const backslash = word ^ 0x5c5c5c5c
  return (((low - 0x21212121) & ~low) | ((backslash - 0x01010101) & ~backslash)) & 0x80808080
}

function isDigit(c: number | undefined): boolean {
  return c !== undefined && c >= 0x30 && c <= 0x39
}

function skipDigits(text: Uint8Array, at: number): number {
  if (!isDigit(text[at])) throw new JsonError('digit expected', at)
  let i = at + 1
  while (isDigit(text[i])) i++
  return i
}

function skipNumber(text: Uint8Array, at: number): number {
  let i = text[at] === 0x2d ? at + 1 : at
  i = text[i] === 0x30 ? i + 1 : skipDigits(text, i)
  if (text[i] === 0x2e) i = skipDigits(text, i + 1)
  if (text[i] === 0x65 || text[i] === 0x45) {
    i++
    if (text[i] === 0x2b || text[i] === 0x2d) i++
    i = skipDigits(text, i)
  }
  return i
}

function skipWord(text: Uint8Array, at: number, word: string): number {
  for (let k = 0; k < word.length; k++) {
    if (text[at + k] !== word.charCodeAt(k)) throw new JsonError('value expected', at)
  }
  return at + word.length
}

export function skipScalar(text: Uint8Array, at: number): number {
  switch (text[at]) {
    case quoteByte:
      return skipString(text, at)
    case 0x74:
      return skipWord(text, at, 'true')
    case 0x66:
      return skipWord(text, at, 'false')
    case 0x6e:
      return skipWord(text, at, 'null')
    default:
      return skipNumber(text, at)
  }
}

/** `at` is where a member name begins; answers where its value begins. */
function skipName(text: Uint8Array, at: number): number {
  const i = skipWhitespace(text, skipString(text, at))
  if (text[i] !== colonByte) throw new JsonError('colon expected', i)
  return skipWhitespace(text, i + 1)
}

/**
 * `at` is the first byte of a value; answers the index after it. Throws TooManyValues when it holds more than `maxValues`
 * values, itself included.
 */
function skipValue(text: Uint8Array, at: number, maxValues = Infinity): number {
  let i = at
  let depth = 0
  let values = 0
  for (;;) {
    if (++values > maxValues) throw new TooManyValues(i)
    const c = text[i]
    let opened = false
    if (c === openObject || c === openArray) {
      const inObject = c === openObject
      i = skipWhitespace(text, i + 1)
      if (text[i] === (inObject ? closeObject : closeArray)) i++
      else {
        if (depth === maxDepth) throw new JsonError('nesting too deep', i)
        nesting[++depth] = inObject ? 1 : 0
        if (inObject) i = skipName(text, i)
        opened = true
      }
    } else {
      i = skipScalar(text, i)
    }
    if (opened) continue
    for (;;) {
      if (depth === 0) return i
      i = skipWhitespace(text, i)
      const inObject = nesting[depth] === 1
      const d = text[i]
      if (d === commaByte) {
        i = skipWhitespace(text, i + 1)
        if (inObject) i = skipName(text, i)
        break
      }
      if (d !== (inObject ? closeObject : closeArray)) throw new JsonError('comma or end expected', i)
      i++
      depth--
    }
  }
}

/** One member of an object: its decoded name, where the name begins, and the range of the value. */
export interface JsonMember {
  readonly name: string
  readonly nameAt: number
  readonly from: number
  readonly to: number
}

/** The string between two quotes. */
export function readString(text: Buffer, from: number, to: number): string {
  const raw = text.toString('utf8', from + 1, to - 1)
  return raw.includes('\\') ? String(JSON.parse(`"${raw}"`)) : raw
}

/**
 * The members of the object that begins at `at` and the index after its closing brace. Values are checked in full.
 * Names are not compared: see JsonObject for that. Throws TooManyMembers beyond `maxMembers`, and TooManyValues when one
 * member has more than `maxValues`.
 */
export function scanMembers(
  text: Buffer,
  at: number,
  maxValues = Infinity,
): { members: JsonMember[]; end: number } {
  if (text[at] !== openObject) throw new JsonError('object expected', at)
  const members: JsonMember[] = []
  let i = skipWhitespace(text, at + 1)
  if (text[i] === closeObject) return { members, end: i + 1 }
  for (;;) {
    const nameAt = i
    const nameEnd = skipString(text, i)
    i = skipWhitespace(text, nameEnd)
    if (text[i] !== colonByte) throw new JsonError('colon expected', i)
    const from = skipWhitespace(text, i + 1)
    const to = skipValue(text, from, maxValues)
    if (members.length === maxMembers) throw new TooManyMembers(nameAt)
    members.push({ name: readString(text, nameAt, nameEnd), nameAt, from, to })
    i = skipWhitespace(text, to)
    if (text[i] === closeObject) return { members, end: i + 1 }
    if (text[i] !== commaByte) throw new JsonError('comma or end expected', i)
    i = skipWhitespace(text, i + 1)
  }
}

/**
 * The elements of the array that begins at `at`, as slices of `text` (shared memory), checked in full. Throws JsonError
 * for more than `max`.
 */
export function scanElements(text: Buffer, at = 0, max = Number.POSITIVE_INFINITY): Buffer[] {
  const elements: Buffer[] = []
  visitElements(text, at, (from, to) => {
    if (elements.length >= max) throw new JsonError('too many elements', from)
    elements.push(text.subarray(from, to))
  })
  return elements
}

/** Calls `visit` with the range of each element of the array that begins at `at`; makes no slices of them. */
export function visitElements(text: Buffer, at: number, visit: (from: number, to: number) => void): void {
  if (text[at] !== openArray) throw new JsonError('array expected', at)
  let i = skipWhitespace(text, at + 1)
  if (text[i] === closeArray) return
  for (;;) {
    const to = skipValue(text, i)
    visit(i, to)
    i = skipWhitespace(text, to)
    if (text[i] === closeArray) return
    if (text[i] !== commaByte) throw new JsonError('comma or end expected', i)
    i = skipWhitespace(text, i + 1)
  }
}
