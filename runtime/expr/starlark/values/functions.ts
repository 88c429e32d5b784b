/** Functions of scripts and functions that are built in, and what the latter can ask of the machine. */
import type { Code } from '../compiler/code.ts'
import type { Dict } from './dict.ts'
import type { Meter } from '../vm/meter.ts'
import type { StarlarkValue } from './values.ts'

/** A variable that outlives its function's frame, because an inner function uses it. */
export class Cell {
  value: StarlarkValue | undefined
  constructor(value: StarlarkValue | undefined) {
    this.value = value
  }
}

export class Func {
  readonly type = 'function'
  readonly code: Code
  readonly name: string
  /** Defaults of the last parameters that can have one; undefined: the parameter is required. */
  readonly defaults: readonly (StarlarkValue | undefined)[]
  readonly free: readonly Cell[]
  constructor(code: Code, defaults: readonly (StarlarkValue | undefined)[], free: readonly Cell[]) {
    this.code = code
    this.name = code.name
    this.defaults = defaults
    this.free = free
  }
}

export type Named = readonly (readonly [name: string, value: StarlarkValue])[]

/** One call of a built-in function. */
export interface Call {
  readonly name: string
  readonly args: readonly StarlarkValue[]
  readonly named: Named
  readonly meter: Meter
  /** Takes one line of `print`. */
  readonly print: (line: string) => void
}

/** What a built-in function asks of the machine; it goes on with the response. */
export type Effect =
  | { readonly kind: 'call'; readonly callee: StarlarkValue; readonly args: readonly StarlarkValue[] }
  /** Something outside: `begin` starts it, and calls `settle` once. */
  | { readonly kind: 'wait'; readonly begin: (settle: (outcome: Settled) => void) => void }
  /** Functions to be carried out side by side; the response is the list of results. */
  | { readonly kind: 'parallel'; readonly callables: readonly StarlarkValue[] }

export type Settled = { readonly value: StarlarkValue } | { readonly error: Error }
export type Work = Generator<Effect, StarlarkValue, StarlarkValue>

export class Builtin {
  readonly type = 'builtin_function_or_method'
  readonly name: string
  /** Type of the value that a method belongs to. */
  readonly receiver: string | undefined
  readonly run: (call: Call) => StarlarkValue | Work
  constructor(name: string, run: (call: Call) => StarlarkValue | Work, receiver?: string) {
    this.name = name
    this.run = run
    this.receiver = receiver
  }
}

export function isWork(result: StarlarkValue | Work): result is Work {
  return typeof result === 'object' && result !== null && 'next' in result
}

export function isDict(value: StarlarkValue): value is Dict {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'dict'
}
