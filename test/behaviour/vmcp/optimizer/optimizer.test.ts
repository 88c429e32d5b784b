/** Tool search by words: the tools that clients of every kind see, find and call. */
import t from 'tap'
import { connect } from '../../../helpers/mcp/clients.ts'
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { startVmcp } from '../../../../runtime/vmcp/index.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'
import { call, find, type FindResult, foundBy, listOf, names, start, textOf, tool, TOOLS } from './rig.ts'

proves('3.config.optimizer.enabled', '3.config.optimizer.maxToolsToReturn', '3.endpoint.find-call-tool')

t.test('tool search: every client lists two tools, finds the tool it needs and calls it', async (t) => {
  const fixture = await startFixture({ era: 'both' })
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    { aggregation: bareNames('fixture'), optimizer: {} },
  )
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  for (const kind of ['sdk1', 'sdk2-session', 'sdk2-stateless'] as const) {
    const client = await connect(kind, vmcp.url)
    const listed = await client.listTools()
    t.same(
      listed.map(({ name }) => name),
      ['find_tool', 'call_tool'],
      kind,
    )
    t.ok(listed.every((item) => !('outputSchema' in item) && !('annotations' in item)))
    const found = await client.call('find_tool', {
      tool_description: 'echo the arguments back',
      tool_keywords: ['echo'],
    })
    const { tools } = found['structuredContent'] as FindResult
    t.equal(tools[0]?.name, 'echo', kind)
    t.same(JSON.parse((found['content'] as { text: string }[])[0]?.text ?? ''), found['structuredContent'])
    t.match(
      await client.callText('call_tool', { tool_name: 'echo', parameters: { text: 'hi there' } }),
      'hi there',
    )
    await client.close()
  }
})

for (const era of ['session', 'stateless'] as const)
  t.test(`tool search: questions and progress of a ${era} backend pass through call_tool`, async (t) => {
    const fixture = await startFixture({ era })
    const vmcp = await startTestVmcp(
      { fixture: fixture.url },
      { aggregation: bareNames('fixture'), optimizer: {} },
    )
    t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
    for (const kind of ['sdk1', 'sdk2-session', 'sdk2-stateless'] as const) {
      const client = await connect(kind, vmcp.url)
      const text = await client.callText('call_tool', {
        tool_name: 'test_elicitation',
        parameters: { message: 'who are you?' },
      })
      t.match(text, /ada/, kind)
      t.same(client.asked, ['elicitation/create'])
      const steps: number[] = []
      const progress = { tool_name: 'test_tool_with_progress', parameters: {} }
      await client.call('call_tool', progress, { onprogress: (step) => steps.push(step.progress) })
      t.ok(steps.length > 1, `${kind}: ${steps.length} steps`)
      await client.close()
    }
  })

t.test('tool search: a direct call of any other name is rejected like an unknown tool', async (t) => {
  const { url, backend } = await start(t)
  const plain = await startTestVmcp({ raw: backend.url }, { aggregation: bareNames('raw') })
  t.teardown(() => plain.close())
  const session = await openSession(url)
  const absent = await stateless(plain.url, 'tools/call', { name: 'no_such_tool' })
  for (const name of ['create_issue', 'no_such_tool', 'execute_tool_script', 'Find_Tool']) {
    const before = backend.requests.length
    for (const response of [
      await stateless(url, 'tools/call', { name, arguments: {} }),
      await session.request('tools/call', { name }),
    ]) {
      t.equal(response.response?.error?.code, absent.response?.error?.code)
      t.equal(
        response.response?.error?.message,
        absent.response?.error?.message.replace('no_such_tool', name),
      )
    }
    t.equal(backend.requests.length, before, 'no backend got a request')
  }
  t.equal((await session.request('tools/call', {})).response?.error?.code, -32602)
})

t.test('tool search: the list of tools has one page', async (t) => {
  const { url } = await start(t)
  const list = await stateless(url, 'tools/list')
  t.equal(list.response?.result?.['nextCursor'], undefined)
  const other = await stateless(url, 'tools/list', { cursor: 'W10' })
  t.match(other.response?.error, { code: -32602, message: 'invalid cursor' })
})

t.test('find_tool: finds by stems, by parts of names, by parameters, by keywords first', async (t) => {
  const { url } = await start(t)
  for (const [description, keywords, first] of [
    ['creating issues', undefined, 'create_issue'],
    ['opened in a repository', undefined, 'create_issue'],
    ['email', undefined, 'sendEmail'],
    ['SENDEMAIL', undefined, 'sendEmail'],
    ['sendEmail', undefined, 'sendEmail'],
    ['recipients', undefined, 'sendEmail'],
    ['a postal code', undefined, 'weather'],
    ['prévision forecast', undefined, 'weather'],
    ['create_issue', undefined, 'create_issue'],
    ['sending messages', ['forecast'], 'weather'],
    ['sending messages', 'forecast place', 'weather'],
    ['sending messages', ['tool', 'schema', 'data'], 'sendEmail'],
    ['"quoted" OR NEAR( * forecast -- : ^', undefined, 'weather'],
  ] as const)
    t.equal(names(await find(url, description, keywords))[0], first, `${description} ${String(keywords)}`)
  for (const nothing of ['zebra', '***', '日本語', '"', 'a\u0000b'])
    t.strictSame(foundBy(await find(url, nothing)).tools, [], nothing)
  t.same(names(await find(url, 'issue')).sort(), ['create_issue', 'list_issues'])
})

t.test('find_tool: returns tools byte for byte, and reports the savings', async (t) => {
  const { url } = await start(t)
  const response = await find(url, 'keeps its bytes')
  t.match(response.text, '"structuredContent":{"tools":[' + TOOLS[4])
  const size = (text: string | undefined) => Math.floor((text?.length ?? 0) / 4)
  const baseline = TOOLS.reduce((sum, text) => sum + size(text), 0)
  const { tools, token_metrics } = foundBy(response)
  t.same(
    tools.map(({ name }) => name),
    ['exact'],
  )
  t.strictSame(token_metrics, {
    baseline_tokens: baseline,
    returned_tokens: size(TOOLS[4]),
    savings_percent: Math.round(((baseline - size(TOOLS[4])) / baseline) * 10_000) / 100,
  })
  const none = await start(t, {}, { tools: () => [] })
  t.strictSame(foundBy(await find(none.url, 'anything')), {
    tools: [],
    token_metrics: { baseline_tokens: 0, returned_tokens: 0, savings_percent: 0 },
  })
})

t.test('find_tool: returns at most maxToolsToReturn tools, 8 by default', async (t) => {
  const many = Array.from({ length: 60 }, (_, i) => tool(`copy_${i}`, 'Copies a file'))
  const { url } = await start(t, {}, { tools: () => many })
  t.equal(names(await find(url, 'copy a file')).length, 8)
  const few = await start(t, { optimizer: { maxToolsToReturn: 2 } }, { tools: () => many })
  t.equal(names(await find(few.url, 'copy a file')).length, 2)
  const most = await start(t, { optimizer: { maxToolsToReturn: 50 } }, { tools: () => many })
  t.equal(names(await find(most.url, 'copy a file')).length, 50)
})

t.test('find_tool: searches all pages of a long list', async (t) => {
  const many = Array.from({ length: 2_500 }, (_, i) =>
    tool(`tool_${String(i).padStart(4, '0')}`, `Serves case number${i}`),
  )
  const { url } = await start(t, {}, { tools: () => many })
  t.same(names(await find(url, 'number2499')), ['tool_2499'])
  t.equal(textOf(await call(url, { tool_name: 'tool_2499', parameters: { a: 1 } })), '{"a":1}')
  t.same(names(await find(url, 'number1')), ['tool_0001'], 'the same index again')
})

t.test('find_tool: tools that are not offered are neither found nor called', async (t) => {
  const aggregation = {
    conflictResolution: 'priority',
    conflictResolutionConfig: { priorityOrder: ['raw'] },
    tools: [
      { workload: 'raw', filter: ['create_issue', 'weather'], overrides: { weather: { name: 'sky' } } },
    ],
  }
  const { url, backend } = await start(t, { aggregation })
  t.same(names(await find(url, 'issues of a repository')), ['create_issue'])
  t.same(names(await find(url, 'forecast')), [])
  t.equal(
    textOf(await call(url, { tool_name: 'list_issues', parameters: {} })),
    '!tool not found: list_issues',
  )
  t.notOk(backend.requests.some(({ method }) => method === 'tools/call'))
})

t.test('find_tool: a backend tool with its name is not offered', async (t) => {
  const { url } = await start(
    t,
    {},
    { tools: () => [tool('find_tool', 'Finds hardware in a shed'), ...TOOLS] },
  )
  t.same(names(await find(url, 'hardware in a shed')), [])
})

t.test(
  'tool search: new tools are found when a backend announces them, and removed ones are not',
  async (t) => {
    let tools = TOOLS
    const { url, backend } = await start(t, {}, { tools: () => tools })
    const session = await openSession(url)
    const search = async (text: string) =>
      names(await session.request('tools/call', { name: 'find_tool', arguments: { tool_description: text } }))
    await session.request('tools/list')
    t.same(await search('forecast'), ['weather'])
    const stream = await session.listen()
    tools = [tool('tides', 'Forecast of the tides')]
    backend.push('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
    await stream.next(({ method }) => method === 'notifications/tools/list_changed')
    t.same(await search('forecast'), ['tides'])
    t.same(names(await find(url, 'forecast')), ['tides'], 'the other era, too')
    stream.close()
  },
)

t.test('tool search: can be switched on and off by a changed configuration', async (t) => {
  const raw = await startRawBackend({ tools: () => TOOLS })
  const config = (more: Record<string, unknown>) =>
    vmcpConfig({ raw: raw.url }, { aggregation: bareNames('raw'), ...more })
  const vmcp = await startVmcp(config({}), { port: 0, graceMs: 200 })
  t.teardown(() => Promise.all([vmcp.close(), raw.close()]))
  const listed = async () => listOf(await stateless(vmcp.url, 'tools/list'))
  t.equal((await listed()).length, TOOLS.length)
  const session = await openSession(vmcp.url)
  await session.request('tools/list')
  const stream = await session.listen()
  vmcp.reload(config({ optimizer: {} }))
  await stream.next(({ method }) => method === 'notifications/tools/list_changed')
  stream.close()
  t.same(await listed(), ['find_tool', 'call_tool'])
  t.same(names(await find(vmcp.url, 'repository')).length, 2)
  vmcp.reload(config({ optimizer: { maxToolsToReturn: 1 } }))
  t.same(names(await find(vmcp.url, 'repository')).length, 1)
  vmcp.reload(config({}))
  t.equal((await listed()).length, TOOLS.length)
  t.equal((await find(vmcp.url, 'repository')).response?.error?.code, -32602)
})

t.test('tool search: prompts and resources are unchanged', async (t) => {
  const fixture = await startFixture({ era: 'both' })
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    { aggregation: bareNames('fixture'), optimizer: {} },
  )
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const client = await connect('sdk2-stateless', vmcp.url)
  t.ok((await client.listPrompts()).includes('test_simple_prompt'))
  t.ok((await client.listResources()).includes('test://static-text'))
  t.ok(await client.readText('test://static-text'))
  await client.close()
})

t.test('tool search: workflows and scripts are found and called like other tools', async (t) => {
  const { url } = await start(t, {
    codeMode: { enabled: true },
    compositeTools: [
      {
        name: 'storm_warning',
        description: 'Warns somebody of a storm',
        parameters: { type: 'object', properties: { place: { type: 'string' } } },
        steps: [{ id: 'look', tool: 'raw.weather', arguments: { place: '{{.params.place}}' } }],
      },
    ],
  })
  t.same(names(await find(url, 'warn of a storm')), ['storm_warning'])
  t.match(textOf(await call(url, { tool_name: 'storm_warning', parameters: { place: 'Bergen' } })), 'Bergen')
  const [script] = names(await find(url, 'execute a script', ['execute_tool_script']))
  t.equal(script, 'execute_tool_script')
  const run = { tool_name: 'execute_tool_script', parameters: { script: 'return weather(place = "Oslo")' } }
  t.match(textOf(await call(url, run)), 'Oslo')
  const through = { tool_name: 'execute_tool_script', parameters: { script: 'return find_tool()' } }
  t.match(textOf(await call(url, through)), /^!/, 'a script has no find_tool')
})
