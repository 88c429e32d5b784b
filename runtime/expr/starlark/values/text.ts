/**
 * Texts of scripts. As in the Go dialect a string is a sequence of bytes, normally UTF-8; here it is a JavaScript
 * string with one character for each byte, so that indexing, slicing and comparing work on bytes by themselves.
 *
 * `encode` and `decode` stand at the border; nothing else may mix the two kinds of string.
 * Source: Starlark specification, "Strings".
 */

import type { ScriptMeter } from '../vm/meter.ts'

// oxlint-disable-next-line no-control-regex
const notAscii = /[^\x00-\x7f]/

export function isAscii(text: string): boolean {
  return !notAscii.test(text)
}

/** A JavaScript text as bytes of UTF-8. */
export function encode(text: string): string {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}

/** Bytes as a JavaScript text; what is no UTF-8 becomes U+FFFD. */
export function decode(bytes: string): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8')
}

/** The bytes of one code point; those that are none become U+FFFD. */
export function encodePoint(point: number): string {
  const isSurrogate = point >= 0xd800 && point <= 0xdfff
  return encode(String.fromCodePoint(isSurrogate || point < 0 || point > 0x10ffff ? 0xfffd : point))
}

const replacement = encode('\ufffd')

/** Code points in order, with the bytes that each was read from; a byte that begins none gives U+FFFD. */
export function* points(bytes: string): Generator<{ readonly point: number; readonly length: number }> {
  for (let at = 0; at < bytes.length; ) {
    const read = pointAt(bytes, at)
    yield read
    at += read.length
  }
}

/** The bytes of each code point; a byte that begins none stands for itself. */
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
/** Least code point of an encoding with so many bytes: longer encodings of smaller ones are not valid. */
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

/** Native functions that go through a whole text take many times its memory at once: they get so much at a time. */
const sliceLength = 32 * 1024
const maxPointBytes = 4

/** Changes a text slice by slice; no slice ends inside of a code point. What it grows by is charged. */
export function inSlices(bytes: string, change: (slice: string) => string, meter: ScriptMeter): string {
  if (bytes.length <= sliceLength) return grown(bytes, change(bytes), meter)
  const parts: string[] = []
  for (let at = 0; at < bytes.length; ) {
    let end = Math.min(at + sliceLength, bytes.length)
    const last = Math.min(end + maxPointBytes, bytes.length)
    while (end < last && (bytes.charCodeAt(end) & 0xc0) === 0x80) end++
    const slice = bytes.slice(at, end)
    parts.push(grown(slice, change(slice), meter))
    at = end
  }
  return parts.join('')
}

function grown(before: string, after: string, meter: ScriptMeter): string {
  meter.allocate(Math.max(0, after.length - before.length))
  return after
}

/** The same text with U+FFFD for everything that is no UTF-8. */
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
/** Everything that is not written as it is. */
const unprintable = /["\\]|[^ \p{L}\p{M}\p{N}\p{P}\p{S}]/gu

/** A literal for a text. `asBytes`: for bytes. */
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
