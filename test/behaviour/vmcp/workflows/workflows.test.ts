/** Composite tools over HTTP, with real clients and backends of both eras: listed and called like any other tool. */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { type ClientKind, connect } from '../../../helpers/mcp/clients.ts'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

const kinds: readonly ClientKind[] = ['sdk1', 'sdk2-session', 'sdk2-stateless']

const report = {
  name: 'report',
  description: 'Greets, then repeats itself for every friend',
  parameters: {
    type: 'object',
    properties: {
      who: { type: 'string' },
      friends: { type: 'array', items: { type: 'string' }, default: [] },
      loud: { type: 'boolean', default: false },
    },
    required: ['who'],
  },
  steps: [
    { id: 'greet', tool: 'fixture.echo', arguments: { text: 'Hello {{.params.who}}', count: 2 } },
    {
      id: 'shout',
      tool: 'fixture.test_simple_text',
      condition: '{{.params.loud}}',
      defaultResults: { text: 'quiet' },
    },
    {
      id: 'each',
      type: 'forEach',
      collection: '{{json .params.friends}}',
      itemVar: 'friend',
      dependsOn: ['greet'],
      step: { tool: 'fixture.echo', arguments: { to: '{{.forEach.friend}}', from: '{{.params.who}}' } },
    },
  ],
  output: {
    properties: {
      greeting: { type: 'string', value: '{{(fromJson .steps.greet.output.text).text}}' },
      mood: { type: 'string', value: '{{.steps.shout.output.text}}' },
      told: { type: 'integer', value: '{{.steps.each.output.completed}}' },
      last: {
        type: 'object',
        value: '{{range .steps.each.output.iterations}}{{if eq .index 1}}{{.output.text}}{{end}}{{end}}',
        default: {},
      },
    },
    required: ['greeting', 'told'],
  },
}

async function start(
  t: Test,
  compositeTools: object[],
  era: 'session' | 'stateless' = 'session',
  more: object = {},
) {
  const fixture = await startFixture({ era })
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { compositeTools, ...more })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  return { fixture, vmcp }
}

t.test('a workflow is one more tool, for clients and backends of both eras', async (t) => {
  proves(
    '3.config.compositeTools.name',
    '3.config.compositeTools.description',
    '3.config.compositeTools.parameters',
    '3.config.compositeTools.templates',
    '3.config.compositeTools.steps.tool',
    '3.config.compositeTools.steps.arguments',
    '3.config.compositeTools.steps.condition',
    '3.config.compositeTools.steps.dependsOn',
    '3.config.compositeTools.steps.defaultResults',
    '3.config.compositeTools.steps.collection',
    '3.config.compositeTools.output',
    '3.config.compositeTools.output.properties.value',
  )
  for (const era of ['session', 'stateless'] as const) {
    const { vmcp } = await start(t, [report], era)
    for (const kind of kinds) {
      const client = await connect(kind, vmcp.url)
      t.teardown(() => client.close())
      const tools = await client.listTools()
      const listed = tools.find(({ name }) => name === 'report')
      t.match(listed, {
        description: /Greets/,
        inputSchema: { required: ['who'] },
        outputSchema: { properties: { told: { type: 'integer' } } },
      })
      t.ok(
        tools.some(({ name }) => name === 'fixture_echo'),
        'next to the tools of the backends',
      )
      const result = await client.call('report', { who: 'Ada', friends: ['Bob', 'Eve'] })
      t.strictSame(
        result['structuredContent'],
        { greeting: 'Hello Ada', mood: 'quiet', told: 2, last: { to: 'Eve', from: 'Ada' } },
        `${kind} to a ${era} backend`,
      )
      t.match(
        await client.callText('report', { who: 'Ada', loud: true }),
        /"mood":"This is a simple text response/,
      )
      t.match(
        await client.callText('report', {}),
        /^!Workflow execution failed: invalid arguments: \/ must have required property 'who'/,
      )
    }
  }
})

t.test('workflows can use tools that clients do not see', async (t) => {
  const steps = [{ id: 'a', tool: 'fixture.echo', arguments: { x: '{{.params.x}}' } }]
  const { vmcp } = await start(t, [{ name: 'only', steps }], 'session', {
    aggregation: { excludeAllTools: true },
  })
  const client = await connect('sdk1', vmcp.url)
  t.teardown(() => client.close())
  t.strictSame(
    (await client.listTools()).map(({ name }) => name),
    ['only'],
  )
  t.equal(await client.callText('only', { x: 'y' }), '{"text":"{\\"x\\":\\"y\\"}"}')
  await t.rejects(client.callText('fixture_echo'), /not found/)
})

t.test(
  'a workflow with missing tools is not listed, and a workflow cannot take an existing name',
  async (t) => {
    const step = (tool: string) => [{ id: 'a', tool }]
    const { vmcp, fixture } = await start(
      t,
      [
        { name: 'gone', steps: step('fixture.no_such_tool') },
        { name: 'echo', steps: step('fixture.test_simple_text') },
        { name: 'fine', steps: step('fixture.echo') },
      ],
      'session',
      { aggregation: bareNames('fixture') },
    )
    const client = await connect('sdk1', vmcp.url)
    t.teardown(() => client.close())
    const names = (await client.listTools()).map(({ name }) => name)
    t.ok(names.includes('fine') && !names.includes('gone'))
    t.equal(names.filter((name) => name === 'echo').length, 1)
    t.equal(await client.callText('echo', { a: 1 }), '{"a":1}', 'the tool of the backend')
    await t.rejects(client.callText('gone'), /not found/)
    const status = await (await fetch(`${vmcp.origin}/status`)).text()
    t.match(status, /workflow gone is left out: unknown tool fixture\.no_such_tool/)
    t.match(status, /tool echo is left out: fixture offers a tool with that name/)
    t.ok(fixture.state.requests.length > 0)
  },
)

t.test('a changed configuration adds and removes workflows while sessions continue', async (t) => {
  const { vmcp, fixture } = await start(t, [])
  const client = await connect('sdk1', vmcp.url)
  t.teardown(() => client.close())
  const listed = async () => (await client.listTools()).some(({ name }) => name === 'late')
  t.notOk(await listed())
  const late = { name: 'late', steps: [{ id: 'a', tool: 'fixture.echo', arguments: { n: '{{.params.n}}' } }] }
  vmcp.reload(vmcpConfig({ fixture: fixture.url }, { compositeTools: [late] }))
  t.ok(await listed())
  t.equal(await client.callText('late', { n: 1 }), '{"text":"{\\"n\\":1}"}')
  t.throws(
    () =>
      vmcp.reload(
        vmcpConfig(
          { fixture: fixture.url },
          {
            compositeTools: [
              { ...late, steps: [{ id: 'a', tool: 'fixture.echo', arguments: { n: '{{nope}}' } }] },
            ],
          },
        ),
      ),
    { code: 'INVALID_CONFIG', message: /compositeTools\[0\]\.steps\[0\]\.arguments\.n: is not a template/ },
  )
  t.ok(await listed(), 'a bad one changes nothing')
})

t.test('a failing tool fails the workflow with a message that a model can read', async (t) => {
  const { vmcp, fixture } = await start(t, [
    {
      name: 'bad',
      steps: [
        { id: 'first', tool: 'fixture.echo' },
        { id: 'second', tool: 'fixture.test_error_handling', dependsOn: ['first'] },
        { id: 'third', tool: 'fixture.echo', dependsOn: ['second'] },
      ],
    },
    { name: 'asks', steps: [{ id: 'a', tool: 'fixture.test_sampling', arguments: { prompt: 'p' } }] },
  ])
  for (const kind of kinds) {
    const client = await connect(kind, vmcp.url)
    t.teardown(() => client.close())
    const text = await client.callText('bad')
    t.equal(
      text,
      '!Workflow execution failed: step "second": tool fixture.test_error_handling: This tool intentionally returns an error for testing (steps: first completed, second failed, third not started)',
    )
    t.notMatch(text, new URL(fixture.url).host)
    t.match(await client.callText('asks'), /sampled text/, 'a backend may ask the client during the call')
    t.ok(client.asked.includes('sampling/createMessage'))
  }
})

t.test('a question from a stateless backend is answered within the workflow', async (t) => {
  const { vmcp } = await start(
    t,
    [{ name: 'asks', steps: [{ id: 'a', tool: 'fixture.test_input_required_result_elicitation' }] }],
    'stateless',
  )
  for (const kind of kinds) {
    const client = await connect(kind, vmcp.url)
    t.teardown(() => client.close())
    t.match(await client.callText('asks'), /ada/, kind)
  }
})

t.test('progress of the workflow reaches the client that requested it', async (t) => {
  const steps = ['a', 'b', 'c'].map((id, i, ids) => ({
    id,
    tool: 'fixture.test_tool_with_progress',
    dependsOn: ids.slice(0, i),
  }))
  const { vmcp } = await start(t, [{ name: 'steps', steps }])
  for (const kind of kinds) {
    const client = await connect(kind, vmcp.url)
    t.teardown(() => client.close())
    const seen: unknown[] = []
    await client.callText('steps', {}, { onprogress: ({ progress, total }) => seen.push([progress, total]) })
    t.strictSame(
      seen.slice(0, 2),
      [
        [1, 3],
        [2, 3],
      ],
      `${kind}: none of the steps' own`,
    )
  }
})

t.test("a client that disconnects cancels the workflow's backend calls", async (t) => {
  const { vmcp, fixture } = await start(t, [
    {
      name: 'long',
      steps: [
        { id: 'a', tool: 'fixture.wait' },
        { id: 'b', tool: 'fixture.echo', dependsOn: ['a'] },
      ],
    },
  ])
  for (const kind of kinds) {
    const client = await connect(kind, vmcp.url)
    t.teardown(() => client.close())
    const waiting = once(fixture.state.events, 'waiting')
    const cancelled = once(fixture.state.events, 'cancelled')
    const abort = new AbortController()
    const call = client.callText('long', {}, { signal: abort.signal }).catch(() => 'gave up')
    await waiting
    abort.abort()
    await cancelled
    t.equal(await call, 'gave up', kind)
  }
})

t.test('time: a step that takes too long ends, and the workflow may continue', async (t) => {
  proves('3.config.compositeTools.steps.timeout', '3.config.compositeTools.timeout')
  const { vmcp } = await start(t, [
    {
      name: 'goes_on',
      steps: [
        {
          id: 'a',
          tool: 'fixture.wait',
          timeout: '150ms',
          onError: { action: 'continue' },
          defaultResults: { text: 'none' },
        },
      ],
      output: {
        properties: { r: { type: 'string', value: '{{.steps.a.status}} {{.steps.a.output.text}}' } },
      },
    },
    { name: 'ends', timeout: '150ms', steps: [{ id: 'a', tool: 'fixture.wait' }] },
  ])
  const client = await connect('sdk2-stateless', vmcp.url)
  t.teardown(() => client.close())
  t.equal(await client.callText('goes_on'), '{"r":"failed none"}')
  t.equal(
    await client.callText('ends'),
    '!Workflow execution timeout exceeded: after 150ms (steps: a cancelled)',
  )
})

t.test('retry: a failed step may be repeated', async (t) => {
  proves(
    '3.config.compositeTools.steps.onError.action',
    '3.config.compositeTools.steps.onError.retryCount',
    '3.config.compositeTools.steps.onError.retryDelay',
  )
  let failures = 2
  const backend = await startRawBackend({
    responses: {
      'tools/call': () =>
        failures-- > 0
          ? '{"isError":true,"content":[{"type":"text","text":"busy"}]}'
          : '{"content":[{"type":"text","text":"at last"}]}',
    },
  })
  const step = { id: 'a', tool: 'lab.echo', onError: { action: 'retry', retryCount: 2, retryDelay: '1ms' } }
  const vmcp = await startTestVmcp({ lab: backend.url }, { compositeTools: [{ name: 'w', steps: [step] }] })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const { response } = await stateless(vmcp.url, 'tools/call', { name: 'w', arguments: {} })
  t.match(response?.result, { structuredContent: { text: 'at last' } })
  t.equal(backend.requests.filter(({ method }) => method === 'tools/call').length, 3)
})
