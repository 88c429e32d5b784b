/** Parses literals: strings with escapes, and numbers. Source: Starlark specification, "Lexical elements". */
import { encodePoint } from '../values/text.ts'

/** An error in a literal, with the error's offset from the start of the literal. */
export class LiteralError extends Error {
  readonly offset: number
  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

const simpleEscapes: Readonly<Record<string, string>> = {
  '\n': '',
  '"': '"',
  "'": "'",
  '\\': '\\',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

/** Returns the bytes of a string literal's content. With `isBytes`, escapes may represent any byte. */
export function unescape(inner: string, isBytes: boolean): string {
  let out = ''
  let at = 0
  for (;;) {
    const slash = inner.indexOf('\\', at)
    if (slash < 0) return out + inner.slice(at)
    out += inner.slice(at, slash)
    const [text, length] = escape(inner, slash, isBytes)
    out += text
    at = slash + length
  }
}

function escape(inner: string, at: number, isBytes: boolean): [text: string, length: number] {
  const letter = inner[at + 1] ?? ''
  const simple = simpleEscapes[letter]
  if (simple !== undefined) return [simple, 2]
  if (letter === 'x') return byteEscape(inner, at, /^[0-9a-fA-F]{2}/, 16, isBytes)
  if (letter >= '0' && letter <= '7') return byteEscape(inner, at, /^[0-7]{1,3}/, 8, isBytes)
  if (letter === 'u') return pointEscape(inner, at, /^[0-9a-fA-F]{4}/)
  if (letter === 'U') return pointEscape(inner, at, /^[0-9a-fA-F]{8}/)
  throw new LiteralError(`invalid escape sequence \\${letter}`, at)
}

function byteEscape(
  inner: string,
  at: number,
  digits: RegExp,
  base: number,
  isBytes: boolean,
): [string, number] {
  const skip = base === 16 ? 2 : 1
  const found = digits.exec(inner.slice(at + skip, at + skip + 3))?.[0]
  if (found === undefined) throw new LiteralError(`invalid escape sequence ${inner.slice(at, at + 4)}`, at)
  const value = Number.parseInt(found, base)
  const written = inner.slice(at, at + skip + found.length)
  if (value > 0xff) throw new LiteralError(`invalid escape sequence ${written}`, at)
  if (value > 0x7f && !isBytes) {
    const [kind, point] = [base === 16 ? 'hex' : 'octal', value.toString(16).padStart(4, '0')]
    throw new LiteralError(
      `non-ASCII ${kind} escape ${written} (use \\u${point} for the UTF-8 encoding of U+${point.toUpperCase()})`,
      at,
    )
  }
  return [String.fromCharCode(value), written.length]
}

function pointEscape(inner: string, at: number, digits: RegExp): [string, number] {
  const found = digits.exec(inner.slice(at + 2, at + 10))?.[0]
  if (found === undefined) throw new LiteralError(`truncated escape sequence ${inner.slice(at, at + 10)}`, at)
  const value = Number.parseInt(found, 16)
  if (value > 0x10ffff) throw new LiteralError(`code point out of range: ${inner.slice(at, at + 10)}`, at)
  if (value >= 0xd800 && value <= 0xdfff)
    throw new LiteralError(`invalid Unicode code point U+${value.toString(16).toUpperCase()}`, at)
  return [encodePoint(value), found.length + 2]
}

/** Maximum number of digits in an int literal. */
const maxDigits = 10_000

/** Returns the value of an int literal, including its prefix; undefined for an invalid literal. */
export function readInt(text: string): bigint | undefined {
  if (text.length > maxDigits || !/^(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0+|[1-9]\d*)$/.test(text))
    return undefined
  return BigInt(text.toLowerCase())
}
