/**
 * Every client era with every backend era, operation by operation: both generations of the SDK as clients, both as
 * backends, and the HTTP+SSE (deprecated) transport on either side, through one virtual server.
 */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { type Fixture, startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { type ClientKind, connect, type TestClient } from '../helpers/mcp/clients.ts'
import { proves } from '../helpers/proves.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp/vmcp.ts'

t.setTimeout(300_000)

proves('3.service.one-server', '3.endpoint.transports', '3.config.backends.transport', '3.config.name')

const clients = ['sdk1', 'sdk1-sse', 'sdk2-session', 'sdk2-stateless'] as const
const backends = ['session', 'stateless', 'sse'] as const
const WATCHED = 'test://watched-resource'

interface Cell {
  readonly client: TestClient
  readonly fixture: Fixture
}

async function start(
  t: Test,
  kind: (typeof clients)[number],
  backend: (typeof backends)[number],
): Promise<Cell> {
  const fixture = await startFixture({ era: backend === 'stateless' ? 'stateless' : 'session' })
  const target = backend === 'sse' ? { url: fixture.sseUrl, transport: 'sse' as const } : { url: fixture.url }
  const vmcp = await startTestVmcp({ fixture: target }, { aggregation: bareNames('fixture') })
  const sse = kind === 'sdk1-sse'
  const generation: ClientKind = sse ? 'sdk1' : kind
  const client = await connect(generation, sse ? `${vmcp.origin}/sse` : vmcp.url, { sse })
  t.teardown(async () => {
    await client.close()
    await vmcp.close()
    await fixture.close()
  })
  t.equal(client.version()?.name, 'test-vmcp')
  return { client, fixture }
}

const operations: Readonly<Record<string, (t: Test, cell: Cell) => Promise<void>>> = {
  async tools(t, { client }) {
    const names = (await client.listTools()).map(({ name }) => name)
    t.ok(names.includes('test_simple_text'))
    t.same(names, names.toSorted(), 'in a stable order')
    t.match(await client.callText('test_simple_text'), 'simple text')
    t.equal(await client.callText('echo', { a: [1, { b: null }] }), '{"a":[1,{"b":null}]}')
    t.match(await client.callText('test_error_handling'), /^!/)
    t.match(await client.call('test_multiple_content_types'), {
      content: [{ type: 'text' }, { type: 'image' }, { type: 'resource' }],
    })
    await t.rejects(client.call('no_such_tool'))
  },
  async 'resources and templates'(t, { client }) {
    t.ok((await client.listResources()).includes('test://static-text'))
    t.same(await client.listTemplates(), ['test://template/{id}/data'])
    t.match(await client.readText('test://static-text'), 'static text resource')
    t.match(await client.readText('test://template/7/data'), '"id":"7"')
    await t.rejects(client.readText('test://no-such-resource'))
  },
  async prompts(t, { client }) {
    t.ok((await client.listPrompts()).includes('test_simple_prompt'))
    t.match(await client.promptText('test_prompt_with_arguments', { arg1: 'a', arg2: 'b' }), "arg1='a'")
    await t.rejects(client.promptText('no_such_prompt'))
  },
  async completion(t, { client }) {
    const words = ['paris', 'park', 'party']
    t.same(await client.complete('test_prompt_with_arguments', 'arg1', 'par'), words)
    t.same(await client.completeTemplate('test://template/{id}/data', 'id', 'par'), words)
  },
  async progress(t, { client }) {
    const progress: number[] = []
    await client.callText(
      'test_tool_with_progress',
      {},
      { onprogress: (p) => void progress.push(p.progress) },
    )
    t.same(progress, [0, 50, 100])
  },
  async logging(t, { client }) {
    const all = ['Tool execution started', 'Tool processing data', 'Tool execution completed']
    t.same(await client.callForLogs('test_tool_with_logging', 'info'), all)
    t.same(await client.callForLogs('test_tool_with_logging', 'error'), [], 'below the level that is wanted')
  },
  async cancellation(t, { client, fixture }) {
    const waiting = once(fixture.state.events, 'waiting')
    const cancelled = once(fixture.state.events, 'cancelled')
    const abort = new AbortController()
    const call = client.call('wait', {}, { signal: abort.signal })
    const refused = t.rejects(call)
    await waiting
    abort.abort(new Error('enough'))
    await refused
    await cancelled
    t.match(await client.callText('test_simple_text'), 'simple text', 'everything else goes on')
  },
  async 'changed lists and updated resources'(t, { client, fixture }) {
    await client.listTools()
    await client.listPrompts()
    await client.listResources()
    const stop = await client.watch(WATCHED)
    fixture.state.toggleTool()
    await client.heard('tools')
    t.ok((await client.listTools()).some(({ name }) => name === 'extra_tool'))
    fixture.state.togglePrompt()
    await client.heard('prompts')
    t.ok((await client.listPrompts()).includes('extra_prompt'))
    fixture.state.update(WATCHED)
    await client.heard(WATCHED)
    await stop()
  },
  async 'elicitation, by form and by address'(t, { client }) {
    t.match(await client.callText('test_elicitation', { message: 'who?' }), 'ada@example.com')
    t.match(await client.callText('test_two_questions'), /ada.* .*ada/)
    t.equal(await client.callText('test_elicitation_url'), 'action=accept')
    t.equal(await client.callText('test_input_required_result_elicitation'), 'Hello, ada!')
    t.equal(await client.callText('test_input_required_result_request_state'), 'state-ok')
    t.equal(await client.callText('test_input_required_result_multi_round'), 'rounds-ok')
    t.equal(await client.promptText('test_input_required_result_prompt'), 'here', 'for a prompt')
    t.ok(client.asked.includes('elicitation/create'))
  },
  async sampling(t, { client }) {
    t.equal(await client.callText('test_sampling', { prompt: 'hi' }), 'LLM response: sampled text')
    t.equal(await client.callText('test_input_required_result_sampling'), 'sampled')
    t.ok(client.asked.includes('sampling/createMessage'))
  },
  async roots(t, { client }) {
    t.equal(await client.callText('test_roots'), 'file:///project')
    t.match(await client.callText('test_input_required_result_list_roots'), 'file:///project')
    t.ok(client.asked.includes('roots/list'))
  },
  async 'questions of all kinds at once'(t, { client }) {
    t.equal(await client.callText('test_input_required_result_multiple_inputs'), 'all-ok')
    t.same(client.asked.toSorted(), ['elicitation/create', 'roots/list', 'sampling/createMessage'])
  },
  async pagination(t, { client, fixture }) {
    fixture.state.crowd = 2_300
    const first = await client.toolPage('')
    const names = [...first.names]
    let pages = 1
    for (let { nextCursor } = first; nextCursor !== undefined; pages++) {
      const page = await client.toolPage(nextCursor)
      names.push(...page.names)
      nextCursor = page.nextCursor
    }
    t.equal(pages, 3)
    t.equal(names.filter((name) => name.startsWith('crowd_')).length, 2_300)
    t.equal(new Set(names).size, names.length, 'nothing comes twice')
    t.same(names, names.toSorted())
    await t.rejects(client.toolPage('not-a-cursor'))
  },
}

for (const backend of backends) {
  for (const kind of clients) {
    t.test(`${kind} client, ${backend} backend`, { timeout: 120_000 }, async (t) => {
      for (const [name, operation] of Object.entries(operations)) {
        await t.test(`${name}: as with a native server`, async (t) =>
          operation(t, await start(t, kind, backend)),
        )
      }
    })
  }
}
