/** Workflows in the list of tools: their description, when they are listed, and how they find their tools. */
import t from 'tap'
import { noErrors } from '../../../../runtime/vmcp/catalog/items/errors.ts'
import { Catalog } from '../../../../runtime/vmcp/catalog/catalog.ts'
import { proves } from '../../../helpers/proves.ts'
import { draft, rig, toolEntry, workflow } from '../../../helpers/vmcp/workflow-rig.ts'
import { workflowErrors } from '../../../../runtime/vmcp/features/workflows/index.ts'
import { checkStart } from '../../../../runtime/vmcp/server/start-check.ts'
import { vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

const step = (tool = 'x.a') => ({ id: tool.replaceAll(/[^a-z]/g, ''), tool })
const item = async (spec: object, tools = [toolEntry('x_a'), toolEntry('x_b')]) => {
  const { listed, problems } = await rig(workflow({ steps: [step()], ...spec }), { tools })
  return listed ? JSON.parse(listed.json.toString()) : problems.join()
}

t.test('listing: name, description and parameters', async (t) => {
  proves(
    '3.config.compositeTools.name',
    '3.config.compositeTools.description',
    '3.config.compositeTools.parameters',
  )
  const parameters = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] }
  t.match(await item({ name: 'do_it', description: 'Does it', parameters }), {
    name: 'do_it',
    description: 'Does it',
    inputSchema: parameters,
  })
  const plain = await item({ description: undefined, parameters: {} })
  t.strictSame(plain.inputSchema, { type: 'object' })
  t.notOk('description' in plain || 'outputSchema' in plain)
})

t.test(
  'listing: a tool is found by its listed name or by workload and original name, even if it is hidden',
  async (t) => {
    proves('3.config.compositeTools.steps.tool')
    const tools = [
      toolEntry('github_new_issue', {
        backend: 'github',
        original: 'create_issue',
        base: 'new_issue',
        advertised: false,
      }),
      toolEntry('a.b_c', { backend: 'a', original: 'b.c', base: 'b.c' }),
    ]
    for (const name of ['github_new_issue', 'github.create_issue', 'github.new_issue', 'a.b.c'])
      t.equal((await item({ steps: [step(name)] }, tools)).name, 'w', name)
    for (const name of ['create_issue', 'git.create_issue', 'w'])
      t.equal(await item({ steps: [step(name)] }, tools), `workflow w is left out: unknown tool ${name}`)
    const inner = { id: 'e', type: 'forEach', collection: '[]', step: { tool: 'x.gone' } }
    t.match(await item({ steps: [step(), inner] }), /unknown tool x\.gone/)
    const asking = {
      id: 'e',
      type: 'elicitation',
      message: 'm',
      schema: { type: 'object', properties: { a: { type: 'string' } } },
    }
    t.equal((await item({ steps: [asking] }, [])).name, 'w', 'no tools are needed to ask')
  },
)

t.test('listing: annotations are at least as strict as those of the tools', async (t) => {
  const safe = { readOnlyHint: true, openWorldHint: false }
  const mild = { readOnlyHint: false, destructiveHint: false, openWorldHint: false }
  const hints = async (of: object[], annotations?: object) => {
    const tools = of.map((one, i) => toolEntry(`x_t${i}`, { annotations: { ...one } }))
    const steps = of.map((_, i) => ({ id: `s${i}`, tool: `x_t${i}` }))
    const listed = await item({ steps, annotations }, tools)
    return typeof listed === 'string' ? listed : listed.annotations
  }
  t.strictSame(await hints([safe]), { readOnlyHint: true, destructiveHint: false, openWorldHint: false })
  t.strictSame(await hints([safe, mild]), {
    readOnlyHint: false,
    destructiveHint: false,
    openWorldHint: false,
  })
  t.strictSame(await hints([safe, {}]), { readOnlyHint: false, destructiveHint: true, openWorldHint: true })
  t.strictSame(await hints([safe], { title: 'T', idempotentHint: true, readOnlyHint: false }), {
    readOnlyHint: false,
    destructiveHint: false,
    openWorldHint: false,
    title: 'T',
    idempotentHint: true,
  })
  t.equal(
    await hints([{}], { readOnlyHint: true, destructiveHint: false }),
    "workflow w is left out: the workflow's annotations claim readOnlyHint true, destructiveHint false, but the annotations of its tools contradict this",
  )
  t.match(await hints([mild], { openWorldHint: false }), { openWorldHint: false })
})

t.test('catalog: only the workflow with a colliding name is excluded, and it is reported', async (t) => {
  const json = (name: string) => Buffer.from(JSON.stringify({ name, inputSchema: { type: 'object' } }))
  const listing = {
    backend: 'x',
    serial: 1,
    violations: noErrors,
    server: {
      protocolVersion: '2025-11-25',
      capabilities: {} as never,
      instructions: undefined,
      extensions: new Map(),
    },
    tools: ['a', 'taken'].map((key) => ({ key, json: json(key), mirrored: [] })),
    resources: [],
    templates: [],
    prompts: [],
  }
  const aggregation = vmcpConfig(
    {},
    { aggregation: { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['x'] } } },
  ).aggregation
  const { listed: taken } = await rig(workflow({ name: 'taken', steps: [step()] }))
  const { listed: free } = await rig(workflow({ name: 'free', steps: [step()] }))
  const entries = [taken, free].filter((entry) => entry !== undefined)
  const catalog = new Catalog([listing], aggregation, () => ({
    entries,
    problems: [{ kind: 'workflow', subject: 'gone', message: 'workflow gone is left out' }],
  }))
  t.strictSame(
    catalog.toolList.map(({ key }) => key),
    ['a', 'free', 'taken'],
  )
  t.equal(catalog.tools.get('taken')?.backend, 'x')
  t.strictSame(
    catalog.problems.map(({ message }) => message),
    ['workflow gone is left out', 'tool taken is left out: x offers a tool with that name'],
  )
})

t.test('start: every error of every definition is reported at once', async (t) => {
  const broken = [
    draft({
      steps: [
        { id: 'a', tool: 'x.a', arguments: { q: '{{nope}}' } },
        { id: 'b', tool: 'x.a', dependsOn: ['c'] },
      ],
    }),
    draft({ steps: [{ id: 'a', tool: 'x.a' }] }),
    draft({
      name: 'v',
      parameters: { type: 'object', properties: { a: { $ref: '#/$defs/gone' } } },
      steps: [{ id: 'a', tool: 'x.a' }],
    }),
  ]
  const lines = workflowErrors(broken)
  t.equal(lines.length, 3)
  t.match(
    lines.join('\n'),
    /compositeTools\[0\]\.steps\[1\]\.dependsOn: unknown step "c"[^]*compositeTools\[0\]\.steps\[0\]\.arguments\.q: is not a template: unknown function nope[^]*compositeTools\[2\]\.parameters/,
  )
  const config = { ...vmcpConfig({ x: 'http://127.0.0.1:1/mcp' }), compositeTools: broken }
  t.throws(() => checkStart(config, { env: {} }), {
    code: 'INVALID_CONFIG',
    message: /unknown step "c"[^]*unknown function nope[^]*compositeTools\[2\]/,
  })
  t.doesNotThrow(() => checkStart({ ...config, compositeTools: broken.slice(1, 2) }, { env: {} }))
})
