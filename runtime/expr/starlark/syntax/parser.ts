/**
 * Parses a script. The text is the body of a function, so it can return, and loops and conditions are allowed at top
 * level. Throws StarlarkError, which contains the error's position.
 * Source: Starlark specification, "Statements" and the grammar at its end.
 */
import type { FunctionNode, Name, StatementNode } from './ast.ts'
import { readExpression, readParameters, readTargets, readTest } from './parse-expressions.ts'
import { Scanner } from './scanner.ts'
import { TokenReader } from './token-reader.ts'

const assignments: ReadonlySet<string> = new Set([
  '=',
  '+=',
  '-=',
  '*=',
  '/=',
  '//=',
  '%=',
  '&=',
  '|=',
  '^=',
  '<<=',
  '>>=',
])

export function parse(source: string): FunctionNode {
  const tokens = new TokenReader(new Scanner(source).scan())
  const body: StatementNode[] = []
  while (!tokens.is('end of file')) {
    if (!tokens.has('newline')) readStatement(tokens, body)
  }
  return { name: 'script', parameters: [], body, line: 1, column: 1 }
}

function readStatement(tokens: TokenReader, into: StatementNode[]): void {
  switch (tokens.current.kind) {
    case 'def':
      into.push(readDef(tokens))
      break
    case 'if':
      into.push(readIf(tokens))
      break
    case 'for':
      into.push(readFor(tokens))
      break
    default:
      readSimpleLine(tokens, into)
  }
}

/** Reads the statements on a line, separated by semicolons. */
function readSimpleLine(tokens: TokenReader, into: StatementNode[]): void {
  do {
    if (tokens.is('newline', 'end of file')) break
    into.push(readSimple(tokens))
  } while (tokens.has(';'))
  if (!tokens.is('end of file')) tokens.expect('newline')
}

function readSimple(tokens: TokenReader): StatementNode {
  const { kind, line, column } = tokens.current
  switch (kind) {
    case 'return': {
      tokens.take()
      const isBare = tokens.is('newline', ';', 'end of file')
      return { kind, value: isBare ? undefined : readExpression(tokens), line, column }
    }
    case 'break':
    case 'continue':
    case 'pass':
      tokens.take()
      return { kind, line, column }
    case 'load':
      throw tokens.failure('load statement within a function')
    case 'while':
      throw tokens.failure('dialect does not support while loops: use `for` with `range(...)` and `break`')
    case 'indent':
      throw tokens.failure('unexpected indentation')
    default:
      return readAssignment(tokens)
  }
}

function readAssignment(tokens: TokenReader): StatementNode {
  const target = readExpression(tokens)
  const { kind, line, column } = tokens.current
  if (!assignments.has(kind))
    return { kind: 'expression', value: target, line: target.line, column: target.column }
  tokens.take()
  const value = readExpression(tokens)
  return { kind: 'assign', op: kind === '=' ? kind : kind.slice(0, -1), target, value, line, column }
}

/** Reads an indented block, or the statements after the colon on the same line. */
function readBody(tokens: TokenReader): StatementNode[] {
  return tokens.nested(() => {
    tokens.expect(':')
    const body: StatementNode[] = []
    if (!tokens.has('newline')) {
      readSimpleLine(tokens, body)
      return body
    }
    tokens.expect('indent')
    while (!tokens.is('outdent', 'end of file')) readStatement(tokens, body)
    tokens.has('outdent')
    return body
  })
}

function readDef(tokens: TokenReader): StatementNode {
  const { line, column } = tokens.expect('def')
  const identifier = tokens.identifier()
  const target: Name = {
    kind: 'name',
    name: identifier.text,
    line: identifier.line,
    column: identifier.column,
  }
  tokens.expect('(')
  const parameters = readParameters(tokens, ')')
  tokens.expect(')')
  const body = readBody(tokens)
  return { kind: 'def', target, fn: { name: target.name, parameters, body, line, column }, line, column }
}

function readIf(tokens: TokenReader): StatementNode {
  const { line, column } = tokens.expect('if')
  const branches = [{ condition: readTest(tokens), body: readBody(tokens) }]
  while (tokens.has('elif')) branches.push({ condition: readTest(tokens), body: readBody(tokens) })
  const otherwise = tokens.has('else') ? readBody(tokens) : []
  return { kind: 'if', branches, otherwise, line, column }
}

function readFor(tokens: TokenReader): StatementNode {
  const { line, column } = tokens.expect('for')
  const target = readTargets(tokens)
  tokens.expect('in')
  const over = readExpression(tokens)
  return { kind: 'for', target, over, body: readBody(tokens), line, column }
}
