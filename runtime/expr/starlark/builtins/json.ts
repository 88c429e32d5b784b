/**
 * Converts JSON to script values and back, both as bytes (text.ts).
 *
 * The reader converts an integral number to an int of any size, so ids keep all their digits. The reader also converts
 * a number such as `1.0` to an int if the conversion is exact. The writer throws for values without a JSON
 * representation.
 */
import { Float, isInt, Range } from '../values/scalars.ts'
import { Dict, List, type StarlarkValue, Tuple, typeOf } from '../values/values.ts'
import { StarlarkError } from '../errors.ts'
import { type ScriptMeter, sizeOf } from '../vm/meter.ts'
import { normal } from '../values/numbers.ts'
import { encodePoint, inSlices, repaired } from '../values/text.ts'

export class JsonTextError extends Error {
  override readonly name = 'JsonTextError'
}

const maxDepth = 200
const spaces = /[ \t\n\r]*/y
const numberText = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
// oxlint-disable-next-line no-control-regex
const plainText = /[^"\\\x00-\x1f]*/y
const escapeTable: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}
// oxlint-disable-next-line no-control-regex
const escapedChars = /["\\\x00-\x1f]/g
const maxIntDigits = 4_000

/** Throws JsonTextError for invalid JSON, and LimitError when the value needs too much memory. */
export function readJson(bytes: string, meter: ScriptMeter): StarlarkValue {
  const reader = new Reader(bytes, meter)
  const value = reader.value(0)
  reader.end()
  return value
}

class Reader {
  readonly #text: string
  readonly #meter: ScriptMeter
  #at = 0

  constructor(text: string, meter: ScriptMeter) {
    this.#text = text
    this.#meter = meter
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }

  #has(char: string): boolean {
    this.#match(spaces)
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  end(): void {
    this.#match(spaces)
    if (this.#at < this.#text.length) throw new JsonTextError('unexpected text after the value')
  }

  value(depth: number): StarlarkValue {
    if (depth > maxDepth) throw new JsonTextError('nested too deeply')
    this.#match(spaces)
    const char = this.#text[this.#at]
    if (char === '{') return this.#object(depth)
    if (char === '[') return this.#array(depth)
    if (char === '"') return this.#string()
    for (const [word, value] of [
      ['null', null],
      ['true', true],
      ['false', false],
    ] as const) {
      if (!this.#text.startsWith(word, this.#at)) continue
      this.#at += word.length
      return value
    }
    return this.#number()
  }

  #object(depth: number): Dict {
    this.#at++
    const dict = new Dict()
    this.#meter.allocate(sizeOf.dict)
    if (this.#has('}')) return dict
    do {
      this.#match(spaces)
      const key = this.#string()
      if (!this.#has(':')) throw new JsonTextError('missing colon')
      dict.set(key, this.value(depth + 1), this.#meter)
    } while (this.#has(','))
    if (!this.#has('}')) throw new JsonTextError('unterminated object')
    return dict
  }

  #array(depth: number): List {
    this.#at++
    const list = new List([])
    this.#meter.allocate(sizeOf.object)
    if (this.#has(']')) return list
    do {
      this.#meter.appended(list.items.length)
      list.items.push(this.value(depth + 1))
    } while (this.#has(','))
    if (!this.#has(']')) throw new JsonTextError('unterminated array')
    return list
  }

  #string(): string {
    if (this.#text[this.#at] !== '"') throw new JsonTextError('missing string')
    this.#at++
    const parts: string[] = []
    for (;;) {
      parts.push(this.#match(plainText))
      const char = this.#text[this.#at++]
      if (char === '"') break
      if (char !== '\\') throw new JsonTextError('unterminated string')
      parts.push(this.#escape())
      this.#meter.allocate(sizeOf.element)
    }
    const text = parts.length === 1 ? (parts[0] ?? '') : parts.join('')
    this.#meter.allocate(sizeOf.text + text.length)
    return text
  }

  #escape(): string {
    const letter = this.#text[this.#at++] ?? ''
    const simple = escapeTable[letter]
    if (simple !== undefined) return simple
    if (letter !== 'u') throw new JsonTextError('invalid escape')
    const high = this.#unit()
    if (high < 0xd800 || high > 0xdbff || !this.#text.startsWith('\\u', this.#at)) return encodePoint(high)
    const before = this.#at
    this.#at += 2
    const low = this.#unit()
    if (low >= 0xdc00 && low <= 0xdfff) return encodePoint(0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00))
    this.#at = before
    return encodePoint(high)
  }

  #unit(): number {
    const digits = this.#text.slice(this.#at, this.#at + 4)
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new JsonTextError('invalid escape')
    this.#at += 4
    return Number.parseInt(digits, 16)
  }

  #number(): StarlarkValue {
    const text = this.#match(numberText)
    if (text === '') throw new JsonTextError('missing value')
    if (/^-?\d+$/.test(text) && text.length <= maxIntDigits) {
      const small = Number(text)
      if (Number.isSafeInteger(small)) return small + 0
      this.#meter.allocate(sizeOf.float + text.length / 2)
      return normal(BigInt(text))
    }
    this.#meter.allocate(sizeOf.float)
    const value = Number(text)
    if (!Number.isFinite(value)) throw new JsonTextError('number too large')
    return Number.isSafeInteger(value) ? value + 0 : new Float(value)
  }
}

/** Control characters that have short escapes in JSON. */
const controlEscapes: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

/** Returns JSON text as a JSON string. */
export function jsonString(json: string, meter: ScriptMeter): string {
  meter.allocate(sizeOf.text + json.length)
  return `"${inSlices(json, (slice) => slice.replaceAll(/["\\]/g, '\\$&'), meter)}"`
}

/**
 * Returns the JSON of a value. Throws StarlarkError for values that have no JSON representation: functions, bytes, nan,
 * cycles, and dicts with keys that are not strings.
 */
export function writeJson(value: StarlarkValue, meter: ScriptMeter): string {
  return write(value, meter, [])
}

function write(value: StarlarkValue, meter: ScriptMeter, open: object[]): string {
  meter.step(1)
  if (value === null || typeof value === 'boolean') return String(value)
  if (isInt(value)) return intText(value, meter)
  if (typeof value === 'string') return stringText(value, meter)
  if (value instanceof Float) return floatText(value)
  if (value instanceof Range) {
    meter.elements(value.length)
    return `[${Array.from({ length: value.length }, (_, i) => value.at(i)).join(',')}]`
  }
  if (!(value instanceof List || value instanceof Tuple || value instanceof Dict))
    throw new StarlarkError(`cannot convert a value of type ${typeOf(value)} to JSON`)
  if (open.includes(value)) throw new StarlarkError('cannot convert a value that contains itself to JSON')
  if (open.length >= maxDepth) throw new StarlarkError('value is nested too deeply for JSON')
  open.push(value)
  const text = value instanceof Dict ? objectText(value, meter, open) : arrayText(value.items, meter, open)
  open.pop()
  return text
}

function intText(value: number | bigint, meter: ScriptMeter): string {
  const text = String(value)
  meter.text(text.length)
  return text
}

function floatText({ value }: Float): string {
  if (!Number.isFinite(value)) throw new StarlarkError('cannot convert nan or infinity to JSON')
  return JSON.stringify(value)
}

function stringText(value: string, meter: ScriptMeter): string {
  meter.text(value.length)
  return `"${inSlices(value, (slice) => repaired(slice).replaceAll(escapedChars, escaped), meter)}"`
}

function escaped(char: string): string {
  const short = controlEscapes[char]
  if (short !== undefined) return short
  return char === '"' || char === '\\'
    ? `\\${char}`
    : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function arrayText(items: readonly StarlarkValue[], meter: ScriptMeter, open: object[]): string {
  const parts = items.map((item) => chargePart(write(item, meter, open), meter))
  return `[${parts.join(',')}]`
}

function objectText(dict: Dict, meter: ScriptMeter, open: object[]): string {
  const parts: string[] = []
  for (const [key, item] of dict.entries()) {
    if (typeof key !== 'string')
      throw new StarlarkError(`cannot convert a dict with a key of type ${typeOf(key)} to JSON; use str(key)`)
    parts.push(chargePart(`${stringText(key, meter)}:${write(item, meter, open)}`, meter))
  }
  return `{${parts.join(',')}}`
}

/** Charges for each part, because text is copied once per nesting level. */
function chargePart(part: string, meter: ScriptMeter): string {
  meter.allocate(sizeOf.element)
  meter.step(Math.floor(part.length / 4096))
  return part
}
