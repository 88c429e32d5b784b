/**
 * Implements printf: the verbs of Go's fmt, for template values.
 *
 * Handles wrong arguments as Go does (`%!d(string=x)`), with one difference: a whole number from JSON is an integer for
 * verbs that require one. Not supported: `%p`, and `%b`, `%x`, `%X` for fractions.
 * Source: Go fmt, "Printing".
 */
import {
  type Flags,
  formatFloat,
  formatInteger,
  formatText,
  isFloatVerb,
  isTextVerb,
  pad,
  quoted,
} from './formats.ts'
import { MeteredOutput, type TemplateMeter } from './meter.ts'
import {
  EvaluationError,
  integerOf,
  isList,
  isNil,
  isObject,
  sortedNames,
  typeName,
  type TemplateValue,
  type ValueObject,
} from './value.ts'

type Scalar = boolean | number | bigint | string

/** Maximum field width and precision. */
const maxSize = 10_000

/** Formats the arguments. Throws EvaluationError if a width, a precision or the output exceeds its limit. */
export function printf(format: string, values: readonly TemplateValue[], meter: TemplateMeter): string {
  return new Printf(format, values, meter).run()
}

class Printf {
  readonly #format: string
  readonly #values: readonly TemplateValue[]
  readonly #out: MeteredOutput
  #at = 0
  #next = 0
  #reordered = false
  #goodIndex = true

  constructor(format: string, values: readonly TemplateValue[], meter: TemplateMeter) {
    this.#format = format
    this.#values = values
    this.#out = new MeteredOutput(meter)
  }

  run(): string {
    for (;;) {
      const percent = this.#format.indexOf('%', this.#at)
      this.#out.write(this.#format.slice(this.#at, percent < 0 ? undefined : percent))
      if (percent < 0) break
      this.#at = percent + 1
      this.#verb()
    }
    if (!this.#reordered && this.#next < this.#values.length) {
      const extra = this.#values
        .slice(this.#next)
        .map((value) => (isNil(value) ? '<nil>' : this.#withType(value)))
      this.#out.write(`%!(EXTRA ${extra.join(', ')})`)
    }
    return this.#out.text
  }

  #verb(): void {
    this.#goodIndex = true
    const flags = this.#flags()
    let after = this.#index()
    const wide = this.#size(after, 'BADWIDTH')
    let { width, minus, zero } = { width: wide.size, minus: flags.minus, zero: flags.zero }
    if (width !== undefined && width < 0) {
      width = -width
      minus = true
      zero = false
    }
    after = wide.after
    let precision: number | undefined
    if (this.#format[this.#at] === '.') {
      this.#at += 1
      if (after) this.#goodIndex = false
      after = this.#index()
      const exact = this.#size(after, 'BADPREC')
      precision = exact.star
        ? exact.size !== undefined && exact.size < 0
          ? undefined
          : exact.size
        : (exact.size ?? 0)
      after = exact.after
    }
    if (!after) this.#index()
    const point = this.#format.codePointAt(this.#at)
    if (point === undefined) return this.#out.write('%!(NOVERB)')
    const verb = String.fromCodePoint(point)
    this.#at += verb.length
    if (verb === '%') return this.#out.write('%')
    if (!this.#goodIndex) return this.#out.write(`%!${verb}(BADINDEX)`)
    if (this.#next >= this.#values.length) return this.#out.write(`%!${verb}(MISSING)`)
    const value = this.#values[this.#next++]
    // Charges extra for long fields, because exact digits are computed individually.
    this.#out.meter.spend((width ?? 0) + (precision ?? 0))
    const plus = flags.plus && verb !== 'v'
    this.#write(value, verb, { ...flags, plus, minus, zero, width, precision }, 0)
  }

  #flags(): Flags {
    const flags = { plus: false, minus: false, sharp: false, space: false, zero: false }
    const names: Readonly<Record<string, keyof typeof flags>> = {
      '+': 'plus',
      '-': 'minus',
      '#': 'sharp',
      ' ': 'space',
      '0': 'zero',
    }
    for (let name = names[this.#format.charAt(this.#at)]; name; name = names[this.#format.charAt(++this.#at)])
      flags[name] = true
    return { ...flags, width: undefined, precision: undefined }
  }

  /** Reads `[n]`, the index of the next argument. Returns true when the index is present. */
  #index(): boolean {
    if (this.#format[this.#at] !== '[') return false
    this.#reordered = true
    const end = this.#format.indexOf(']', this.#at)
    const text = end < 0 ? '' : this.#format.slice(this.#at + 1, end)
    this.#at = end < 0 ? this.#at + 1 : end + 1
    const number = /^[0-9]{1,6}$/.test(text) ? Number(text) : 0
    if (number < 1 || number > this.#values.length) this.#goodIndex = false
    else this.#next = number - 1
    return end >= 0
  }

  /** Reads a width or precision, written as digits or as `*` for the next argument. */
  #size(after: boolean, failure: string): { size: number | undefined; star: boolean; after: boolean } {
    if (this.#format[this.#at] === '*') {
      this.#at += 1
      const value = integerOf(this.#values[this.#next])
      if (this.#next < this.#values.length) this.#next += 1
      const size = value === undefined ? undefined : checkedSize(Number(value))
      if (size === undefined || (failure === 'BADPREC' && size < 0)) this.#out.write(`%!(${failure})`)
      return { size, star: true, after: false }
    }
    const start = this.#at
    while (/[0-9]/.test(this.#format.charAt(this.#at))) this.#at += 1
    if (start === this.#at) return { size: undefined, star: false, after }
    if (after) this.#goodIndex = false
    return { size: checkedSize(Number(this.#format.slice(start, this.#at))), star: false, after }
  }

  #write(value: TemplateValue, verb: string, flags: Flags, depth: number): void {
    this.#out.depth(depth)
    if (verb === 'T' && depth === 0) return this.#out.write(pad(typeName(value), flags))
    if (isNil(value)) return this.#writeNil(verb, flags, depth)
    if (isList(value) || isObject(value)) {
      const isWrong = depth === 0 && (verb === 'w' || verb === 'p')
      if (isWrong) this.#out.write(`%!${verb}(${typeName(value)}=`)
      this.#writeParts(value, isWrong ? 'v' : verb, flags, depth)
      if (isWrong) this.#out.write(')')
      return
    }
    this.#out.write(scalarText(value, verb, flags) ?? this.#wrongVerb(value, verb, flags))
  }

  #writeNil(verb: string, flags: Flags, depth: number): void {
    if (depth > 0) return this.#out.write(verb === 'v' && flags.sharp ? 'interface {}(nil)' : '<nil>')
    this.#out.write(verb === 'v' ? pad('<nil>', flags) : `%!${verb}(<nil>)`)
  }

  #writeParts(
    value: readonly TemplateValue[] | ValueObject,
    verb: string,
    flags: Flags,
    depth: number,
  ): void {
    if (isList(value)) this.#writeList(value, verb, flags, depth)
    else this.#writeObject(value, verb, flags, depth)
  }

  #writeList(value: readonly TemplateValue[], verb: string, flags: Flags, depth: number): void {
    const isLiteral = verb === 'v' && flags.sharp
    this.#out.write(isLiteral ? `${typeName(value)}{` : '[')
    for (const [index, item] of value.entries()) {
      if (index > 0) this.#out.write(isLiteral ? ', ' : ' ')
      this.#write(item, verb, flags, depth + 1)
    }
    this.#out.write(isLiteral ? '}' : ']')
  }

  #writeObject(value: ValueObject, verb: string, flags: Flags, depth: number): void {
    const isLiteral = verb === 'v' && flags.sharp
    this.#out.write(isLiteral ? `${typeName(value)}{` : 'map[')
    for (const [index, name] of sortedNames(value).entries()) {
      if (index > 0) this.#out.write(isLiteral ? ', ' : ' ')
      this.#write(name, verb, flags, depth + 1)
      this.#out.write(':')
      this.#write(value[name], verb, flags, depth + 1)
    }
    this.#out.write(isLiteral ? '}' : ']')
  }

  #wrongVerb(value: Scalar, verb: string, flags: Flags): string {
    return `%!${verb}(${typeName(value)}=${scalarText(value, 'v', { ...flags, sharp: false }) ?? ''})`
  }

  #withType(value: TemplateValue): string {
    return `${typeName(value)}=${printf('%v', [value], this.#out.meter)}`
  }
}

function checkedSize(size: number): number {
  if (Math.abs(size) > maxSize) throw new EvaluationError('printf: a width or precision is too large')
  return size
}

/** Returns undefined when the verb does not apply to this kind of value. */
function scalarText(value: Scalar, verb: string, flags: Flags): string | undefined {
  if (typeof value === 'boolean') return verb === 't' || verb === 'v' ? pad(String(value), flags) : undefined
  if (typeof value === 'string') {
    if (verb === 'v')
      return flags.sharp ? quoted(value, { ...flags, sharp: false }) : formatText(value, 's', flags)
    return isTextVerb(verb) ? formatText(value, verb, flags) : undefined
  }
  if (typeof value === 'bigint') return formatInteger(value, verb, flags)
  if (isFloatVerb(verb)) return formatFloat(value, verb, flags)
  const whole = 'dcoOU'.includes(verb) ? integerOf(value) : undefined
  return whole === undefined ? undefined : formatInteger(whole, verb, flags)
}
