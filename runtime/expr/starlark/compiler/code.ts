/**
 * The machine's instructions, and the representation of a compiled function.
 *
 * The machine is a stack machine: instructions take their operands from the frame's stack and push their results. Each
 * instruction has one argument and costs one step.
 */
import type { VariableBinding } from '../syntax/ast.ts'
import type { SourcePosition } from '../errors.ts'
import type { Scalar } from '../values/scalars.ts'

export const opcode = {
  pop: 0,
  dup: 1,
  dup2: 2,
  swap: 3,
  constant: 4,
  none: 5,
  true: 6,
  false: 7,
  local: 8,
  setLocal: 9,
  cell: 10,
  setCell: 11,
  free: 12,
  setFree: 13,
  global: 14,
  /** The argument is the number of items. */
  list: 15,
  tuple: 16,
  dict: 17,
  /**
   * Expects dict, key and value on the stack. `setUnique` adds a dict literal entry and rejects repeated keys;
   * `setEntry` adds a comprehension entry.
   */
  setUnique: 18,
  setEntry: 19,
  /** Adds a comprehension item. Expects the list and the value on the stack. */
  append: 20,
  /** The argument is an index into `functions`. The defaults are on the stack. */
  closure: 21,
  /** The argument is an index into `calls`. */
  call: 22,
  attribute: 23,
  index: 24,
  setIndex: 25,
  setAttribute: 26,
  slice: 27,
  /** The argument is an index into operatorTable. */
  binary: 28,
  inPlace: 29,
  unary: 30,
  not: 31,
  /** The argument is the number of targets. */
  unpack: 32,
  iterate: 33,
  /** The argument is the jump target for the end of the sequence. */
  next: 34,
  endIterate: 35,
  jump: 36,
  jumpIf: 37,
  /**
   * Implements `and` and `or`. If the operand decides the result, the instruction jumps and keeps the operand.
   * Otherwise, the instruction drops the operand.
   */
  jumpIfFalseKeep: 38,
  jumpIfTrueKeep: 39,
  jumpIfNot: 40,
  return: 41,
} as const

export const operatorTable = [
  '+',
  '-',
  '*',
  '/',
  '//',
  '%',
  '&',
  '|',
  '^',
  '<<',
  '>>',
  '==',
  '!=',
  '<',
  '<=',
  '>',
  '>=',
  'in',
  'not in',
] as const
export type Operator = (typeof operatorTable)[number]

export const unaryOperators = ['-', '+', '~'] as const

/** Order of a call's arguments on the stack: positional, named, then `*` and `**`. */
export interface CallShape {
  readonly positional: number
  readonly names: readonly string[]
  readonly list: boolean
  readonly dict: boolean
}

export interface Bytecode {
  readonly name: string
  readonly position: SourcePosition
  /** Pairs that consist of an instruction and its argument. */
  readonly ops: Int32Array
  /** The line and column of each pair. */
  readonly places: Int32Array
  readonly constants: readonly Scalar[]
  readonly names: readonly string[]
  readonly functions: readonly Bytecode[]
  readonly calls: readonly CallShape[]
  /** Variable names, parameters first. */
  readonly variables: readonly string[]
  /** Variables stored in cells. */
  readonly cells: readonly number[]
  /** Locations of the captured cells in the enclosing function. */
  readonly free: readonly VariableBinding[]
  readonly freeNames: readonly string[]
  readonly parameters: ParameterShape
}

export interface ParameterShape {
  /** Number of parameters that positional arguments can fill. */
  readonly positional: number
  /** Number of keyword-only parameters, which follow the positional parameters. */
  readonly namedOnly: number
  /** For each parameter, true if it has a default value; see Func.defaults. */
  readonly defaults: readonly boolean[]
  /** Indexes of `*args` and `**kwargs` among the variables. */
  readonly list: number | undefined
  readonly dict: number | undefined
}
