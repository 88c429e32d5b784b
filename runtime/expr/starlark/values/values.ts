/**
 * The values of scripts. None, bool, small int and string are JavaScript's own null, boolean, integral number and
 * string (one character for each byte, see text.ts); everything else is a class here or in dict.ts and functions.ts.
 *
 * An int is a number as long as it is a safe integer, a bigint beyond; never both. A float is a `Float`, so that the
 * two stay apart.
 * Source: Starlark specification, "Data types".
 */
import type { Dict } from './dict.ts'
import { StarlarkError } from '../errors.ts'
import type { Builtin, Func } from './functions.ts'

export class Float {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/** A sequence of bytes that is no text. */
export class Bytes {
  readonly data: string
  constructor(data: string) {
    this.data = data
  }
}

export class Tuple {
  readonly items: readonly StarlarkValue[]
  constructor(items: readonly StarlarkValue[]) {
    this.items = items
  }
}

export class List {
  items: StarlarkValue[]
  /** Loops that go through the list now: it must not change. */
  iterating = 0
  constructor(items: StarlarkValue[]) {
    this.items = items
  }

  /** Throws when the list cannot be changed now. */
  writable(verb: string): StarlarkValue[] {
    if (this.iterating > 0) throw new StarlarkError(`cannot ${verb} list during iteration`)
    return this.items
  }
}

/** An arithmetic sequence that is not laid out. */
export class Range {
  readonly start: number
  readonly stop: number
  readonly step: number
  readonly length: number
  constructor(start: number, stop: number, step: number) {
    this.start = start
    this.stop = stop
    this.step = step
    const span = step > 0 ? stop - start : start - stop
    this.length = span > 0 ? Math.floor((span - 1) / Math.abs(step)) + 1 : 0
  }

  at(index: number): number {
    return this.start + index * this.step
  }
}

/** What `elems`, `codepoints` and their likes answer: a text seen as a sequence. */
export class TextView {
  readonly text: string
  readonly method: 'elems' | 'elem_ords' | 'codepoints' | 'codepoint_ords'
  /** True for the view of bytes. */
  readonly ofBytes: boolean
  constructor(text: string, method: TextView['method'], ofBytes = false) {
    this.text = text
    this.method = method
    this.ofBytes = ofBytes
  }
}

export type Int = number | bigint
export type StarlarkValue =
  | null
  | boolean
  | Int
  | string
  | Float
  | Bytes
  | Tuple
  | List
  | Dict
  | Range
  | TextView
  | Func
  | Builtin

export function isInt(value: StarlarkValue): value is Int {
  return typeof value === 'number' || typeof value === 'bigint'
}

export function typeOf(value: StarlarkValue): string {
  if (value === null) return 'NoneType'
  switch (typeof value) {
    case 'boolean':
      return 'bool'
    case 'number':
    case 'bigint':
      return 'int'
    case 'string':
      return 'string'
    default:
      return typeOfObject(value)
  }
}

function typeOfObject(value: Exclude<StarlarkValue, null | boolean | Int | string>): string {
  if (value instanceof Float) return 'float'
  if (value instanceof Bytes) return 'bytes'
  if (value instanceof Tuple) return 'tuple'
  if (value instanceof List) return 'list'
  if (value instanceof Range) return 'range'
  if (value instanceof TextView) {
    const sequence = value.method.startsWith('elem') ? 'elems' : 'codepoints'
    return `${value.ofBytes ? 'bytes' : 'string'}.${sequence}`
  }
  return value.type
}

/** What counts as true in conditions. */
export function truth(value: StarlarkValue): boolean {
  if (value === null || typeof value === 'boolean') return value === true
  if (typeof value === 'number') return value !== 0
  if (typeof value === 'bigint') return true
  if (typeof value === 'string') return value !== ''
  if (value instanceof Float) return value.value !== 0
  if (value instanceof Bytes) return value.data !== ''
  if (value instanceof Tuple || value instanceof List) return value.items.length > 0
  if (value instanceof Range) return value.length > 0
  if (value instanceof TextView) return value.text !== ''
  return value.type !== 'dict' || value.size > 0
}

/** Number of elements; undefined for what has none, or does not know. */
export function lengthOf(value: StarlarkValue): number | undefined {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null || value instanceof Float) return undefined
  if (value instanceof Bytes) return value.data.length
  if (value instanceof Tuple || value instanceof List) return value.items.length
  if (value instanceof Range) return value.length
  if (value instanceof TextView) return value.method.startsWith('elem') ? value.text.length : undefined
  return value.type === 'dict' ? value.size : undefined
}
