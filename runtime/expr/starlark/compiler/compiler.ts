/** Compiles a resolved script. This file compiles statements, and compile-expressions.ts compiles expressions. */
import type { FunctionNode, Name, Parameter, StatementNode } from '../syntax/ast.ts'
import { Assembler, type Label } from './assembler.ts'
import { type Bytecode, opcode, operatorTable, type Operator, type ParameterShape } from './code.ts'
import { compileExpression, compileTarget, emitName, emitSetName } from './compile-expressions.ts'
import { StarlarkError } from '../errors.ts'
import { parse } from '../syntax/parser.ts'
import { resolve } from './resolver.ts'

/** A compiled script. */
export interface CompiledScript {
  readonly code: Bytecode
}

/**
 * Parses and compiles a script. `globals` are the names defined outside the script, including the language's own names.
 * Throws StarlarkError, which contains the error's position.
 */
export function compile(source: string, globals: ReadonlySet<string>): CompiledScript {
  try {
    const script = parse(source)
    resolve(script, globals)
    return { code: compileFunction(script) }
  } catch (error) {
    // Handles a stack overflow. Each construct limits its own depth, but several nested constructs can still overflow
    // the stack.
    if (error instanceof RangeError) throw new StarlarkError('the script is nested too deeply')
    throw error
  }
}

interface Loop {
  readonly next: Label
  readonly end: Label
}

function compileFunction(fn: FunctionNode): Bytecode {
  const out = new Assembler(compileFunction)
  compileBody(fn.body, out, [])
  out.at(fn)
  out.emit(opcode.none)
  out.emit(opcode.return)
  const variables = fn.scope?.variables ?? []
  const free = fn.scope?.free ?? []
  return {
    name: fn.name,
    position: { line: fn.line, column: fn.column },
    ...out.finish(),
    variables: variables.map(({ name }) => name),
    cells: variables.filter(({ captured }) => captured).map(({ slot }) => slot),
    free,
    freeNames: free.map((binding) => (binding.scope === 'local' ? binding.variable.name : binding.name)),
    parameters: shapeOf(fn.parameters, variables),
  }
}

/**
 * Sorts variables by the order in which their parameters are declared. Keyword-only parameters come after a star
 * parameter.
 */
function shapeOf(
  parameters: readonly Parameter[],
  variables: readonly { readonly name: string; readonly slot: number }[],
): ParameterShape {
  const slotOf = (form: Parameter['form']): number | undefined => {
    const name = parameters.find((parameter) => parameter.form === form)?.name
    return variables.find((variable) => variable.name === name)?.slot
  }
  const star = parameters.findIndex(({ form }) => form === 'list' || form === 'marker')
  const plain = parameters.filter(({ form }) => form === 'plain')
  const positional = star < 0 ? plain.length : star
  return {
    positional,
    namedOnly: plain.length - positional,
    defaults: plain.map(({ fallback }) => fallback !== undefined),
    list: slotOf('list'),
    dict: slotOf('dict'),
  }
}

function compileBody(body: readonly StatementNode[], out: Assembler, loops: readonly Loop[]): void {
  for (const statement of body) compileStatement(statement, out, loops)
}

function compileStatement(statement: StatementNode, out: Assembler, loops: readonly Loop[]): void {
  const loop = loops.at(-1)
  switch (statement.kind) {
    case 'expression':
      compileExpression(statement.value, out)
      out.emit(opcode.pop)
      break
    case 'assign':
      if (statement.op === '=') {
        compileExpression(statement.value, out)
        compileTarget(statement.target, out)
      } else compileAugmented(statement, out)
      break
    case 'if':
      compileIf(statement, out, loops)
      break
    case 'for':
      compileFor(statement, out, loops)
      break
    case 'def':
      compileExpression(
        { kind: 'lambda', fn: statement.fn, line: statement.line, column: statement.column },
        out,
      )
      compileTarget(statement.target, out)
      break
    case 'return':
      if (statement.value) compileExpression(statement.value, out)
      else out.emit(opcode.none)
      out.at(statement)
      out.emit(opcode.return)
      break
    case 'break':
      if (loop) out.jump(opcode.jump, loop.end)
      break
    case 'continue':
      if (loop) out.jump(opcode.jump, loop.next)
      break
    default:
  }
}

function compileIf(
  { branches, otherwise }: Extract<StatementNode, { kind: 'if' }>,
  out: Assembler,
  loops: readonly Loop[],
): void {
  const end = out.label()
  for (const { condition, body } of branches) {
    const next = out.label()
    compileExpression(condition, out)
    out.jump(opcode.jumpIfNot, next)
    compileBody(body, out, loops)
    out.jump(opcode.jump, end)
    out.place(next)
  }
  compileBody(otherwise, out, loops)
  out.place(end)
}

function compileFor(
  statement: Extract<StatementNode, { kind: 'for' }>,
  out: Assembler,
  loops: readonly Loop[],
): void {
  const { target, over, body } = statement
  const next = out.label()
  const end = out.label()
  compileExpression(over, out)
  out.at(statement)
  out.emit(opcode.iterate)
  out.place(next)
  out.at(statement)
  out.jump(opcode.next, end)
  compileTarget(target, out)
  compileBody(body, out, [...loops, { next, end }])
  out.jump(opcode.jump, next)
  out.place(end)
  out.emit(opcode.endIterate)
}

/** Compiles `x += y`, which evaluates the target once. */
function compileAugmented(
  { op, target, value, line, column }: Extract<StatementNode, { kind: 'assign' }>,
  out: Assembler,
): void {
  const combine = (): void => {
    compileExpression(value, out)
    out.at({ line, column })
    out.emit(opcode.inPlace, operatorTable.indexOf(op as Operator))
  }
  if (target.kind === 'index') {
    compileExpression(target.of, out)
    compileExpression(target.index, out)
    out.at(target)
    out.emit(opcode.dup2)
    out.emit(opcode.index)
    combine()
    out.at(target)
    out.emit(opcode.setIndex, 1)
  } else if (target.kind === 'attribute') {
    compileExpression(target.of, out)
    out.emit(opcode.dup)
    out.emit(opcode.attribute, out.name(target.name))
    combine()
    out.emit(opcode.swap)
    out.emit(opcode.setAttribute, out.name(target.name))
  } else {
    const name: Name = target.kind === 'name' ? target : { kind: 'name', name: '', line, column }
    out.at(name)
    emitName(name, out)
    combine()
    out.at(name)
    emitSetName(name, out)
  }
}
