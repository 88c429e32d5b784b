/**
 * A template's syntax tree, which the parser creates, the checks inspect and the runtime evaluates.
 *
 * The language is Go's text/template. Integers have the type bigint, other numbers the type number.
 * Source: Go text/template, "Actions", "Arguments", "Pipelines".
 */
import { ModuleError } from '../../errors.ts'
export type Node =
  | { readonly kind: 'text'; readonly text: string }
  /** A pipe in an action. The action prints the value of the pipe, unless the pipe declares or sets variables. */
  | { readonly kind: 'action'; readonly pipe: Pipe }
  | {
      readonly kind: 'if' | 'with' | 'range'
      readonly pipe: Pipe
      readonly body: readonly Node[]
      readonly otherwise: readonly Node[]
    }
  /** Runs a named template with the value of the pipe as its dot, or without a dot. */
  | { readonly kind: 'template'; readonly name: string; readonly pipe: Pipe | undefined }
  | { readonly kind: 'break' | 'continue' }

export interface Pipe {
  /** Variables that the pipe sets, including the `$`. A `range` action sets at most two. */
  readonly variables: readonly string[]
  /** True for `=`, which sets existing variables. */
  readonly assigns: boolean
  /** At least one command. Each command gets the value of the previous command as its last argument. */
  readonly commands: readonly Command[]
}

/** An operand and its arguments; at least the operand. */
export type Command = readonly [Operand, ...Operand[]]

export type Operand =
  | { readonly kind: 'dot' | 'nil' }
  | { readonly kind: 'bool'; readonly value: boolean }
  | { readonly kind: 'int'; readonly value: bigint }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  /** Fields of the dot. */
  | { readonly kind: 'field'; readonly names: readonly string[] }
  /** A variable (including its `$`) and a path of fields in its value; `$` is the root. */
  | { readonly kind: 'variable'; readonly name: string; readonly names: readonly string[] }
  | { readonly kind: 'function'; readonly name: FunctionName }
  | { readonly kind: 'pipe'; readonly pipe: Pipe }
  /** Fields of the value that a parenthesis or a function returns. */
  | { readonly kind: 'chain'; readonly of: Operand; readonly names: readonly string[] }

export interface Template {
  readonly body: readonly Node[]
  /** Named templates from `define` and `block`. */
  readonly named: ReadonlyMap<string, readonly Node[]>
}

/** Names of all functions in the language. The evaluator implements every function. */
export const functionNames = [
  'and',
  'or',
  'not',
  'eq',
  'ne',
  'lt',
  'le',
  'gt',
  'ge',
  'len',
  'index',
  'slice',
  'print',
  'printf',
  'println',
  'html',
  'js',
  'urlquery',
  'call',
  'json',
  'fromJson',
  'quote',
] as const

export type FunctionName = (typeof functionNames)[number]

/** An error in a template's text. The parser throws no other error. */
export class TemplateError extends ModuleError {}
