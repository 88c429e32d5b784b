/**
 * Methods of strings. All positions are byte positions.
 * Source: Starlark specification, "Built-in methods", strings.
 */
import { asBool, asInt, asText, failure, positional, type Method, type Methods } from './arguments.ts'
import { format } from './format.ts'
import { TextView } from '../values/scalars.ts'
import { type NativeCall, List, type StarlarkValue, Tuple, typeOf } from '../values/values.ts'
import { elementsOf } from '../values/iterate.ts'
import { testLetters, capitalize, type LetterQuestion, lower, title, upper } from '../values/letters.ts'
import { split, splitLines, strip } from './split.ts'
import { sizeOf } from '../vm/meter.ts'
import { bounds } from '../values/subscript.ts'
import { isAscii, pointsOf } from '../values/text.ts'

type TextMethod = Method<string>

function chargeText(call: NativeCall, text: string): string {
  call.meter.text(text.length)
  return text
}

function chargedList(call: NativeCall, parts: readonly string[]): List {
  call.meter.elements(parts.length)
  return new List(parts.map((part) => chargeText(call, part)))
}

/** Charges for the memory and the steps that the letters require. */
function chargeLetters(text: string, { meter }: NativeCall): void {
  meter.allocate(text.length * 2 * sizeOf.element)
  meter.step(Math.floor(text.length / 16))
}

function letterTest(question: LetterQuestion): TextMethod {
  return (text, call) => {
    positional(call, 0, 0)
    chargeLetters(text, call)
    return testLetters(question, text)
  }
}

function transformMethod(change: (text: string) => string): TextMethod {
  return (text, call) => {
    positional(call, 0, 0)
    chargeLetters(text, call)
    return chargeText(call, change(text))
  }
}

function viewMethod(method: TextView['method']): TextMethod {
  return (text, call) => {
    positional(call, 0, 0)
    return new TextView(text, method)
  }
}

function stripMethod(sides: 'both' | 'left' | 'right'): TextMethod {
  return (text, call) => {
    const [cutset] = positional(call, 0, 1)
    const letters = cutset === undefined || cutset === null ? '' : asText(call, cutset, '1')
    return chargeText(call, strip(text, letters, sides, call.meter))
  }
}

/** Returns the position at which a string occurs between two positions, or -1 when the string does not occur there. */
function find(text: string, call: NativeCall, { last }: { readonly last: boolean }): number {
  const [sub, start = null, end = null] = positional(call, 1, 3)
  const wanted = asText(call, sub, 'sub')
  const [from, to] = bounds(start, end, 1, text.length)
  if (from > to) return -1
  call.meter.search(to - from, wanted.length)
  const part = text.slice(from, to)
  const at = last ? part.lastIndexOf(wanted) : part.indexOf(wanted)
  return at < 0 ? -1 : at + from
}

interface FindOptions {
  readonly last: boolean
  /** True when a missing string is an error. */
  readonly required: boolean
}

function findMethod({ last, required }: FindOptions): TextMethod {
  return (text, call) => {
    const at = find(text, call, { last })
    if (at < 0 && required) throw failure(call, 'substring not found')
    return at
  }
}

function partitionMethod({ last }: { readonly last: boolean }): TextMethod {
  return (text, call) => {
    const sep = asText(call, positional(call, 1, 1)[0], '1')
    if (sep === '') throw failure(call, 'empty separator')
    call.meter.search(text.length, sep.length)
    call.meter.elements(3)
    call.meter.text(text.length)
    const at = last ? text.lastIndexOf(sep) : text.indexOf(sep)
    if (at < 0) return new Tuple(last ? ['', '', text] : [text, '', ''])
    return new Tuple([text.slice(0, at), sep, text.slice(at + sep.length)])
  }
}

function splitMethod({ last }: { readonly last: boolean }): TextMethod {
  return (text, call) => {
    const [sep = null, maxsplit] = positional(call, 0, 2)
    const most = maxsplit === undefined ? -1 : asInt(call, maxsplit, 'maxsplit')
    const by = sep === null ? undefined : asText(call, sep, 'sep')
    if (by === '') throw failure(call, 'empty separator')
    return chargedList(call, split(text, by, most, last, call.meter))
  }
}

function hasAffix(call: NativeCall, text: string, test: (part: string, affix: string) => boolean): boolean {
  const [affix = null, start = null, end = null] = positional(call, 1, 3)
  const [from, to] = bounds(start, end, 1, text.length)
  const part = text.slice(from, Math.max(from, to))
  if (affix instanceof Tuple)
    return affix.items.some((item, i) => {
      if (typeof item !== 'string') throw failure(call, `want string, got ${typeOf(item)}, for element ${i}`)
      call.meter.step(1 + Math.floor(item.length / 256))
      return test(part, item)
    })
  if (typeof affix !== 'string') throw failure(call, `got ${typeOf(affix)}, want string or tuple of string`)
  call.meter.step(Math.floor(affix.length / 256))
  return from <= to && test(part, affix)
}

function count(text: string, call: NativeCall): number {
  const [sub, start = null, end = null] = positional(call, 1, 3)
  const wanted = asText(call, sub, 'sub')
  const [from, to] = bounds(start, end, 1, text.length)
  const part = from <= to ? text.slice(from, to) : ''
  call.meter.search(part.length, wanted.length)
  if (wanted === '') return from <= to ? pointCount(part, call) + 1 : 0
  let found = 0
  for (let at = part.indexOf(wanted); at >= 0; at = part.indexOf(wanted, at + wanted.length)) {
    call.meter.step(1)
    found++
  }
  return found
}

function join(text: string, call: NativeCall): string {
  const items = elementsOf(positional(call, 1, 1)[0] ?? null, call.meter, 'join: for parameter 1')
  const parts = items.map((item) => {
    if (typeof item !== 'string') throw failure(call, `in list, want string, got ${typeOf(item)}`)
    return item
  })
  const inner = parts.reduce((sum, part) => sum + part.length, 0)
  call.meter.text(inner + text.length * Math.max(0, parts.length - 1))
  return parts.join(text)
}

function replace(text: string, call: NativeCall): string {
  const [old, next, most] = positional(call, 2, 3)
  const [from, to] = [asText(call, old, 'old'), asText(call, next, 'new')]
  const limit = most === undefined ? -1 : asInt(call, most, 'count')
  call.meter.search(text.length, from.length)
  // Checks the result's size before building it.
  const places = from === '' ? pointCount(text, call) + 1 : Math.floor(text.length / from.length)
  const times = limit < 0 ? places : Math.min(places, limit)
  const parts = splitParts(text, from, times, call)
  call.meter.text(text.length + Math.max(0, parts.length - 1) * to.length)
  return parts.join(to)
}

/** Returns the number of code points in a string. */
function pointCount(text: string, { meter }: NativeCall): number {
  if (isAscii(text)) return text.length
  meter.elements(text.length)
  return pointsOf(text).length
}

/** Splits a string at a limited number of separator occurrences. An empty separator matches between all code points. */
function splitParts(text: string, cut: string, times: number, call: NativeCall): string[] {
  if (cut === '') {
    if (times <= 0) return [text]
    call.meter.elements(text.length)
    const letters = isAscii(text) ? Array.from(text) : pointsOf(text)
    return ['', ...letters.slice(0, times - 1), letters.slice(times - 1).join('')]
  }
  const parts: string[] = []
  let at = 0
  for (let i = 0; i < times; i++) {
    const found = text.indexOf(cut, at)
    if (found < 0) break
    call.meter.elements(1)
    parts.push(text.slice(at, found))
    at = found + cut.length
  }
  return [...parts, text.slice(at)]
}

function lines(text: string, call: NativeCall): StarlarkValue {
  const [keep] = positional(call, 0, 1)
  return chargedList(call, splitLines(text, asBool(call, keep, '1'), call.meter))
}

function withoutAffix(text: string, call: NativeCall, where: 'start' | 'end'): string {
  const affix = asText(call, positional(call, 1, 1)[0], '1')
  if (affix === '') return text
  if (where === 'end') return text.endsWith(affix) ? chargeText(call, text.slice(0, -affix.length)) : text
  return text.startsWith(affix) ? chargeText(call, text.slice(affix.length)) : text
}

export const stringMethods: Methods<string> = {
  capitalize: transformMethod(capitalize),
  codepoint_ords: viewMethod('codepoint_ords'),
  codepoints: viewMethod('codepoints'),
  count,
  elem_ords: viewMethod('elem_ords'),
  elems: viewMethod('elems'),
  endswith: (text, call) => hasAffix(call, text, (part, affix) => part.endsWith(affix)),
  find: findMethod({ last: false, required: false }),
  format,
  index: findMethod({ last: false, required: true }),
  isalnum: letterTest('isalnum'),
  isalpha: letterTest('isalpha'),
  isdigit: letterTest('isdigit'),
  islower: letterTest('islower'),
  isspace: letterTest('isspace'),
  istitle: letterTest('istitle'),
  isupper: letterTest('isupper'),
  join,
  lower: transformMethod(lower),
  lstrip: stripMethod('left'),
  partition: partitionMethod({ last: false }),
  removeprefix: (text, call) => withoutAffix(text, call, 'start'),
  removesuffix: (text, call) => withoutAffix(text, call, 'end'),
  replace,
  rfind: findMethod({ last: true, required: false }),
  rindex: findMethod({ last: true, required: true }),
  rpartition: partitionMethod({ last: true }),
  rsplit: splitMethod({ last: true }),
  rstrip: stripMethod('right'),
  split: splitMethod({ last: false }),
  splitlines: lines,
  startswith: (text, call) => hasAffix(call, text, (part, affix) => part.startsWith(affix)),
  strip: stripMethod('both'),
  title: transformMethod(title),
  upper: transformMethod(upper),
}
