/** The workflows of one object share one validation budget. */
import t from 'tap'
import { validateResource } from '../../../../hooks/index.ts'
import { workflowErrors, workflowsBeyond } from '../../../../runtime/vmcp/features/workflows/index.ts'
import type { CompositeTool } from '../../../../schemas/index.ts'
import { CheckBudget, workflowViolations } from '../../../../schemas/workflow/index.ts'
import { resource, server, virtual, world } from '../../../hooks/resources.ts'

const properties = (count: number, property: object = { type: 'string' }) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, property]))
/** For 400 schemas. */
const parameters = { type: 'object', properties: properties(399) }
const workflow = (i: number, own: object = { parameters }) => ({
  name: `w${i}`,
  description: 'd',
  steps: [{ id: 'a', tool: 'files.read' }],
  ...own,
})
const workflows = (count: number, own?: object) => Array.from({ length: count }, (_, i) => workflow(i, own))
const rule =
  'all workflows together may have 2000 schemas in their parameters and elicitations; this workflow exceeds the limit'

t.test('admission: schemas of all inline workflows count together', async (t) => {
  const problems = (tools: object[]) =>
    validateResource(virtual({ config: { compositeTools: tools } })).violations
  t.same(problems(workflows(5)), [])
  t.same(
    problems(workflows(8)),
    [{ path: 'spec.config.compositeTools[5].parameters', message: rule }],
    'reported once',
  )
  const asked = {
    steps: [{ id: 'a', type: 'elicitation', message: 'm', schema: parameters }],
  }
  t.same(problems([...workflows(5), workflow(5, asked)]), [
    { path: 'spec.config.compositeTools[5].steps[0].schema', message: rule },
  ])
  t.match(problems([...workflows(6), workflow(6, { parameters: { type: 'string' } })]), [
    { path: 'spec.config.compositeTools[5].parameters' },
    { path: 'spec.config.compositeTools[6].parameters.type', message: 'must be object' },
  ])
})

t.test('admission: work on defaults counts together', async (t) => {
  const heavy = { type: 'string', pattern: '^(a|b|c){1,100}$', default: 'abc'.repeat(30) }
  const own = { parameters: { type: 'object', properties: properties(10, heavy) } }
  const { violations } = validateResource(virtual({ config: { compositeTools: workflows(10, own) } }))
  t.match(violations, [
    {
      path: /^spec\.config\.compositeTools\[\d\]\.parameters\.properties\.p\d+\.default$/,
      message: 'checking the defaults of all workflows is too expensive; this workflow exceeds the limit',
    },
  ])
  t.equal(violations.length, 1)
  t.same(
    validateResource(virtual({ config: { compositeTools: workflows(1, own) } })).violations,
    [],
    'a single one is accepted',
  )
})

t.test('runtime: the same limit applies when a file is loaded', async (t) => {
  const filled = (count: number) =>
    workflows(count, {
      parameters,
      steps: [{ id: 'a', type: 'tool', tool: 'files.read' }],
    }) as unknown as CompositeTool[]
  t.same(workflowErrors(filled(5)), [])
  const six = filled(6)
  t.same(workflowErrors(six), [], 'no reason to serve nothing')
  t.same(workflowsBeyond(six), [`compositeTools[5].parameters: ${rule}`])
  const all = [...six, ...filled(1).map(({ parameters: _, ...one }) => ({ ...one, name: 'small' }))]
  t.same(workflowErrors(all), [])
  t.equal(workflowsBeyond(all).length, 1, 'requests behind it get their responses')
  const [one] = filled(1)
  t.same(one && workflowViolations(one, 'spec', new CheckBudget()), [])
})

t.test('sync: inline and referenced workflows count together', async (t) => {
  const definition = resource('VirtualMCPCompositeToolDefinition', 'more', workflow(9))
  const door = (inline: number) =>
    virtual({ config: { compositeTools: workflows(inline), compositeToolRefs: [{ name: 'more' }] } })
  const w = world(door(4), server('files'), definition).ready()
  const condition = () => {
    const { conditions } = w.get('VirtualMCPServer', 'door')['status'] as { conditions: { type: string }[] }
    return conditions.find(({ type }) => type === 'CompositeToolRefsValidated')
  }
  t.match(condition(), { status: 'True' })
  w.apply(door(5)).settle()
  t.match(condition(), {
    status: 'False',
    reason: 'CompositeToolRefInvalid',
    message: `workflow w9: spec.parameters: ${rule}`,
  })
})
