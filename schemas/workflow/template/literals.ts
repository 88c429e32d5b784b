/**
 * Parses literals in a template: strings with escapes, raw strings, characters, numbers.
 * Source: Go language specification, "Integer literals", "Floating-point literals", "Rune literals", "String literals".
 * Rejects imaginary numbers and hexadecimal floats, which templates cannot use.
 */
import { TemplateError } from './tree.ts'

interface Literal {
  readonly kind: 'string' | 'int' | 'float'
  readonly text: string
  readonly number?: bigint | number
}

interface Found {
  readonly token: Literal
  readonly end: number
}

/** Returns the literal at this position, or undefined. Throws TemplateError. */
export function literalToken(template: string, at: number): Found | undefined {
  const char = template.charAt(at)
  if (char === '"') return quoted(template, at)
  if (char === '`') return raw(template, at)
  if (char === "'") return character(template, at)
  const digit = char === '.' || char === '+' || char === '-' ? template.charAt(at + 1) : char
  if (/[0-9]/.test(digit) || ((char === '+' || char === '-') && digit === '.')) return numeric(template, at)
  return undefined
}

function raw(template: string, at: number): Found {
  const end = template.indexOf('`', at + 1)
  if (end < 0) throw new TemplateError('unterminated raw string')
  return { token: { kind: 'string', text: template.slice(at + 1, end).replaceAll('\r', '') }, end: end + 1 }
}

const stringForm = /"((?:[^"\\\n]|\\[^\n])*)"/y
const characterForm = /'((?:[^'\\\n]|\\[^\n])+)'/y

function quoted(template: string, at: number): Found {
  const inner = body(stringForm, template, at)
  if (inner === undefined) throw new TemplateError('a string is not closed')
  return { token: { kind: 'string', text: unescaped(inner, '"') }, end: stringForm.lastIndex }
}

function character(template: string, at: number): Found {
  const inner = body(characterForm, template, at)
  if (inner === undefined) throw new TemplateError('a character is not closed')
  const points = Array.from(unescaped(inner, "'"))
  const byte = /^\\(?:x([0-9a-fA-F]{2})|([0-7]{3}))$/.exec(inner)
  const value = byte ? Number.parseInt(byte[1] ?? byte[2] ?? '', byte[1] ? 16 : 8) : points[0]?.codePointAt(0)
  if (value === undefined || (points.length !== 1 && !byte))
    throw new TemplateError('single quotes must contain exactly one character')
  return { token: { kind: 'int', text: inner, number: BigInt(value) }, end: characterForm.lastIndex }
}

function body(form: RegExp, template: string, at: number): string | undefined {
  form.lastIndex = at
  return form.exec(template)?.[1]
}

const simple: Readonly<Record<string, number>> = { a: 7, b: 8, f: 12, n: 10, r: 13, t: 9, v: 11, '\\': 92 }
const escape = /\\(?:x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))/gu

/** Decodes the text from bytes, because several byte escapes can form one character. */
function unescaped(text: string, quote: string): string {
  if (!text.includes('\\')) return text
  const parts: Buffer[] = []
  let from = 0
  for (const match of text.matchAll(escape)) {
    const [all, hex, octal, short, long, one] = match
    parts.push(Buffer.from(text.slice(from, match.index)))
    from = match.index + all.length
    if (hex !== undefined) parts.push(Buffer.from(hex, 'hex'))
    else if (octal !== undefined) parts.push(Buffer.of(byteOf(octal)))
    else if (one === undefined) parts.push(Buffer.from(point(short ?? long ?? '')))
    else parts.push(Buffer.of(one === quote ? one.charCodeAt(0) : simpleEscape(one)))
  }
  parts.push(Buffer.from(text.slice(from)))
  return Buffer.concat(parts).toString()
}

function simpleEscape(char: string): number {
  const code = simple[char]
  if (code === undefined) throw new TemplateError(`\\${char} is not an escape`)
  return code
}

function byteOf(octal: string): number {
  const byte = Number.parseInt(octal, 8)
  if (byte > 255) throw new TemplateError(`\\${octal} is not a byte`)
  return byte
}

function point(hex: string): string {
  const code = Number.parseInt(hex, 16)
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
    throw new TemplateError(`\\u${hex} is not a character`)
  return String.fromCodePoint(code)
}

const numberForm =
  /[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|(?:[0-9](?:_?[0-9])*)?(\.(?:[0-9](?:_?[0-9])*)?)?([eE][+-]?[0-9](?:_?[0-9])*)?)/y
const wordChar = /[\p{L}\p{Nd}_]/u
const largestInt = 2n ** 63n - 1n
/** Maximum length of an integer: the largest integer in base 2, with a prefix and leading zeros. */
const longestInt = 80

function numeric(template: string, at: number): Found {
  numberForm.lastIndex = at
  const match = numberForm.exec(template)
  const text = match?.[0] ?? ''
  const end = at + text.length
  const next = template.charAt(end)
  if (!match || !/[0-9]/.test(text) || wordChar.test(next) || next === '.' || next === '+' || next === '-')
    throw new TemplateError(`${JSON.stringify(template.slice(at, end + 1))} is not a number`)
  const isFloat = match[1] !== undefined || match[2] !== undefined
  const number = isFloat ? floatOf(text) : intOf(text)
  return { token: { kind: isFloat ? 'float' : 'int', text, number }, end }
}

function floatOf(text: string): number {
  const value = Number(text.replaceAll('_', ''))
  if (!Number.isFinite(value)) throw new TemplateError(`the number ${text} is too large`)
  return value
}

function intOf(text: string): bigint {
  const digits = text.replaceAll('_', '').replace(/^[+-]/, '')
  const octal = /^0[0-9]+$/.test(digits)
  if (octal && /[89]/.test(digits))
    throw new TemplateError(`${text} is not a number: a leading 0 means octal`)
  if (digits.length > longestInt) throw new TemplateError('a number is too large')
  const size = BigInt(octal ? `0o${digits}` : digits)
  const value = text.startsWith('-') ? -size : size
  if (value > largestInt || value < -largestInt - 1n)
    throw new TemplateError(`the number ${text} is too large`)
  return value
}
