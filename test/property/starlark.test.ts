/**
 * Runs hostile scripts. For any text, the interpreter returns a value or a StarlarkError within its limits, and equal
 * texts produce equal outcomes.
 */
import fc from 'fast-check'
import t from 'tap'
import {
  compile,
  decode,
  encode,
  execute,
  JsonTextError,
  ScriptMeter,
  readJson,
  StarlarkError,
  universalNames,
  writeJson,
} from '../../runtime/expr/starlark/index.ts'
import { repr } from '../../runtime/expr/starlark/values/print.ts'

const LIMITS = { maxSteps: 20_000, maxBytes: 4 * 1024 * 1024 }
const NAMES = new Set(universalNames.keys())

/** Returns the outcome as text. Fails the property unless it is a value or a StarlarkError. */
async function outcome(script: string): Promise<string> {
  const meter = new ScriptMeter(LIMITS)
  try {
    const program = compile(script, NAMES)
    const value = await execute(
      program,
      { ...LIMITS, maxWaits: 1, globals: new Map(), print: () => {} },
      meter,
    )
    return repr(value, meter)
  } catch (error) {
    if (error instanceof StarlarkError && error.cause === undefined) return `error ${error.describe('s')}`
    throw error
  }
}

const WORDS = [
  'x',
  'y',
  'f',
  'len',
  'list',
  'dict',
  'str',
  'range',
  'sorted',
  'None',
  'True',
  '1',
  '2.5',
  '0',
  '10000000000000000000',
  '"a"',
  "'%s'",
  '"""t"""',
  'b"x"',
  'r"\\"',
  '"{}"',
  'def',
  'lambda',
  'if',
  'else',
  'elif',
  'for',
  'in',
  'not',
  'and',
  'or',
  'return',
  'break',
  'continue',
  'pass',
  'while',
  'load',
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  ';',
  '.',
  '=',
  '+=',
  '==',
  '+',
  '-',
  '*',
  '**',
  '/',
  '//',
  '%',
  '<<',
  '|',
  '&',
  '^',
  '~',
  '<',
  '>',
  '!=',
  '\n',
  '\n  ',
  '\n    ',
  '\t',
  '\\\n',
  '#c\n',
  ' ',
  '.append(',
  '.format(',
  '.join(',
  '[::-1]',
  'é',
  '\u0000',
  '$',
  '"',
]

const NAME = fc.constantFrom('a', 'b', 'c')
const LEAF = fc.oneof(
  NAME,
  fc.integer({ min: -5, max: 70 }).map(String),
  fc
    .double({ noNaN: true, noDefaultInfinity: true, min: 0, max: 1e6 })
    .map((n) => (Number.isInteger(n) ? `${n}.0` : n.toFixed(4))),
  fc.string({ maxLength: 6 }).map((text) => JSON.stringify(text).replaceAll(/\\u00[89a-f]./gi, '')),
  fc.constantFrom('None', 'True', '[]', '{}', '()', 'range(5)', 'b"ab"', '1 << 80'),
)

/** Well-formed expressions, which may still fail at run time. */
const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const inner = tie('expression')
  const two = (make: (x: string, y: string) => string) => fc.tuple(inner, inner).map(([x, y]) => make(x, y))
  return {
    expression: fc.oneof(
      { maxDepth: 5, depthIdentifier: 'expression' },
      LEAF,
      fc
        .tuple(
          inner,
          fc.constantFrom(
            '+',
            '-',
            '*',
            '/',
            '//',
            '%',
            '|',
            '&',
            '<<',
            '>>',
            '==',
            '<',
            'in',
            'not in',
            'and',
            'or',
          ),
          inner,
        )
        .map(([x, op, y]) => `(${x} ${op} ${y})`),
      two((x, y) => `[${x}, ${y}]`),
      two((x, y) => `(${x}, ${y})`),
      two((x, y) => `{${x}: ${y}}`),
      two((x, y) => `(${x})[${y}]`),
      two((x, y) => `(${x})[${y}:]`),
      two((x, y) => `[${x} for a in ${y}]`),
      two((x, y) => `(${x} if ${y} else a)`),
      fc
        .tuple(
          fc.constantFrom(
            'len',
            'str',
            'repr',
            'list',
            'tuple',
            'dict',
            'sorted',
            'int',
            'float',
            'bool',
            'max',
            'min',
            'hash',
            'reversed',
            'enumerate',
            'zip',
            'type',
            'dir',
            'bytes',
            'ord',
            'abs',
            'any',
          ),
          inner,
        )
        .map(([fn, x]) => `${fn}(${x})`),
      fc
        .tuple(
          inner,
          fc.constantFrom(
            'upper',
            'split',
            'join',
            'format',
            'strip',
            'replace',
            'items',
            'append',
            'pop',
            'get',
            'update',
            'count',
            'elems',
            'partition',
            'index',
          ),
          inner,
        )
        .map(([x, method, y]) => `(${x}).${method}(${y})`),
      two((x, y) => `(lambda b: ${x})(${y})`),
      inner.map((x) => `(not ${x})`),
      inner.map((x) => `(-(${x}))`),
    ),
  }
})

const statement = fc.oneof(
  fc
    .tuple(NAME, fc.constantFrom('=', '+=', '*=', '|='), expression)
    .map(([name, op, x]) => `${name} ${op} ${x}`),
  fc.tuple(NAME, expression).map(([name, x]) => `for ${name} in ${x}:\n    c = ${name}\n    if c: continue`),
  expression.map((x) => `if ${x}: a = 1\nelif b: pass\nelse: b = 2`),
  fc.tuple(NAME, expression).map(([name, x]) => `def ${name}(a, *b, **c):\n    return ${x}`),
  expression,
)
const script = fc
  .tuple(fc.array(statement, { maxLength: 8 }), expression)
  .map(([lines, last]) => ['a = 1', 'b = [1, 2]', 'c = {"k": 3}', ...lines, `return ${last}`].join('\n'))

t.test('scripts: any text yields a value or a StarlarkError', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'binary', maxLength: 200 }),
      async (text) => void (await outcome(text)),
    ),
    { numRuns: 1_000 },
  )
  t.pass('none did anything else')
})

t.test('scripts: any sequence of words yields a value or a StarlarkError', async (t) => {
  const words = fc.array(fc.constantFrom(...WORDS), { maxLength: 60 }).map((parts) => parts.join(''))
  await fc.assert(
    fc.asyncProperty(words, async (text) => void (await outcome(text))),
    { numRuns: 4_000 },
  )
  t.pass('none did anything else')
})

t.test(
  'scripts: a well-formed script stays within its limits and yields the same outcome twice',
  async (t) => {
    let values = 0
    await fc.assert(
      fc.asyncProperty(script, async (text) => {
        const first = await outcome(text)
        if (!first.startsWith('error')) values++
        return first === (await outcome(text))
      }),
      { numRuns: 2_000 },
    )
    t.ok(values > 20, `${values} scripts returned a value`)
  },
)

t.test('scripts: a parsed script can be parsed again from its printed form', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (json) => {
      const meter = new ScriptMeter(LIMITS)
      const printed = decode(repr(readJson(encode(JSON.stringify(json)), meter), meter))
      return decode(await outcome(`return ${printed}`)) === printed
    }),
    { numRuns: 1_000 },
  )
  t.pass('every one was')
})

t.test('JSON: reading and writing keeps the value', (t) => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (json) => {
      const text = JSON.stringify(json)
      const meter = new ScriptMeter(LIMITS)
      const again: unknown = JSON.parse(decode(writeJson(readJson(encode(text), meter), meter)))
      return JSON.stringify(again) === JSON.stringify(JSON.parse(text))
    }),
    { numRuns: 1_000 },
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 50 }), (text) => {
      try {
        readJson(encode(text), new ScriptMeter(LIMITS))
      } catch (error) {
        if (!(error instanceof JsonTextError)) throw error
      }
    }),
  )
  t.end()
})
