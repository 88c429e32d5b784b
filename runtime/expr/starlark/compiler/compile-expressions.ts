/** Compiles expressions. Each expression leaves one value on the stack. */
import type { ArgumentNode, Clause, DictEntry, Expression, FunctionNode, Name } from '../syntax/ast.ts'
import type { Assembler } from './assembler.ts'
import { opcode, operatorTable, type Operator, unaryOperators } from './code.ts'
import { Bytes, Float } from '../values/scalars.ts'

export function emitName({ binding }: Name, out: Assembler): void {
  if (binding?.scope === 'local') {
    const { captured, slot } = binding.variable
    out.emit(captured ? opcode.cell : opcode.local, slot)
  } else if (binding?.scope === 'free') out.emit(opcode.free, binding.index)
  else if (binding) out.emit(opcode.global, out.name(binding.name))
}

export function emitSetName({ binding }: Name, out: Assembler): void {
  if (binding?.scope === 'local') {
    const { captured, slot } = binding.variable
    out.emit(captured ? opcode.setCell : opcode.setLocal, slot)
  } else if (binding?.scope === 'free') out.emit(opcode.setFree, binding.index)
}

export function compileExpression(expression: Expression, out: Assembler): void {
  switch (expression.kind) {
    case 'name':
      out.at(expression)
      emitName(expression, out)
      break
    case 'int':
      out.at(expression)
      out.emit(opcode.constant, out.constant(expression.number))
      break
    case 'float':
      out.emit(opcode.constant, out.constant(new Float(Number(expression.number))))
      break
    case 'string':
      out.emit(opcode.constant, out.constant(expression.text))
      break
    case 'bytes':
      out.emit(opcode.constant, out.constant(new Bytes(expression.text)))
      break
    case 'list':
    case 'tuple':
      for (const item of expression.items) compileExpression(item, out)
      out.at(expression)
      out.emit(opcode[expression.kind], expression.items.length)
      break
    case 'dict':
      out.emit(opcode.dict)
      for (const entry of expression.entries) compileEntry(entry, out, opcode.setUnique)
      break
    case 'comprehension':
      out.at(expression)
      out.emit(expression.body.kind === 'entry' ? opcode.dict : opcode.list, 0)
      compileClauses(expression.body, expression.clauses, out)
      break
    case 'conditional':
      compileConditional(expression, out)
      break
    case 'unary':
      compileExpression(expression.operand, out)
      out.at(expression)
      if (expression.op === 'not') out.emit(opcode.not)
      else
        out.emit(
          opcode.unary,
          unaryOperators.findIndex((op) => op === expression.op),
        )
      break
    case 'binary':
      compileBinary(expression, out)
      break
    case 'attribute':
      compileExpression(expression.of, out)
      out.at(expression)
      out.emit(opcode.attribute, out.name(expression.name))
      break
    case 'index':
      compileExpression(expression.of, out)
      compileExpression(expression.index, out)
      out.at(expression)
      out.emit(opcode.index)
      break
    case 'slice':
      compileExpression(expression.of, out)
      for (const part of [expression.from, expression.to, expression.step]) {
        if (part) compileExpression(part, out)
        else out.emit(opcode.none)
      }
      out.at(expression)
      out.emit(opcode.slice)
      break
    case 'call':
      compileCall(expression.callee, expression.args, out)
      out.at(expression)
      out.emit(opcode.call, out.call(shapeOf(expression.args)))
      break
    default:
      compileClosure(expression.fn, out)
  }
}

/** Assigns the value on the stack to a target. */
export function compileTarget(target: Expression, out: Assembler): void {
  switch (target.kind) {
    case 'name':
      out.at(target)
      emitSetName(target, out)
      break
    case 'index':
      compileExpression(target.of, out)
      compileExpression(target.index, out)
      out.at(target)
      out.emit(opcode.setIndex)
      break
    case 'attribute':
      compileExpression(target.of, out)
      out.at(target)
      out.emit(opcode.setAttribute, out.name(target.name))
      break
    case 'list':
    case 'tuple':
      out.at(target)
      out.emit(opcode.unpack, target.items.length)
      for (const item of target.items) compileTarget(item, out)
      break
    default:
  }
}

function compileEntry({ key, value, line, column }: DictEntry, out: Assembler, op: number): void {
  out.emit(opcode.dup)
  compileExpression(key, out)
  compileExpression(value, out)
  out.at({ line, column })
  out.emit(op)
}

/** Compiles a comprehension's loops. The list or dict stays on the stack. */
function compileClauses(body: Expression | DictEntry, clauses: readonly Clause[], out: Assembler): void {
  const [clause, ...rest] = clauses
  if (!clause) {
    if (body.kind === 'entry') compileEntry(body, out, opcode.setEntry)
    else {
      out.emit(opcode.dup)
      compileExpression(body, out)
      out.emit(opcode.append)
    }
    return
  }
  const next = out.label()
  const end = out.label()
  if (clause.kind === 'if') {
    compileExpression(clause.condition, out)
    out.jump(opcode.jumpIfNot, end)
    compileClauses(body, rest, out)
    out.place(end)
    return
  }
  compileExpression(clause.over, out)
  out.at(clause)
  out.emit(opcode.iterate)
  out.place(next)
  out.jump(opcode.next, end)
  compileTarget(clause.target, out)
  compileClauses(body, rest, out)
  out.jump(opcode.jump, next)
  out.place(end)
  out.emit(opcode.endIterate)
}

function compileConditional(
  { condition, yes, no }: Extract<Expression, { kind: 'conditional' }>,
  out: Assembler,
): void {
  const otherwise = out.label()
  const end = out.label()
  compileExpression(condition, out)
  out.jump(opcode.jumpIfNot, otherwise)
  compileExpression(yes, out)
  out.jump(opcode.jump, end)
  out.place(otherwise)
  compileExpression(no, out)
  out.place(end)
}

function compileBinary(expression: Extract<Expression, { kind: 'binary' }>, out: Assembler): void {
  const { op, left, right } = expression
  compileExpression(left, out)
  if (op === 'and' || op === 'or') {
    const end = out.label()
    out.jump(op === 'and' ? opcode.jumpIfFalseKeep : opcode.jumpIfTrueKeep, end)
    compileExpression(right, out)
    out.place(end)
    return
  }
  compileExpression(right, out)
  out.at(expression)
  out.emit(opcode.binary, operatorTable.indexOf(op as Operator))
}

function compileCall(callee: Expression, args: readonly ArgumentNode[], out: Assembler): void {
  compileExpression(callee, out)
  for (const { value } of args) compileExpression(value, out)
}

function shapeOf(args: readonly ArgumentNode[]): {
  positional: number
  names: string[]
  list: boolean
  dict: boolean
} {
  return {
    positional: args.filter(({ form }) => form === 'positional').length,
    names: args.filter(({ form }) => form === 'named').map(({ name }) => name),
    list: args.some(({ form }) => form === 'list'),
    dict: args.some(({ form }) => form === 'dict'),
  }
}

/** Evaluates the defaults when the function is created. */
function compileClosure(fn: FunctionNode, out: Assembler): void {
  for (const { fallback } of fn.parameters) if (fallback) compileExpression(fallback, out)
  out.at(fn)
  out.emit(opcode.closure, out.fn(fn))
}
