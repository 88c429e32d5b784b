/** The tree of a script. What the resolver finds out about names is written into it. */
import type { Position } from '../errors.ts'

/** A variable of a function; one object however often it is named. */
export interface Variable {
  readonly name: string
  /** Place among the function's variables. */
  readonly slot: number
  /** True when an inner function uses it: it then lives in a cell. */
  captured: boolean
}

/** Where the value of a name is found. */
export type Binding =
  | { readonly scope: 'local'; readonly variable: Variable }
  /** One of the cells that the function brought along. */
  | { readonly scope: 'free'; readonly index: number; readonly name: string }
  | { readonly scope: 'global'; readonly name: string }

export interface Name extends Position {
  readonly kind: 'name'
  readonly name: string
  binding?: Binding
}

export interface Literal extends Position {
  readonly kind: 'int' | 'float' | 'string' | 'bytes'
  readonly text: string
  readonly number: number | bigint
}

export interface Argument extends Position {
  readonly form: 'positional' | 'named' | 'list' | 'dict'
  /** Of a named one. */
  readonly name: string
  readonly value: Expression
}

export interface Parameter extends Position {
  /** `marker`: the bare `*`. */
  readonly form: 'plain' | 'list' | 'dict' | 'marker'
  readonly name: string
  readonly fallback: Expression | undefined
}

/** What the resolver knows of a function. */
export interface Scope {
  readonly variables: Variable[]
  /** Cells of the enclosing function that this one brings along. */
  readonly free: Binding[]
}

export interface FunctionNode extends Position {
  readonly name: string
  readonly parameters: readonly Parameter[]
  readonly body: readonly Statement[]
  scope?: Scope
}

export type Clause =
  | (Position & { readonly kind: 'for'; readonly target: Expression; readonly over: Expression })
  | (Position & { readonly kind: 'if'; readonly condition: Expression })

export type Expression =
  | Name
  | Literal
  | (Position & {
      readonly kind: 'list' | 'tuple'
      readonly items: readonly Expression[]
      readonly open?: boolean
    })
  | (Position & { readonly kind: 'dict'; readonly entries: readonly DictEntry[] })
  | (Position & {
      readonly kind: 'comprehension'
      readonly body: Expression | DictEntry
      readonly clauses: readonly Clause[]
    })
  | (Position & {
      readonly kind: 'conditional'
      readonly condition: Expression
      readonly yes: Expression
      readonly no: Expression
    })
  | (Position & { readonly kind: 'unary'; readonly op: string; readonly operand: Expression })
  | (Position & {
      readonly kind: 'binary'
      readonly op: string
      readonly left: Expression
      readonly right: Expression
    })
  | (Position & { readonly kind: 'attribute'; readonly of: Expression; readonly name: string })
  | (Position & { readonly kind: 'index'; readonly of: Expression; readonly index: Expression })
  | (Position & {
      readonly kind: 'slice'
      readonly of: Expression
      readonly from: Expression | undefined
      readonly to: Expression | undefined
      readonly step: Expression | undefined
    })
  | (Position & { readonly kind: 'call'; readonly callee: Expression; readonly args: readonly Argument[] })
  | (Position & { readonly kind: 'lambda'; readonly fn: FunctionNode })

export interface DictEntry extends Position {
  readonly kind: 'entry'
  readonly key: Expression
  readonly value: Expression
}

export type Statement =
  | (Position & { readonly kind: 'expression'; readonly value: Expression })
  | (Position & {
      readonly kind: 'assign'
      /** `=`, or the operator of an augmented assignment without it. */
      readonly op: string
      readonly target: Expression
      readonly value: Expression
    })
  | (Position & {
      readonly kind: 'if'
      readonly branches: readonly { readonly condition: Expression; readonly body: readonly Statement[] }[]
      readonly otherwise: readonly Statement[]
    })
  | (Position & {
      readonly kind: 'for'
      readonly target: Expression
      readonly over: Expression
      readonly body: readonly Statement[]
    })
  | (Position & { readonly kind: 'def'; readonly target: Name; readonly fn: FunctionNode })
  | (Position & { readonly kind: 'return'; readonly value: Expression | undefined })
  | (Position & { readonly kind: 'break' | 'continue' | 'pass' })
