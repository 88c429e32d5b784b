/**
 * Templates compared with Go: the output of Go's text/template for each template, and the output here.
 *
 * The table was recorded once with Go's own engine (with json, fromJson and quote added). Where the output should
 * differ, `differs` contains the reason, and `go` the output of Go.
 */
import t from 'tap'
import {
  defaultLimits,
  EvaluationError,
  expand,
  TemplateMeter,
  type TemplateValue,
} from '../../../runtime/expr/template/index.ts'
import { parseTemplate } from '../../../schemas/workflow/index.ts'
import { TemplateError } from '../../../schemas/workflow/template/tree.ts'
import table from './template-cases.json' with { type: 'json' }

interface Row {
  readonly template: string
  readonly output?: string
  readonly failure?: string
}

/** `{"$int": 5}` represents an integer, because JSON has no integer type. */
function dataOf(value: unknown): TemplateValue {
  if (Array.isArray(value)) return value.map(dataOf)
  if (typeof value !== 'object' || value === null) return value as TemplateValue
  const entries = Object.entries(value)
  const [first] = entries
  if (first?.[0] === '$int') return BigInt(Number(first[1]))
  return Object.fromEntries(entries.map(([name, item]) => [name, dataOf(item)]))
}

function run(text: string, data: TemplateValue): Omit<Row, 'template'> {
  try {
    return { output: expand(parseTemplate(text), data, new TemplateMeter(defaultLimits)) }
  } catch (error) {
    if (error instanceof TemplateError) return { failure: 'parse' }
    if (error instanceof EvaluationError) return { failure: 'run' }
    throw error
  }
}

t.test("template: the output matches Go's", async (t) => {
  const data = dataOf(table.data)
  const rows: readonly Row[] = table.cases
  t.ok(rows.length > 1000)
  for (const { template, output, failure } of rows) {
    const expected = output === undefined ? { failure } : { output }
    t.strictSame(run(template, data), expected, template)
  }
})
