/** Bytes in JSON text (RFC 8259 section 2): structural characters, whitespace and runs of plain text. */
export const quoteByte = 0x22
export const backslashByte = 0x5c
export const openObject = 0x7b
export const closeObject = 0x7d
export const openArray = 0x5b
export const closeArray = 0x5d
export const colonByte = 0x3a
export const commaByte = 0x2c
/** The first byte of null. */
export const nullByte = 0x6e

/** Shared constants for JSON that is assembled from buffers. Do not write to these buffers. */
export const comma: Buffer = Buffer.from(',')
export const arrayStart: Buffer = Buffer.from('[')
export const arrayEnd: Buffer = Buffer.from(']')
export const objectStart: Buffer = Buffer.from('{')
export const objectEnd: Buffer = Buffer.from('}')
export const emptyObjectBytes: Buffer = Buffer.from('{}')

/** True for the raw JSON of null. */
export function isNull(raw: Buffer): boolean {
  return raw[0] === nullByte
}

/** Minimum length of a run of whitespace or plain text that is read four bytes at a time. */
const longRun = 64

function isBlank(c: number | undefined): boolean {
  return c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09
}

/** Returns the index of the first byte at or after `at` that is not whitespace. */
export function skipWhitespace(text: Uint8Array, at: number): number {
  const long = at + longRun
  for (let i = at; i < long; i++) if (!isBlank(text[i])) return i
  return skipBlankWords(text, long)
}

/** Table of byte pairs. An entry is 1 if both bytes are whitespace. */
const blankPairs = new Uint8Array(0x10000)
const blankBytes = [0x20, 0x0a, 0x0d, 0x09]
for (const a of blankBytes) for (const b of blankBytes) blankPairs[a * 256 + b] = 1

function skipBlankWords(text: Uint8Array, at: number): number {
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

/** Returns the complete four-byte words from the aligned position `at`. */
function wordsFrom(text: Uint8Array, at: number): Int32Array {
  return new Int32Array(text.buffer, text.byteOffset + at, (text.length - at) >> 2)
}

/** Skips whole four-byte words that contain no quote, no backslash and no control character. */
function skipPlain(text: Uint8Array, at: number): number {
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
 * Returns 0 if none of the four bytes is special. Uses the well-known tests for "has a byte below n" and "has a zero
 * byte". After one bit is flipped, control characters and the quote are the bytes below 0x21.
 */
function special(word: number): number {
  const low = word ^ 0x02020202
  const backslash = word ^ 0x5c5c5c5c
  return (((low - 0x21212121) & ~low) | ((backslash - 0x01010101) & ~backslash)) & 0x80808080
}

/** Decodes the string between two quotes. */
export function readString(text: Buffer, from: number, to: number): string {
  const raw = text.toString('utf8', from + 1, to - 1)
  return raw.includes('\\') ? String(JSON.parse(`"${raw}"`)) : raw
}

/** Table of bytes. An entry is 1 if the byte is neither a quote, a backslash nor a control character. */
export const plainBytes: Uint8Array = new Uint8Array(256).fill(1, 0x20)
plainBytes[quoteByte] = 0
plainBytes[backslashByte] = 0

/** Table of bytes. An entry is 1 for a hexadecimal digit. */
export const hexDigits = new Uint8Array(256)
for (const digit of '0123456789abcdefABCDEF') hexDigits[digit.charCodeAt(0)] = 1

/** Table of bytes. An entry is 1 for a character that completes an escape after a backslash. */
export const simpleEscapes = new Uint8Array(256)
for (const letter of '"\\/bfnrt') simpleEscapes[letter.charCodeAt(0)] = 1

/**
 * Skips the characters and complete escape sequences of a string. Returns the index of the first closing quote, control
 * character, or invalid or incomplete escape. If there is no such position, returns the end of the chunk.
 */
export function skipText(chunk: Buffer, from: number): number {
  let i = from
  let turn = i + longRun
  const { length } = chunk
  while (i < length) {
    const c = chunk[i] ?? 0
    if (c === backslashByte) {
      const next = afterEscape(chunk, i)
      if (next === i) return i
      i = next
      turn = i + longRun
    } else if (c === quoteByte || c < 0x20) return i
    else if (++i >= turn) {
      i = skipPlain(chunk, i)
      turn = i + longRun
    }
  }
  return i
}

/**
 * Returns the index after the escape at `at`. Returns `at` if the escape is invalid or incomplete. Never reads out of
 * bounds, which halves the time for text that consists of escapes.
 */
function afterEscape(chunk: Buffer, at: number): number {
  // The chunk ends too early for a Unicode escape.
  if (at + 6 > chunk.length) return simpleEscapes[chunk[at + 1] ?? 0] === 1 ? at + 2 : at
  const c = chunk[at + 1] ?? 0
  if (c !== 0x75) return simpleEscapes[c] === 1 ? at + 2 : at
  const areDigits =
    hexDigits[chunk[at + 2] ?? 0] === 1 &&
    hexDigits[chunk[at + 3] ?? 0] === 1 &&
    hexDigits[chunk[at + 4] ?? 0] === 1 &&
    hexDigits[chunk[at + 5] ?? 0] === 1
  return areDigits ? at + 6 : at
}

// States while a number or word is being read. A value can end in `zero` and in every later state.
export const scalarStart = 1
const minus = 2
const point = 3
const exponent = 4
const exponentSign = 5
/** The first of ten states inside `true`, `false` and `null`. */
export const firstInWord = 6
export const zero = 16
const whole = 17
const fraction = 18
const exponentDigits = 19
const wordEnd = 20

/**
 * The grammar of numbers and of `true`, `false` and `null` (RFC 8259 sections 3 and 6). The state after a byte is
 * `scalarSteps[state * 256 + byte]`. The state is 0 if the byte does not belong to the value.
 */
export const scalarSteps = new Uint8Array((wordEnd + 1) * 256)

function addSteps(from: number, bytes: string, to: number): void {
  for (const byte of bytes) scalarSteps[from * 256 + byte.charCodeAt(0)] = to
}

const digits = '0123456789'
for (const [states, bytes, next] of [
  [[scalarStart], '-', minus],
  [[scalarStart, minus], '0', zero],
  [[scalarStart, minus], digits.slice(1), whole],
  [[whole], digits, whole],
  [[zero, whole], '.', point],
  [[point, fraction], digits, fraction],
  [[zero, whole, fraction], 'eE', exponent],
  [[exponent], '+-', exponentSign],
  [[exponent, exponentSign, exponentDigits], digits, exponentDigits],
] as const)
  for (const state of states) addSteps(state, bytes, next)

let inWord = firstInWord
for (const word of ['true', 'false', 'null']) {
  let from = scalarStart
  for (const letter of word.slice(0, -1)) {
    addSteps(from, letter, inWord)
    from = inWord++
  }
  addSteps(from, word.slice(-1), wordEnd)
}
