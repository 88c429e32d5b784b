/** The syntax tree of a script. The resolver stores its results in the tree. */
import type { SourcePosition } from '../errors.ts'

/** A function's variable. All references to the name share one object. */
export interface DeclaredVariable {
  readonly name: string
  /** Index among the function's variables. */
  readonly slot: number
  /** True when an inner function uses the variable. The variable is then stored in a cell. */
  captured: boolean
}

/** Location of a variable's value. */
export type VariableBinding =
  | { readonly scope: 'local'; readonly variable: DeclaredVariable }
  /** A captured cell of the function. */
  | { readonly scope: 'free'; readonly index: number; readonly name: string }
  | { readonly scope: 'global'; readonly name: string }

export interface Name extends SourcePosition {
  readonly kind: 'name'
  readonly name: string
  binding?: VariableBinding
}

export interface Literal extends SourcePosition {
  readonly kind: 'int' | 'float' | 'string' | 'bytes'
  readonly text: string
  readonly number: number | bigint
}

export interface ArgumentNode extends SourcePosition {
  readonly form: 'positional' | 'named' | 'list' | 'dict'
  /** Name of a named argument. */
  readonly name: string
  readonly value: Expression
}

export interface Parameter extends SourcePosition {
  /** `marker` is the bare `*`. */
  readonly form: 'plain' | 'list' | 'dict' | 'marker'
  readonly name: string
  readonly fallback: Expression | undefined
}

/** The resolver's results for a function. */
export interface FunctionVariables {
  readonly variables: DeclaredVariable[]
  /** Cells of the enclosing function that this function captures. */
  readonly free: VariableBinding[]
}

export interface FunctionNode extends SourcePosition {
  readonly name: string
  readonly parameters: readonly Parameter[]
  readonly body: readonly StatementNode[]
  scope?: FunctionVariables
}

export type Clause =
  | (SourcePosition & { readonly kind: 'for'; readonly target: Expression; readonly over: Expression })
  | (SourcePosition & { readonly kind: 'if'; readonly condition: Expression })

export type Expression =
  | Name
  | Literal
  | (SourcePosition & {
      readonly kind: 'list' | 'tuple'
      readonly items: readonly Expression[]
      readonly open?: boolean
    })
  | (SourcePosition & { readonly kind: 'dict'; readonly entries: readonly DictEntry[] })
  | (SourcePosition & {
      readonly kind: 'comprehension'
      readonly body: Expression | DictEntry
      readonly clauses: readonly Clause[]
    })
  | (SourcePosition & {
      readonly kind: 'conditional'
      readonly condition: Expression
      readonly yes: Expression
      readonly no: Expression
    })
  | (SourcePosition & { readonly kind: 'unary'; readonly op: string; readonly operand: Expression })
  | (SourcePosition & {
      readonly kind: 'binary'
      readonly op: string
      readonly left: Expression
      readonly right: Expression
    })
  | (SourcePosition & { readonly kind: 'attribute'; readonly of: Expression; readonly name: string })
  | (SourcePosition & { readonly kind: 'index'; readonly of: Expression; readonly index: Expression })
  | (SourcePosition & {
      readonly kind: 'slice'
      readonly of: Expression
      readonly from: Expression | undefined
      readonly to: Expression | undefined
      readonly step: Expression | undefined
    })
  | (SourcePosition & {
      readonly kind: 'call'
      readonly callee: Expression
      readonly args: readonly ArgumentNode[]
    })
  | (SourcePosition & { readonly kind: 'lambda'; readonly fn: FunctionNode })

export interface DictEntry extends SourcePosition {
  readonly kind: 'entry'
  readonly key: Expression
  readonly value: Expression
}

export type StatementNode =
  | (SourcePosition & { readonly kind: 'expression'; readonly value: Expression })
  | (SourcePosition & {
      readonly kind: 'assign'
      /** Either `=`, or the operator of an augmented assignment without its `=`. */
      readonly op: string
      readonly target: Expression
      readonly value: Expression
    })
  | (SourcePosition & {
      readonly kind: 'if'
      readonly branches: readonly {
        readonly condition: Expression
        readonly body: readonly StatementNode[]
      }[]
      readonly otherwise: readonly StatementNode[]
    })
  | (SourcePosition & {
      readonly kind: 'for'
      readonly target: Expression
      readonly over: Expression
      readonly body: readonly StatementNode[]
    })
  | (SourcePosition & { readonly kind: 'def'; readonly target: Name; readonly fn: FunctionNode })
  | (SourcePosition & { readonly kind: 'return'; readonly value: Expression | undefined })
  | (SourcePosition & { readonly kind: 'break' | 'continue' | 'pass' })
