/**
 * Tests templates: parsing returns a tree or the parser's own error, and evaluation soon returns a text or the
 * evaluator's own error.
 */
import fc from 'fast-check'
import t from 'tap'
import {
  defaultLimits,
  EvaluationError,
  expand,
  isSingleAction,
  TemplateMeter,
  parseJson,
  type TemplateValue,
  valueOf,
  WorkLimitError,
} from '../../runtime/expr/template/index.ts'
import { parseTemplate, type Template } from '../../schemas/workflow/index.ts'
import { functionNames, TemplateError } from '../../schemas/workflow/template/tree.ts'
import { pathsRead } from '../../schemas/workflow/template/reads.ts'

const limits = { maxBytes: 10_000, maxWork: 20_000 }

function parsed(text: string): Template | undefined {
  try {
    return parseTemplate(text)
  } catch (error) {
    if (error instanceof TemplateError) return undefined
    throw error
  }
}

/** Returns false for any error that is not the evaluator's own. */
function survives(template: Template, data: TemplateValue): boolean {
  for (const work of [expand, ...(isSingleAction(template) ? [valueOf] : [])]) {
    try {
      work(template, data, new TemplateMeter(limits))
    } catch (error) {
      if (!(error instanceof EvaluationError || error instanceof WorkLimitError)) return false
    }
  }
  return pathsRead(template).every((path) => path.length <= 8)
}

const word = fc.constantFrom(
  ...functionNames,
  ...'{{ }} {{- -}} ( ) | , := = . .a .b.c $ $x $y "s" `r` 0 1 -1 2.5 1e9 true false nil if else end range with define template block break continue "%d %v %s" "%5.2f" "t" /* */'.split(
    ' ',
  ),
)
const soup = fc.array(word, { maxLength: 40 }).map((words) => words.join(' '))

/** Actions that usually parse, so that many cases reach the evaluator. */
const operand = fc.constantFrom(
  '.',
  '.a',
  '.b.c',
  '$',
  '$.a',
  '1',
  '2.5',
  '"s"',
  '"%d-%v"',
  'nil',
  'true',
  '(len .a)',
  '(index .b "c")',
  '(json .)',
)
const call = fc
  .tuple(fc.constantFrom(...functionNames), fc.array(operand, { maxLength: 3 }))
  .map(([name, operands]) => [name, ...operands].join(' '))
const pipe = fc
  .array(fc.oneof(call, operand), { minLength: 1, maxLength: 3 })
  .map((commands) => commands.join(' | '))
const { template: nested } = fc.letrec<{ template: string }>((tie) => ({
  template: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom('text ', '\n'),
    pipe.map((text) => `{{${text}}}`),
    fc
      .tuple(fc.constantFrom('if', 'with', 'range'), pipe, tie('template'), tie('template'))
      .map(([block, text, body, other]) => `{{${block} ${text}}}${body}{{else}}${other}{{end}}`),
    fc
      .tuple(pipe, tie('template'))
      .map(([text, body]) => `{{range $i, $e := ${text}}}{{$i}}{{$e}}${body}{{end}}`),
    fc.tuple(tie('template'), tie('template')).map(([a, b]) => a + b),
  ),
}))
const data = fc.json().map((text) => {
  const value = parseJson(text, new TemplateMeter(defaultLimits))
  return { a: value, b: { c: value }, n: 3n }
})

t.test('template: any text is parsed or rejected', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), soup), (text) => parsed(text) !== null),
    { numRuns: 2000 },
  )
})

t.test("template: a parsed template can be evaluated, or fails with the evaluator's own error", async () => {
  fc.assert(
    fc.property(fc.oneof(soup, nested), data, (text, value) => {
      const template = parsed(text)
      return template === undefined || survives(template, value)
    }),
    { numRuns: 2000 },
  )
})

t.test('template: a text without actions is returned unchanged', async () => {
  const plain = fc.string({ unit: 'binary' }).filter((text) => !text.includes('{{') && text.isWellFormed())
  fc.assert(
    fc.property(
      plain,
      (text) => expand(parseTemplate(text), null, new TemplateMeter(defaultLimits)) === text,
    ),
  )
})
