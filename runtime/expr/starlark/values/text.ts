/**
 * Script strings. As in the Go dialect, a string is a sequence of bytes, normally UTF-8. A JavaScript string with one
 * character per byte represents the bytes, so indexing, slicing and comparing operate on bytes.
 *
 * `encode` and `decode` convert at the boundary; no other code may mix the two kinds of string.
 * Source: Starlark specification, "Strings".
 */

import type { ScriptMeter } from '../vm/meter.ts'

// oxlint-disable-next-line no-control-regex
const notAscii = /[^\x00-\x7f]/

export function isAscii(text: string): boolean {
  return !notAscii.test(text)
}

/** Encodes a JavaScript string as UTF-8 bytes. */
export function encode(text: string): string {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}

/** Decodes bytes to a JavaScript string. Invalid UTF-8 becomes U+FFFD. */
export function decode(bytes: string): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8')
}

/** Returns the bytes of a code point. Invalid code points become U+FFFD. */
export function encodePoint(point: number): string {
  const isSurrogate = point >= 0xd800 && point <= 0xdfff
  return encode(String.fromCodePoint(isSurrogate || point < 0 || point > 0x10ffff ? 0xfffd : point))
}

const replacement = encode('\ufffd')

/** Yields the code points in order, each with its number of bytes. An invalid byte yields U+FFFD. */
export function* points(bytes: string): Generator<{ readonly point: number; readonly length: number }> {
  for (let at = 0; at < bytes.length; ) {
    const read = pointAt(bytes, at)
    yield read
    at += read.length
  }
}

/** Returns the bytes of each code point. An invalid byte is returned unchanged. */
export function pointsOf(bytes: string): string[] {
  const parts: string[] = []
  let at = 0
  for (const { length } of points(bytes)) {
    parts.push(bytes.slice(at, at + length))
    at += length
  }
  return parts
}

const invalid = { point: 0xfffd, length: 1 } as const
/** Smallest code point for each encoding length, because overlong encodings are invalid. */
const least = [0, 0, 0x80, 0x800, 0x10000]

function pointAt(bytes: string, at: number): { point: number; length: number } {
  const first = bytes.charCodeAt(at)
  if (first < 0x80) return { point: first, length: 1 }
  const length = first >= 0xf8 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0
  if (length === 0 || at + length > bytes.length) return invalid
  let point = first & (0x7f >> length)
  for (let i = 1; i < length; i++) {
    const next = bytes.charCodeAt(at + i)
    if ((next & 0xc0) !== 0x80) return invalid
    point = (point << 6) | (next & 0x3f)
  }
  const valid = point >= (least[length] ?? 0) && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)
  return valid ? { point, length } : invalid
}

/**
 * Length of a slice. Native functions temporarily use many times as much memory as the string, so they receive the
 * string in slices.
 */
const sliceLength = 32 * 1024
const maxPointBytes = 4

/** Transforms a string slice by slice, without splitting code points. Charges the growth. */
export function inSlices(bytes: string, change: (slice: string) => string, meter: ScriptMeter): string {
  if (bytes.length <= sliceLength) return chargeGrowth(bytes, change(bytes), meter)
  const parts: string[] = []
  for (let at = 0; at < bytes.length; ) {
    let end = Math.min(at + sliceLength, bytes.length)
    const last = Math.min(end + maxPointBytes, bytes.length)
    while (end < last && (bytes.charCodeAt(end) & 0xc0) === 0x80) end++
    const slice = bytes.slice(at, end)
    parts.push(chargeGrowth(slice, change(slice), meter))
    at = end
  }
  return parts.join('')
}

function chargeGrowth(before: string, after: string, meter: ScriptMeter): string {
  meter.allocate(Math.max(0, after.length - before.length))
  return after
}

/** Returns the string with invalid UTF-8 replaced by U+FFFD. */
export function repaired(bytes: string): string {
  if (isValid(bytes)) return bytes
  const parts: string[] = []
  let at = 0
  for (const { point, length } of points(bytes)) {
    parts.push(point === 0xfffd && length === 1 ? replacement : bytes.slice(at, at + length))
    at += length
  }
  return parts.join('')
}

function isValid(bytes: string): boolean {
  return isAscii(bytes) || encode(decode(bytes)) === bytes
}

const escapeTable: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '"': '\\"',
  '\\': '\\\\',
}
/** Characters that must be escaped. */
const unprintable = /["\\]|[^ \p{L}\p{M}\p{N}\p{P}\p{S}]/gu

/** Returns the literal for a string or, with `asBytes`, for bytes. */
export function quote(
  bytes: string,
  meter: ScriptMeter,
  { asBytes = false }: { readonly asBytes?: boolean } = {},
): string {
  return `${asBytes ? 'b' : ''}"${inSlices(bytes, quoted, meter)}"`
}

function quoted(bytes: string): string {
  return isValid(bytes)
    ? encode(decode(bytes).replaceAll(unprintable, escaped))
    : [...quotedPoints(bytes)].join('')
}

function escaped(letter: string): string {
  const simple = escapeTable[letter]
  if (simple !== undefined) return simple
  const point = letter.codePointAt(0) ?? 0
  if (point < 0x80) return hex(point)
  return point > 0xffff
    ? `\\U${point.toString(16).padStart(8, '0')}`
    : `\\u${point.toString(16).padStart(4, '0')}`
}

function* quotedPoints(bytes: string): Generator<string> {
  let at = 0
  for (const { point, length } of points(bytes)) {
    const isByte = point === 0xfffd && length === 1
    yield isByte ? hex(bytes.charCodeAt(at)) : encode(encodedPoint(point))
    at += length
  }
}

function encodedPoint(point: number): string {
  return String.fromCodePoint(point).replaceAll(unprintable, escaped)
}

function hex(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, '0')}`
}
