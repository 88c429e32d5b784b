/**
 * Resolves each name in a script before it runs, and rejects undefined names.
 *
 * A name that is assigned anywhere in a function is a variable of that function. A comprehension has its own scope.
 * Other names are looked up in the enclosing functions, then among the host's and the language's globals. All errors
 * are reported at once.
 * Source: Starlark specification, "Name binding and variables".
 */
import type {
  ArgumentNode,
  VariableBinding,
  Clause,
  Expression,
  FunctionNode,
  Name,
  Parameter,
  StatementNode,
  DeclaredVariable,
} from '../syntax/ast.ts'
import { type SourcePosition, StarlarkError } from '../errors.ts'
import { likely } from './spelling.ts'

const maxErrors = 10

type Failure = (message: string, place: SourcePosition) => void

/** The names in scope in one part of a function: its body or a comprehension. */
class Block {
  readonly names = new Map<string, DeclaredVariable>()
  readonly owner: FunctionScope
  readonly outer: Block | undefined
  constructor(owner: FunctionScope, outer: Block | undefined) {
    this.owner = owner
    this.outer = outer
  }

  declare(name: string): DeclaredVariable {
    const known = this.names.get(name)
    if (known) return known
    const variable = { name, slot: this.owner.variables.length, captured: false }
    this.owner.variables.push(variable)
    this.names.set(name, variable)
    return variable
  }
}

class FunctionScope {
  readonly variables: DeclaredVariable[] = []
  readonly free: VariableBinding[] = []
  readonly #freeIndex = new Map<DeclaredVariable, number>()

  /**
   * Returns the index of a variable among the captured cells. `from` returns its location in the enclosing function.
   */
  capture(variable: DeclaredVariable, from: () => VariableBinding): number {
    const known = this.#freeIndex.get(variable)
    if (known !== undefined) return known
    this.free.push(from())
    this.#freeIndex.set(variable, this.free.length - 1)
    return this.free.length - 1
  }
}

/**
 * Resolves the names in a script, and stores the results in the script's syntax tree. `globals` are the names defined
 * outside the script. Throws StarlarkError.
 */
export function resolve(script: FunctionNode, globals: ReadonlySet<string>): void {
  const violations: { message: string; place: SourcePosition }[] = []
  const failure: Failure = (message, place) => {
    violations.push({ message, place })
    if (violations.length === maxErrors) throw combinedError(violations)
  }
  new Resolver(globals, failure).fn(script, undefined)
  if (violations.length > 0) throw combinedError(violations)
}

function combinedError(
  violations: readonly { readonly message: string; readonly place: SourcePosition }[],
): StarlarkError {
  const [first, ...more] = violations
  const others = more.map(({ message, place }) => `; ${place.line}:${place.column}: ${message}`)
  return new StarlarkError(`${first?.message ?? ''}${others.join('')}`, first?.place)
}

class Resolver {
  readonly #globals: ReadonlySet<string>
  readonly #failure: Failure

  constructor(globals: ReadonlySet<string>, failure: Failure) {
    this.#globals = globals
    this.#failure = failure
  }

  fn(fn: FunctionNode, outer: Block | undefined): void {
    const owner = new FunctionScope()
    const block = new Block(owner, outer)
    checkParameters(fn.parameters, this.#failure)
    for (const { form, name, fallback } of fn.parameters) {
      if (form !== 'marker') block.declare(name)
      if (fallback && outer) this.expression(fallback, outer)
    }
    this.#declareAll(fn.body, block)
    this.statements(fn.body, block, { inLoop: false })
    fn.scope = owner
  }

  /** Declares the names that a function's statements assign, excluding inner functions. */
  #declareAll(statements: readonly StatementNode[], block: Block): void {
    for (const statement of statements) {
      switch (statement.kind) {
        case 'assign':
          this.#declareTarget(statement.target, block)
          break
        case 'def':
          block.declare(statement.target.name)
          break
        case 'for':
          this.#declareTarget(statement.target, block)
          this.#declareAll(statement.body, block)
          break
        case 'if':
          for (const { body } of statement.branches) this.#declareAll(body, block)
          this.#declareAll(statement.otherwise, block)
          break
        default:
      }
    }
  }

  #declareTarget(target: Expression, block: Block): void {
    if (target.kind === 'name') block.declare(target.name)
    else if (target.kind === 'list' || target.kind === 'tuple')
      for (const item of target.items) this.#declareTarget(item, block)
  }

  statements(
    statements: readonly StatementNode[],
    block: Block,
    { inLoop }: { readonly inLoop: boolean },
  ): void {
    for (const statement of statements) this.#statement(statement, block, { inLoop })
  }

  #statement(statement: StatementNode, block: Block, { inLoop }: { readonly inLoop: boolean }): void {
    switch (statement.kind) {
      case 'expression':
        this.expression(statement.value, block)
        break
      case 'assign':
        this.expression(statement.value, block)
        this.#target(statement.target, block, { augmented: statement.op !== '=' })
        break
      case 'return':
        if (statement.value) this.expression(statement.value, block)
        break
      case 'if':
        for (const { condition, body } of statement.branches) {
          this.expression(condition, block)
          this.statements(body, block, { inLoop })
        }
        this.statements(statement.otherwise, block, { inLoop })
        break
      case 'for':
        this.expression(statement.over, block)
        this.#target(statement.target, block, { augmented: false })
        this.statements(statement.body, block, { inLoop: true })
        break
      case 'def':
        this.fn(statement.fn, block)
        this.#resolveName(statement.target, block)
        break
      case 'pass':
        break
      default:
        if (!inLoop) this.#failure(`${statement.kind} not in a loop`, statement)
    }
  }

  #target(target: Expression, block: Block, { augmented }: { readonly augmented: boolean }): void {
    switch (target.kind) {
      case 'name':
        this.#resolveName(target, block)
        break
      case 'index':
      case 'attribute':
        this.expression(target, block)
        break
      case 'list':
      case 'tuple':
        if (augmented) this.#failure(`can't use ${target.kind} expression in augmented assignment`, target)
        for (const item of target.items) this.#target(item, block, { augmented: false })
        break
      default:
        this.#failure(`can't assign to ${nameOf(target)}`, target)
    }
  }

  expression(expression: Expression, block: Block): void {
    switch (expression.kind) {
      case 'name':
        this.#resolveName(expression, block)
        break
      case 'list':
      case 'tuple':
        for (const item of expression.items) this.expression(item, block)
        break
      case 'dict':
        for (const { key, value } of expression.entries) {
          this.expression(key, block)
          this.expression(value, block)
        }
        break
      case 'comprehension':
        this.#comprehension(expression.body, expression.clauses, block)
        break
      case 'conditional':
        this.expression(expression.condition, block)
        this.expression(expression.yes, block)
        this.expression(expression.no, block)
        break
      case 'unary':
        this.expression(expression.operand, block)
        break
      case 'binary':
        this.expression(expression.left, block)
        this.expression(expression.right, block)
        break
      case 'attribute':
        this.expression(expression.of, block)
        break
      case 'index':
        this.expression(expression.of, block)
        this.expression(expression.index, block)
        break
      case 'slice':
        for (const part of [expression.of, expression.from, expression.to, expression.step])
          if (part) this.expression(part, block)
        break
      case 'call':
        this.expression(expression.callee, block)
        checkArguments(expression.args, this.#failure)
        for (const { value } of expression.args) this.expression(value, block)
        break
      case 'lambda':
        this.fn(expression.fn, block)
        break
      default:
    }
  }

  /**
   * Resolves a comprehension. The first `in` operand belongs to the outer scope, and everything else to the scope of
   * the comprehension.
   */
  #comprehension(
    body: Extract<Expression, { kind: 'comprehension' }>['body'],
    clauses: readonly Clause[],
    outer: Block,
  ): void {
    const [first] = clauses
    if (first?.kind === 'for') this.expression(first.over, outer)
    const block = new Block(outer.owner, outer)
    for (const clause of clauses) if (clause.kind === 'for') this.#declareTarget(clause.target, block)
    for (const clause of clauses) {
      if (clause.kind === 'if') this.expression(clause.condition, block)
      else {
        if (clause !== first) this.expression(clause.over, block)
        this.#target(clause.target, block, { augmented: false })
      }
    }
    if (body.kind === 'entry') {
      this.expression(body.key, block)
      this.expression(body.value, block)
    } else this.expression(body, block)
  }

  #resolveName(name: Name, block: Block): void {
    const binding = this.#findVariable(name.name, block)
    if (binding) name.binding = binding
    else this.#failure(this.#undefinedMessage(name.name, block), name)
  }

  #findVariable(name: string, block: Block | undefined): VariableBinding | undefined {
    for (let inner = block; inner; inner = inner.outer) {
      const variable = inner.names.get(name)
      if (variable) return bindingFrom(variable, inner.owner, block)
    }
    return this.#globals.has(name) ? { scope: 'global', name } : undefined
  }

  #undefinedMessage(name: string, block: Block): string {
    const known: string[] = []
    for (let inner: Block | undefined = block; inner; inner = inner.outer) known.push(...inner.names.keys())
    const guess = likely(name, [...known, ...this.#globals])
    return `undefined: ${name}${guess === undefined ? '' : ` (did you mean ${guess}?)`}`
  }
}

/**
 * Returns the location at which code in `block` finds a variable of `home`: either a local variable, or a cell passed
 * down through the enclosing functions.
 */
function bindingFrom(
  variable: DeclaredVariable,
  home: FunctionScope,
  block: Block | undefined,
): VariableBinding {
  if (!block || block.owner === home) return { scope: 'local', variable }
  variable.captured = true
  const { owner } = block
  let outer: Block | undefined = block
  while (outer?.owner === owner) outer = outer.outer
  const index = owner.capture(variable, () => bindingFrom(variable, home, outer))
  return { scope: 'free', index, name: variable.name }
}

function nameOf({ kind }: Expression): string {
  switch (kind) {
    case 'int':
    case 'float':
    case 'string':
    case 'bytes':
      return 'literal'
    case 'call':
    case 'binary':
    case 'unary':
    case 'slice':
      return `${kind}expr`
    default:
      return kind
  }
}

function checkParameters(parameters: readonly Parameter[], failure: Failure): void {
  const seen = new Set<string>()
  let [optional, star, dict] = [false, false, false]
  parameters.forEach((parameter, i) => {
    const { form, name, fallback } = parameter
    if (form === 'plain') {
      if (dict) failure('parameter may not follow **kwargs', parameter)
      else if (!fallback && optional && !star)
        failure('required parameter may not follow optional', parameter)
      optional ||= fallback !== undefined
    } else if (form === 'dict') {
      if (dict) failure('multiple ** parameters not allowed', parameter)
      dict = true
    } else {
      if (dict) failure('* parameter may not follow **kwargs', parameter)
      else if (star) failure('multiple * parameters not allowed', parameter)
      star = true
      if (form === 'marker' && parameters[i + 1]?.form !== 'plain')
        failure('bare * must be followed by keyword-only parameters', parameter)
    }
    if (form !== 'marker' && seen.has(name)) failure(`duplicate parameter: ${name}`, parameter)
    seen.add(name)
  })
}

function checkArguments(args: readonly ArgumentNode[], failure: Failure): void {
  const names = new Set<string>()
  let [list, dict] = [false, false]
  for (const argument of args) {
    const { form, name } = argument
    const kind = form === 'named' ? 'keyword' : form
    if (form === 'dict') {
      if (dict) failure('multiple **kwargs not allowed', argument)
      dict = true
    } else if (form === 'list') {
      if (dict) failure('*args may not follow **kwargs', argument)
      else if (list) failure('multiple *args not allowed', argument)
      list = true
    } else if (dict) failure(`${kind} argument may not follow **kwargs`, argument)
    else if (list) failure(`${kind} argument may not follow *args`, argument)
    else if (form === 'positional' && names.size > 0)
      failure('positional argument may not follow named', argument)
    if (form !== 'named') continue
    if (names.has(name)) failure(`keyword argument ${JSON.stringify(name)} is repeated`, argument)
    names.add(name)
  }
}
