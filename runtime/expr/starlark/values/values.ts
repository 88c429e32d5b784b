/** Script values. Sequences, dicts and functions share a file, because their types refer to each other. */
import type { Bytecode } from '../compiler/code.ts'
import { StarlarkError } from '../errors.ts'
import { type ScriptMeter, sizeOf } from '../vm/meter.ts'
import { Bytes, Float, Range, type Scalar, TextView } from './scalars.ts'

export type StarlarkValue = Scalar | Tuple | List | Dict | Func | Builtin

export class Tuple {
  readonly items: readonly StarlarkValue[]
  constructor(items: readonly StarlarkValue[]) {
    this.items = items
  }
}

export class List {
  items: StarlarkValue[]
  /** Number of active iterations over the list. The list must not change during an iteration. */
  iterating = 0
  constructor(items: StarlarkValue[]) {
    this.items = items
  }

  /** Throws if the list cannot currently be changed. */
  writable(verb: string): StarlarkValue[] {
    if (this.iterating > 0) throw new StarlarkError(`cannot ${verb} list during iteration`)
    return this.items
  }
}

/** Key of a dict entry in the underlying Map. */
type Key = null | boolean | number | bigint | string | object

/** Maximum nesting depth of a tuple used as a key. */
const maxDepth = 100

/**
 * Maps script values to script values, in insertion order. Equal keys (including 1 and 1.0) share an entry, because
 * they map to the same JavaScript key. Numbers and strings map to themselves; tuples map to a string that starts with a
 * character greater than any byte.
 * Source: Starlark specification, "Dictionaries", "Hashing".
 */
export class Dict {
  readonly type = 'dict'
  readonly #entries = new Map<Key, [StarlarkValue, StarlarkValue]>()
  /** Number of active iterations over the dict. Keys must not be added or removed during an iteration. */
  iterating = 0

  get size(): number {
    return this.#entries.size
  }

  /** Returns the value of a key. Throws for unhashable keys. */
  get(key: StarlarkValue, meter: ScriptMeter): StarlarkValue | undefined {
    return this.#entries.get(keyOf(key, meter))?.[1]
  }

  /** Sets an entry. Throws for unhashable keys, and for new keys during an iteration. */
  set(key: StarlarkValue, value: StarlarkValue, meter: ScriptMeter): void {
    const hashed = keyOf(key, meter)
    const entry = this.#entries.get(hashed)
    this.#writable('insert into')
    if (entry) {
      entry[1] = value
      return
    }
    meter.allocate(sizeOf.entry)
    this.#entries.set(hashed, [key, value])
  }

  delete(key: StarlarkValue, meter: ScriptMeter): StarlarkValue | undefined {
    const hashed = keyOf(key, meter)
    const entry = this.#entries.get(hashed)
    this.#writable('delete from')
    this.#entries.delete(hashed)
    return entry?.[1]
  }

  /** Removes and returns the oldest entry. */
  shift(): [StarlarkValue, StarlarkValue] | undefined {
    for (const [hashed, entry] of this.#entries) {
      this.#writable('delete from')
      this.#entries.delete(hashed)
      return entry
    }
    return undefined
  }

  clear(): void {
    this.#writable('clear')
    this.#entries.clear()
  }

  #writable(verb: string): void {
    if (this.iterating > 0) throw new StarlarkError(`cannot ${verb} hash table during iteration`)
  }

  entries(): IterableIterator<[StarlarkValue, StarlarkValue]> {
    return this.#entries.values()
  }

  *keys(): Generator<StarlarkValue> {
    for (const [key] of this.#entries.values()) yield key
  }

  *values(): Generator<StarlarkValue> {
    for (const [, value] of this.#entries.values()) yield value
  }

  copy(meter: ScriptMeter): Dict {
    const made = new Dict()
    meter.allocate(sizeOf.dict)
    meter.step(this.size)
    for (const [key, value] of this.entries()) made.set(key, value, meter)
    return made
  }
}

/** Throws `unhashable type` for lists, dicts and similar values. */
function keyOf(value: StarlarkValue, meter: ScriptMeter): Key {
  if (value === null || typeof value !== 'object') return value
  if (value instanceof Float) return floatKey(value.value)
  if (value instanceof Bytes) return `\u0101${value.data}`
  if (value instanceof Tuple) return tupleKey(value, meter, 0)
  if (value instanceof List || value instanceof TextView || value.constructor === Dict)
    throw new StarlarkError(`unhashable type: ${typeOf(value)}`)
  if (value instanceof Range) throw new StarlarkError('unhashable: range')
  return value
}

/** Returns the key of a value. Throws for unhashable values. */
export function requireHashable(value: StarlarkValue, meter: ScriptMeter): void {
  keyOf(value, meter)
}

/** Uses the key of an int, because integral floats equal ints of any size. */
function floatKey(value: number): Key {
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value === 0 ? 0 : value
  return BigInt(value)
}

const identities = new WeakMap<object, number>()
let nextIdentity = 1

function tupleKey(tuple: Tuple, meter: ScriptMeter, depth: number): string {
  if (depth > maxDepth) throw new StarlarkError('tuple is nested too deeply to be a key')
  meter.step(tuple.items.length)
  const parts = tuple.items.map((item) => {
    if (item instanceof Tuple) return tupleKey(item, meter, depth + 1)
    const key = keyOf(item, meter)
    if (typeof key !== 'object' || key === null) return `\u0102${typeof key}:${String(key)}`
    let id = identities.get(key)
    if (id === undefined) {
      id = nextIdentity++
      identities.set(key, id)
    }
    return `\u0102@${id}`
  })
  const text = `\u0100${parts.join('')}\u0103`
  meter.text(text.length)
  return text
}

/** A variable that outlives the frame of its function, because an inner function uses it. */
export class Cell {
  value: StarlarkValue | undefined
  constructor(value: StarlarkValue | undefined) {
    this.value = value
  }
}

export class Func {
  readonly type = 'function'
  readonly code: Bytecode
  readonly name: string
  /** Default values for the last parameters; undefined for a required parameter. */
  readonly defaults: readonly (StarlarkValue | undefined)[]
  readonly free: readonly Cell[]
  constructor(code: Bytecode, defaults: readonly (StarlarkValue | undefined)[], free: readonly Cell[]) {
    this.code = code
    this.name = code.name
    this.defaults = defaults
    this.free = free
  }
}

export type Named = readonly (readonly [name: string, value: StarlarkValue])[]

/** A call to a built-in function. */
export interface NativeCall {
  readonly name: string
  readonly args: readonly StarlarkValue[]
  readonly named: Named
  readonly meter: ScriptMeter
  /** Receives each line of `print`. */
  readonly print: (line: string) => void
}

/** A request from a built-in function to the machine. The function continues with the response. */
export type TaskEffect =
  | { readonly kind: 'call'; readonly callee: StarlarkValue; readonly args: readonly StarlarkValue[] }
  /** An external operation. `begin` starts the operation, which calls `settle` once. */
  | { readonly kind: 'wait'; readonly begin: (settle: (outcome: Settled) => void) => void }
  /** Functions to run concurrently. The response is the list of results. */
  | { readonly kind: 'parallel'; readonly callables: readonly StarlarkValue[] }

export type Settled = { readonly value: StarlarkValue } | { readonly error: Error }
export type ScriptWork = Generator<TaskEffect, StarlarkValue, StarlarkValue>

export class Builtin {
  readonly type = 'builtin_function_or_method'
  readonly name: string
  /** Type of a method's receiver. */
  readonly receiver: string | undefined
  readonly run: (call: NativeCall) => StarlarkValue | ScriptWork
  constructor(name: string, run: (call: NativeCall) => StarlarkValue | ScriptWork, receiver?: string) {
    this.name = name
    this.run = run
    this.receiver = receiver
  }
}

export function isWork(result: StarlarkValue | ScriptWork): result is ScriptWork {
  return typeof result === 'object' && result !== null && 'next' in result
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

function typeOfObject(value: Extract<StarlarkValue, object>): string {
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
