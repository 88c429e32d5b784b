/**
 * The template language's functions. The evaluator implements `and` and `or`, which do not always evaluate all of their
 * arguments.
 *
 * Numbers compare by value, regardless of their kind, and any whole number is a valid index. `quote` accepts any value
 * and returns JSON. All other functions work as in Go.
 * Source: Go text/template, "Functions"; json, fromJson and quote are additions.
 */
import { own } from '../../../schemas/index.ts'
import type { FunctionName } from '../../../schemas/workflow/index.ts'
import { fromJson, jsonText } from './json.ts'
import type { TemplateMeter } from './meter.ts'
import { escapeHtml, escapeQuery, escapeScript, print, printLine } from './print.ts'
import { printf } from './printf.ts'
import {
  compareText,
  EvaluationError,
  integerOf,
  isList,
  isNil,
  isObject,
  truth,
  typeName,
  type TemplateValue,
} from './value.ts'

interface TemplateFunction {
  readonly least: number
  readonly most: number
  readonly run: (values: readonly TemplateValue[], meter: TemplateMeter) => TemplateValue
}

type Run = TemplateFunction['run']

const exactly = (count: number, run: Run): TemplateFunction => ({ least: count, most: count, run })
const atLeast = (least: number, run: Run): TemplateFunction => ({ least, most: Infinity, run })

/** Functions for which all arguments are evaluated. */
const functions: Readonly<Record<Exclude<FunctionName, 'and' | 'or'>, TemplateFunction>> = {
  not: exactly(1, ([value]) => !truth(value)),
  eq: atLeast(1, (values, meter) => eq(values, meter)),
  ne: exactly(2, (values, meter) => !eq(values, meter)),
  lt: exactly(2, ([a, b], meter) => order(a, b, meter) < 0),
  le: exactly(2, ([a, b], meter) => order(a, b, meter) <= 0),
  gt: exactly(2, ([a, b], meter) => order(a, b, meter) > 0),
  ge: exactly(2, ([a, b], meter) => order(a, b, meter) >= 0),
  len: exactly(1, ([value], meter) => lengthOf(value, meter)),
  index: atLeast(1, ([value, ...indexes], meter) => index(value, indexes, meter)),
  slice: atLeast(1, ([value, ...indexes], meter) => slice(value, indexes, meter)),
  print: atLeast(0, print),
  println: atLeast(0, printLine),
  printf: atLeast(1, ([format, ...values], meter) => printf(text('printf', format), values, meter)),
  html: atLeast(0, (values, meter) => escapeText(values, meter, escapeHtml)),
  js: atLeast(0, (values, meter) => escapeText(values, meter, escapeScript)),
  urlquery: atLeast(0, (values, meter) => escapeText(values, meter, escapeQuery)),
  call: atLeast(1, ([value]) => {
    throw new EvaluationError(`call: a value of type ${typeName(value)} is not a function`)
  }),
  json: exactly(1, ([value], meter) => jsonText(value, meter)),
  fromJson: exactly(1, ([value], meter) => fromJson(text('fromJson', value), meter)),
  quote: exactly(1, ([value], meter) => jsonText(value, meter)),
}

/** Throws EvaluationError. */
export function callFunction(
  name: Exclude<FunctionName, 'and' | 'or'>,
  values: readonly TemplateValue[],
  meter: TemplateMeter,
): TemplateValue {
  const { least, most, run } = functions[name]
  if (values.length < least || values.length > most) {
    const want = least === most ? `${least}` : `at least ${least}`
    throw new EvaluationError(`wrong number of args for ${name}: want ${want} got ${values.length}`)
  }
  return run(values, meter)
}

function text(name: string, value: TemplateValue): string {
  if (typeof value === 'string') return value
  throw new EvaluationError(`${name}: expected string; got ${typeName(value)}`)
}

function escapeText(
  values: readonly TemplateValue[],
  meter: TemplateMeter,
  escape: (text: string) => string,
): string {
  const all = print(
    values.map((value) => (isNil(value) ? '<no value>' : value)),
    meter,
  )
  const result = escape(all)
  meter.spendText(result.length)
  if (result.length > meter.maxBytes) throw new EvaluationError('template output too large')
  return result
}

/** True when the first value equals at least one of the other values. */
function eq([first, ...others]: readonly TemplateValue[], meter: TemplateMeter): boolean {
  if (others.length === 0) throw new EvaluationError('missing argument for comparison')
  return others.some((other) => isEqual(first, other, meter))
}

function isEqual(a: TemplateValue, b: TemplateValue, meter: TemplateMeter): boolean {
  if (isNil(a) || isNil(b)) return isNil(a) && isNil(b)
  if (typeof a === 'object' && typeof b === 'object' && isList(a) === isList(b))
    throw new EvaluationError(`non-comparable type ${typeName(a)}`)
  if (isNumber(a) && isNumber(b)) return order(a, b, meter) === 0
  if (typeof a !== typeof b || typeof a === 'object')
    throw new EvaluationError('incompatible types for comparison')
  if (typeof a === 'string' && typeof b === 'string' && a.length === b.length) meter.spendText(a.length)
  return a === b
}

function isNumber(value: TemplateValue): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** Returns a negative number, 0 or a positive number, for two numbers or two strings. */
function order(a: TemplateValue, b: TemplateValue, meter: TemplateMeter): number {
  if (isNumber(a) && isNumber(b)) return a < b ? -1 : a > b ? 1 : 0
  if (typeof a === 'string' && typeof b === 'string') {
    meter.spendText(Math.min(a.length, b.length) * 8)
    return compareText(a, b)
  }
  const isBasic = (value: TemplateValue) => isNumber(value) || typeof value === 'string'
  const isFalse = isBasic(a) && (isBasic(b) || typeof b === 'boolean')
  throw new EvaluationError(`${isFalse ? 'incompatible types' : 'invalid type'} for comparison`)
}

/** Returns the number of bytes in a string, items in a list or members of an object. */
function lengthOf(value: TemplateValue, meter: TemplateMeter): bigint {
  if (isList(value)) return BigInt(value.length)
  if (typeof value === 'string') {
    meter.spendText(value.length)
    return BigInt(Buffer.byteLength(value))
  }
  if (!isObject(value)) throw new EvaluationError(`len of type ${typeName(value)}`)
  const { length } = Object.keys(value)
  meter.spend(length)
  return BigInt(length)
}

function index(value: TemplateValue, indexes: readonly TemplateValue[], meter: TemplateMeter): TemplateValue {
  let item = value
  if (isNil(item)) throw new EvaluationError('index of untyped nil')
  for (const at of indexes) {
    if (isNil(item)) throw new EvaluationError('index of nil')
    if (isList(item)) item = item[position(at, item.length - 1)]
    else if (typeof item === 'string') item = byteAt(item, at, meter)
    else if (isObject(item)) {
      if (typeof at !== 'string')
        throw new EvaluationError(`cannot index an object with type ${typeName(at)}`)
      item = own(item, at)
    } else throw new EvaluationError(`can't index item of type ${typeName(item)}`)
  }
  return item
}

function byteAt(item: string, at: TemplateValue, meter: TemplateMeter): bigint {
  meter.spendText(item.length)
  const bytes = Buffer.from(item)
  return BigInt(bytes[position(at, bytes.length - 1)] ?? 0)
}

/** Returns a list index from 0 to `last`. */
function position(value: TemplateValue, last: number): number {
  const at = integerOf(value)
  if (at === undefined) throw new EvaluationError(`cannot index slice/array with type ${typeName(value)}`)
  if (at < 0n || at > last) throw new EvaluationError(`index out of range: ${at}`)
  return Number(at)
}

/**
 * Returns part of a string (by bytes) or of a list. A third index serves only as an upper limit for the second index.
 */
function slice(value: TemplateValue, indexes: readonly TemplateValue[], meter: TemplateMeter): TemplateValue {
  if (isNil(value)) throw new EvaluationError('slice of untyped nil')
  if (indexes.length > 3) throw new EvaluationError(`too many slice indexes: ${indexes.length}`)
  if (typeof value !== 'string' && !isList(value))
    throw new EvaluationError(`can't slice item of type ${typeName(value)}`)
  if (typeof value === 'string' && indexes.length === 3)
    throw new EvaluationError('cannot 3-index slice a string')
  const whole = typeof value === 'string' ? Buffer.from(value) : value
  meter.spend(1 + Math.floor(whole.length / 8))
  const [from = 0, to = whole.length, cap = whole.length] = indexes.map((at) => position(at, whole.length))
  if (from > to || to > cap)
    throw new EvaluationError(`invalid slice index: ${from > to ? `${from} > ${to}` : `${to} > ${cap}`}`)
  return Buffer.isBuffer(whole) ? whole.subarray(from, to).toString() : whole.slice(from, to)
}
