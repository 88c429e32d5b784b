/** Parses expressions. Source: Starlark specification, "Expressions" and the grammar at its end. */
import type {
  ArgumentNode,
  Clause,
  DictEntry,
  Expression,
  FunctionNode,
  Parameter,
  StatementNode,
} from './ast.ts'
import type { TokenReader } from './token-reader.ts'
import type { StarlarkToken } from './tokens.ts'

/** Binary operators from lowest to highest precedence. */
const levels: readonly (readonly string[])[] = [
  ['or'],
  ['and'],
  ['not'],
  ['==', '!=', '<', '>', '<=', '>=', 'in', 'not in'],
  ['|'],
  ['^'],
  ['&'],
  ['<<', '>>'],
  ['-', '+'],
  ['*', '%', '/', '//'],
]
const notLevel = 2
const comparisons = 3

function at({ line, column }: StarlarkToken): { readonly line: number; readonly column: number } {
  return { line, column }
}

/** Reads one or more expressions. Several expressions form a tuple. With `inParens`, a trailing comma is allowed. */
export function readExpression(
  tokens: TokenReader,
  { inParens = false }: { readonly inParens?: boolean } = {},
): Expression {
  const first = readTest(tokens)
  if (!tokens.is(',')) return first
  const items = [first]
  while (tokens.is(',')) {
    const comma = tokens.take()
    if (endsList(tokens)) {
      if (!inParens) throw tokens.failure('unparenthesized tuple with trailing comma', comma)
      break
    }
    items.push(readTest(tokens))
  }
  return { kind: 'tuple', items, line: first.line, column: first.column, open: !inParens }
}

function endsList(tokens: TokenReader): boolean {
  return tokens.is(')', ']', '}', 'newline', '=', ';', ':', 'end of file')
}

export function readTest(tokens: TokenReader): Expression {
  return tokens.nested(() => {
    if (tokens.is('lambda')) return readLambda(tokens, { conditional: true })
    const value = readBinary(tokens, 0)
    if (!tokens.is('if')) return value
    const position = at(tokens.take())
    const condition = readBinary(tokens, 0)
    if (!tokens.has('else')) throw tokens.failure('conditional expression without else clause')
    return { kind: 'conditional', condition, yes: value, no: readTest(tokens), ...position }
  })
}

/** Reads a test that is not a conditional expression, such as a comprehension's condition. */
function readSimpleTest(tokens: TokenReader): Expression {
  return tokens.nested(() =>
    tokens.is('lambda') ? readLambda(tokens, { conditional: false }) : readBinary(tokens, 0),
  )
}

function readLambda(tokens: TokenReader, { conditional }: { readonly conditional: boolean }): Expression {
  const position = at(tokens.expect('lambda'))
  const parameters = readParameters(tokens, ':')
  tokens.expect(':')
  const value = conditional ? readTest(tokens) : readSimpleTest(tokens)
  const body: StatementNode[] = [{ kind: 'return', value, line: value.line, column: value.column }]
  const fn: FunctionNode = { name: 'lambda', parameters, body, ...position }
  return { kind: 'lambda', fn, ...position }
}

/** Reads the parameters before `end`, without consuming `end`. The resolver checks the order of the parameters. */
export function readParameters(tokens: TokenReader, end: string): Parameter[] {
  const parameters: Parameter[] = []
  while (!tokens.is(end, 'end of file')) {
    parameters.push(readParameter(tokens, end))
    if (!tokens.has(',')) break
  }
  return parameters
}

function readParameter(tokens: TokenReader, end: string): Parameter {
  const position = at(tokens.current)
  if (tokens.has('**'))
    return { form: 'dict', name: tokens.identifier().text, fallback: undefined, ...position }
  if (tokens.has('*')) {
    if (tokens.is('identifier'))
      return { form: 'list', name: tokens.identifier().text, fallback: undefined, ...position }
    if (!tokens.is(',', end)) throw tokens.unexpected("','")
    return { form: 'marker', name: '', fallback: undefined, ...position }
  }
  const name = tokens.identifier().text
  return { form: 'plain', name, fallback: tokens.has('=') ? readTest(tokens) : undefined, ...position }
}

function readBinary(tokens: TokenReader, level: number): Expression {
  if (level === levels.length) return readPrimary(tokens)
  if (level === notLevel) return readNot(tokens)
  let left = readBinary(tokens, level + 1)
  for (let length = 0; ; length++) {
    tokens.checkLength(length)
    const op = operatorAt(tokens, level)
    if (op === undefined) return left
    if (level === comparisons && length > 0 && left.kind === 'binary')
      throw tokens.failure(`${left.op} does not associate with ${op} (use parens)`)
    const position = at(tokens.take())
    if (op === 'not in') tokens.expect('in')
    const right = readBinary(tokens, level + 1)
    left = { kind: 'binary', op, left, right, ...position }
  }
}

function operatorAt(tokens: TokenReader, level: number): string | undefined {
  const { kind } = tokens.current
  const op = kind === 'not' && level === comparisons ? 'not in' : kind
  return levels[level]?.includes(op) === true ? op : undefined
}

function readNot(tokens: TokenReader): Expression {
  if (!tokens.is('not')) return readBinary(tokens, notLevel + 1)
  const position = at(tokens.take())
  return { kind: 'unary', op: 'not', operand: tokens.nested(() => readNot(tokens)), ...position }
}

function readPrimary(tokens: TokenReader): Expression {
  let value = readOperand(tokens)
  for (let length = 0; ; length++) {
    tokens.checkLength(length)
    const position = at(tokens.current)
    if (tokens.has('.')) value = { kind: 'attribute', of: value, name: tokens.identifier().text, ...position }
    else if (tokens.is('(')) value = { kind: 'call', callee: value, args: readArguments(tokens), ...position }
    else if (tokens.is('[')) value = readSubscript(tokens, value)
    else return value
  }
}

function readArguments(tokens: TokenReader): ArgumentNode[] {
  tokens.expect('(')
  const args: ArgumentNode[] = []
  while (!tokens.is(')', 'end of file')) {
    args.push(readArgument(tokens))
    if (!tokens.has(',')) break
  }
  tokens.expect(')')
  return args
}

function readArgument(tokens: TokenReader): ArgumentNode {
  const position = at(tokens.current)
  if (tokens.has('**')) return { form: 'dict', name: '', value: readTest(tokens), ...position }
  if (tokens.has('*')) return { form: 'list', name: '', value: readTest(tokens), ...position }
  const value = readTest(tokens)
  if (!tokens.is('=')) return { form: 'positional', name: '', value, ...position }
  if (value.kind !== 'name') throw tokens.failure('keyword argument must have form name=expr')
  tokens.take()
  return { form: 'named', name: value.name, value: readTest(tokens), ...position }
}

function readSubscript(tokens: TokenReader, of: Expression): Expression {
  const position = at(tokens.expect('['))
  let from: Expression | undefined
  if (!tokens.is(':')) {
    from = readExpression(tokens)
    if (tokens.has(']')) return { kind: 'index', of, index: from, ...position }
  }
  tokens.expect(':')
  const to = tokens.is(':', ']') ? undefined : readTest(tokens)
  const step = tokens.has(':') && !tokens.is(']') ? readTest(tokens) : undefined
  tokens.expect(']')
  return { kind: 'slice', of, from, to, step, ...position }
}

function readOperand(tokens: TokenReader): Expression {
  const { kind, text, number = 0 } = tokens.current
  const position = at(tokens.current)
  switch (kind) {
    case 'identifier':
      tokens.take()
      if (text === 'f' && tokens.is('string'))
        throw tokens.failure('Starlark has no f-strings: use "{}".format(value) or "%s" % value', position)
      return { kind: 'name', name: text, ...position }
    case 'int':
    case 'float':
    case 'string':
    case 'bytes':
      tokens.take()
      return { kind, text, number, ...position }
    case '[':
      return readList(tokens)
    case '{':
      return readDict(tokens)
    case '(':
      return readParens(tokens)
    case '-':
    case '+':
    case '~':
      tokens.take()
      return { kind: 'unary', op: kind, operand: tokens.nested(() => readPrimary(tokens)), ...position }
    default:
      throw tokens.unexpected('primary expression')
  }
}

function readParens(tokens: TokenReader): Expression {
  const position = at(tokens.expect('('))
  if (tokens.has(')')) return { kind: 'tuple', items: [], ...position }
  const value = readExpression(tokens, { inParens: true })
  tokens.expect(')')
  return value
}

function readList(tokens: TokenReader): Expression {
  const position = at(tokens.expect('['))
  if (tokens.has(']')) return { kind: 'list', items: [], ...position }
  const first = readTest(tokens)
  if (tokens.is('for'))
    return { kind: 'comprehension', body: first, clauses: readClauses(tokens, ']'), ...position }
  const items = [first]
  while (tokens.has(',') && !tokens.is(']')) items.push(readTest(tokens))
  tokens.expect(']')
  return { kind: 'list', items, ...position }
}

function readDict(tokens: TokenReader): Expression {
  const position = at(tokens.expect('{'))
  if (tokens.has('}')) return { kind: 'dict', entries: [], ...position }
  const first = readEntry(tokens)
  if (tokens.is('for'))
    return { kind: 'comprehension', body: first, clauses: readClauses(tokens, '}'), ...position }
  const entries = [first]
  while (tokens.has(',') && !tokens.is('}')) entries.push(readEntry(tokens))
  tokens.expect('}')
  return { kind: 'dict', entries, ...position }
}

function readEntry(tokens: TokenReader): DictEntry {
  const key = readTest(tokens)
  const position = at(tokens.expect(':'))
  return { kind: 'entry', key, value: readTest(tokens), ...position }
}

function readClauses(tokens: TokenReader, end: string): Clause[] {
  const clauses: Clause[] = []
  while (!tokens.has(end)) {
    tokens.checkLength(clauses.length)
    const position = at(tokens.current)
    if (tokens.has('for')) {
      const target = readTargets(tokens)
      tokens.expect('in')
      // Does not read a conditional expression, because that would consume the `if` of the next clause.
      const over = tokens.nested(() => readBinary(tokens, 0))
      clauses.push({ kind: 'for', target, over, ...position })
    } else if (tokens.has('if')) clauses.push({ kind: 'if', condition: readSimpleTest(tokens), ...position })
    else throw tokens.unexpected(`'${end}', for, or if`)
  }
  return clauses
}

/** Reads a loop's variables. */
export function readTargets(tokens: TokenReader): Expression {
  const first = readPrimary(tokens)
  if (!tokens.is(',')) return first
  const items = [first]
  while (tokens.has(',') && !tokens.is('in')) items.push(readPrimary(tokens))
  return { kind: 'tuple', items, line: first.line, column: first.column }
}
