/**
 * Formats single values for a printf verb with its flags.
 *
 * Source: Go fmt, "Printing"; Go strconv.Quote.
 */
import { exponential, fixed, floatText, general, shortest } from './numbers.ts'
import { unprintable } from './print.ts'

export interface Flags {
  readonly plus: boolean
  readonly minus: boolean
  readonly sharp: boolean
  readonly space: boolean
  readonly zero: boolean
  /** Width in characters. */
  readonly width: number | undefined
  readonly precision: number | undefined
}

/** Pads the text to the width. */
export function pad(text: string, { width = 0, minus, zero }: Flags): string {
  // Widths count code points, which consist of one or two UTF-16 units each. For most strings, the code points
  // therefore do not need to be counted.
  const missing = text.length < width * 2 ? width - Array.from(text).length : 0
  if (missing <= 0) return text
  if (minus) return text + ' '.repeat(missing)
  return (zero ? '0' : ' ').repeat(missing) + text
}

/** Inserts zeros between the sign and the digits. */
function padNumber(text: string, flags: Flags): string {
  const { width = 0, minus, zero } = flags
  if (!zero || minus) return pad(text, { ...flags, zero: false })
  const sign = /^[+\- ]?/.exec(text)?.[0] ?? ''
  return sign + text.slice(sign.length).padStart(width - sign.length, '0')
}

function signed(text: string, { plus, space }: Flags): string {
  if (text.startsWith('-')) return text
  return (plus ? '+' : space ? ' ' : '') + text
}

export function isFloatVerb(verb: string): boolean {
  return 'veEfFgG'.includes(verb)
}

export function formatFloat(value: number, verb: string, flags: Flags): string {
  const plain = floatBody(value, verb, flags)
  const text = verb === 'E' || verb === 'G' ? plain.toUpperCase() : plain
  return padNumber(signed(text, flags), flags)
}

function floatBody(value: number, verb: string, { precision }: Flags): string {
  switch (verb) {
    case 'e':
    case 'E':
      return exponential(value, precision ?? 6)
    case 'f':
    case 'F':
      return fixed(value, precision ?? 6)
    default:
      if (precision !== undefined) return general(value, precision)
      return verb === 'v' ? floatText(value) : shortest(value)
  }
}

const bases: Readonly<Record<string, { readonly base: number; readonly prefix: string }>> = {
  v: { base: 10, prefix: '' },
  d: { base: 10, prefix: '' },
  b: { base: 2, prefix: '0b' },
  o: { base: 8, prefix: '0' },
  O: { base: 8, prefix: '' },
  x: { base: 16, prefix: '0x' },
  X: { base: 16, prefix: '0X' },
}

export function formatInteger(value: bigint, verb: string, flags: Flags): string | undefined {
  if (verb === 'c' || verb === 'q' || verb === 'U') return formatPoint(value, verb, flags)
  const kind = bases[verb]
  if (!kind) return undefined
  const { precision, width = 0, minus } = flags
  const size = value < 0n ? -value : value
  if (precision === 0 && value === 0n) return ' '.repeat(width)
  const plain = size.toString(kind.base)
  const digits = (verb === 'X' ? plain.toUpperCase() : plain).padStart(precision ?? 0, '0')
  const sign = value < 0n ? '-' : signed('', flags)
  const prefix =
    (flags.sharp && !(verb === 'o' && digits.startsWith('0')) ? kind.prefix : '') + (verb === 'O' ? '0o' : '')
  if (precision !== undefined) return pad(sign + prefix + digits, { ...flags, zero: false })
  // With zero padding, the width includes the digits and the sign, but not the prefix.
  const filled = flags.zero && !minus ? digits.padStart(width - sign.length, '0') : digits
  return pad(sign + prefix + filled, { ...flags, zero: false })
}

function formatPoint(value: bigint, verb: string, flags: Flags): string {
  const isPoint = value >= 0n && value <= 0x10ffffn && (value < 0xd800n || value > 0xdfffn)
  const char = isPoint ? String.fromCodePoint(Number(value)) : '\uFFFD'
  if (verb === 'c') return pad(char, flags)
  if (verb === 'q')
    return pad(`'${char === "'" ? "\\'" : escaped(char, flags.plus).replace('\\"', '"')}'`, flags)
  const digits = BigInt.asUintN(64, value)
    .toString(16)
    .toUpperCase()
    .padStart(Math.max(4, flags.precision ?? 0), '0')
  return pad(`U+${digits}${flags.sharp && isPoint && !char.match(unprintable) ? ` '${char}'` : ''}`, {
    ...flags,
    zero: false,
  })
}

export function isTextVerb(verb: string): boolean {
  return 'sqxX'.includes(verb)
}

export function formatText(value: string, verb: string, flags: Flags): string {
  const { precision } = flags
  if (verb === 'x' || verb === 'X') return pad(hex(value, verb, flags), flags)
  const text = precision === undefined ? value : firstPoints(value, precision)
  return verb === 'q' ? quoted(text, flags) : pad(text, flags)
}

function firstPoints(text: string, count: number): string {
  return Array.from(text.slice(0, count * 2))
    .slice(0, count)
    .join('')
}

function hex(value: string, verb: 'x' | 'X', { precision, space, sharp }: Flags): string {
  const bytes = Buffer.from(value).subarray(0, precision)
  const digits = bytes.toString('hex')
  const prefix = sharp && digits !== '' ? '0x' : ''
  const text = prefix + (space ? digits.replaceAll(/..(?!$)/g, `$& ${prefix}`) : digits)
  return verb === 'X' ? text.toUpperCase() : text
}

/** Returns a double-quoted string, or a backquoted string when `#` requests it and the content allows it. */
export function quoted(text: string, flags: Flags): string {
  const canBeRaw = flags.sharp && !text.includes('`') && !text.replaceAll('\t', '').match(unprintable)
  return pad(canBeRaw ? `\`${text}\`` : `"${escaped(text, flags.plus)}"`, flags)
}

const shortEscapes: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}

function escaped(text: string, ascii: boolean): string {
  const plain = text
    .replaceAll(/[\\"]/g, '\\$&')
    .replaceAll(unprintable, (char) => shortEscapes[char] ?? escapedPoint(char))
  return ascii ? plain.replaceAll(/[^\0-\x7f]/gu, escapedPoint) : plain
}

function escapedPoint(char: string): string {
  const point = char.codePointAt(0) ?? 0
  const digits = point.toString(16)
  if (point < 0x20 || point === 0x7f) return `\\x${digits.padStart(2, '0')}`
  return point > 0xffff ? `\\U${digits.padStart(8, '0')}` : `\\u${digits.padStart(4, '0')}`
}
