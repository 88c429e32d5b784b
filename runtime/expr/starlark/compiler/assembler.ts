/** Assembles a function's instructions: resolves forward jumps and builds the constant tables. */
import type { FunctionNode } from '../syntax/ast.ts'
import type { CallShape, Bytecode } from './code.ts'
import type { SourcePosition } from '../errors.ts'
import type { Scalar } from '../values/scalars.ts'

/** Target of a jump. */
export interface Label {
  at: number
}

export class Assembler {
  readonly #ops: number[] = []
  readonly #places: number[] = []
  readonly #jumps: { readonly at: number; readonly to: Label }[] = []
  readonly #constants: Scalar[] = []
  readonly #known = new Map<number | bigint | string, number>()
  readonly #names = new Map<string, number>()
  readonly #functions: Bytecode[] = []
  readonly #calls: CallShape[] = []
  readonly #compileFunction: (fn: FunctionNode) => Bytecode
  #place: SourcePosition = { line: 1, column: 1 }

  /** `compileFunction` compiles nested functions. */
  constructor(compileFunction: (fn: FunctionNode) => Bytecode) {
    this.#compileFunction = compileFunction
  }

  /** Sets the source position of the instructions that follow. */
  at(place: SourcePosition): void {
    this.#place = place
  }

  emit(op: number, argument = 0): void {
    this.#ops.push(op, argument)
    this.#places.push(this.#place.line, this.#place.column)
  }

  label(): Label {
    return { at: -1 }
  }

  place(label: Label): void {
    label.at = this.#ops.length
  }

  jump(op: number, to: Label): void {
    this.#jumps.push({ at: this.#ops.length + 1, to })
    this.emit(op)
  }

  constant(value: Scalar): number {
    const key = typeof value === 'object' || typeof value === 'boolean' ? undefined : value
    const known = key === undefined ? undefined : this.#known.get(key)
    if (known !== undefined) return known
    this.#constants.push(value)
    if (key !== undefined) this.#known.set(key, this.#constants.length - 1)
    return this.#constants.length - 1
  }

  name(name: string): number {
    const known = this.#names.get(name)
    if (known !== undefined) return known
    this.#names.set(name, this.#names.size)
    return this.#names.size - 1
  }

  fn(fn: FunctionNode): number {
    return this.#functions.push(this.#compileFunction(fn)) - 1
  }

  call(shape: CallShape): number {
    return this.#calls.push(shape) - 1
  }

  finish(): Pick<Bytecode, 'ops' | 'places' | 'constants' | 'names' | 'functions' | 'calls'> {
    const ops = Int32Array.from(this.#ops)
    for (const { at, to } of this.#jumps) ops[at] = to.at
    return {
      ops,
      places: Int32Array.from(this.#places),
      constants: this.#constants,
      names: [...this.#names.keys()],
      functions: this.#functions,
      calls: this.#calls,
    }
  }
}
