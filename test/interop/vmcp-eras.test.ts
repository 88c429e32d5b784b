/**
 * Every client era with every backend era: both generations of the SDK as clients, both as backends, and the old SSE
 * transport, through one virtual server.
 */
import t from 'tap'
import { startFixture } from '../helpers/fixture-server/index.ts'
import { type ClientKind, connect } from '../helpers/mcp-clients.ts'
import { proves } from '../helpers/proves.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp.ts'

proves('3.service.one-server', '3.endpoint.transports', '3.config.backends.transport', '3.config.name')

const clients: readonly ClientKind[] = ['sdk1', 'sdk2-session', 'sdk2-stateless']
const backends = ['session', 'stateless', 'sse'] as const

for (const backend of backends) {
  for (const kind of clients) {
    t.test(`${kind} client, ${backend} backend: everything a client does`, async (t) => {
      const fixture = await startFixture({ era: backend === 'stateless' ? 'stateless' : 'session' })
      const target =
        backend === 'sse' ? { url: fixture.sseUrl, transport: 'sse' as const } : { url: fixture.url }
      const vmcp = await startTestVmcp({ fixture: target }, { aggregation: bareNames('fixture') })
      const client = await connect(kind, vmcp.url)
      t.teardown(async () => {
        await client.close()
        await vmcp.close()
        await fixture.close()
      })
      t.equal(client.version()?.name, 'test-vmcp')
      const tools = await client.listTools()
      t.ok(tools.some(({ name }) => name === 'test_simple_text'))
      t.ok((await client.listPrompts()).includes('test_simple_prompt'))
      t.ok((await client.listResources()).includes('test://static-text'))
      t.same(await client.listTemplates(), ['test://template/{id}/data'])
      t.match(await client.callText('test_simple_text'), 'simple text')
      t.match(await client.callText('test_error_handling'), /^!/)
      t.match(await client.readText('test://static-text'), 'static text resource')
      t.match(await client.readText('test://template/7/data'), '"id":"7"')
      t.match(await client.promptText('test_prompt_with_arguments', { arg1: 'a', arg2: 'b' }), "arg1='a'")
      t.same(await client.complete('test_prompt_with_arguments', 'arg1', 'par'), ['paris', 'park', 'party'])
      const progress: number[] = []
      await client.callText(
        'test_tool_with_progress',
        {},
        { onprogress: (p) => void progress.push(p.progress) },
      )
      t.same(progress, [0, 50, 100])
      await t.rejects(client.call('no_such_tool'))
      await t.rejects(client.readText('test://no-such-resource'))
    })

    t.test(`${kind} client, ${backend} backend: questions of the backend reach the client`, async (t) => {
      const fixture = await startFixture({ era: backend === 'stateless' ? 'stateless' : 'session' })
      const target =
        backend === 'sse' ? { url: fixture.sseUrl, transport: 'sse' as const } : { url: fixture.url }
      const vmcp = await startTestVmcp({ fixture: target }, { aggregation: bareNames('fixture') })
      const client = await connect(kind, vmcp.url)
      t.teardown(async () => {
        await client.close()
        await vmcp.close()
        await fixture.close()
      })
      if (backend === 'stateless') {
        t.equal(await client.callText('test_input_required_result_elicitation'), 'Hello, ada!')
        t.equal(await client.callText('test_input_required_result_sampling'), 'sampled')
        t.match(await client.callText('test_input_required_result_list_roots'), 'file:///project')
        t.equal(await client.callText('test_input_required_result_request_state'), 'state-ok')
        t.equal(await client.callText('test_input_required_result_multiple_inputs'), 'all-ok')
        t.equal(await client.callText('test_input_required_result_multi_round'), 'rounds-ok')
        t.equal(await client.promptText('test_input_required_result_prompt'), 'here')
      } else {
        t.match(await client.callText('test_elicitation', { message: 'who?' }), 'ada@example.com')
        t.equal(await client.callText('test_elicitation_url'), 'action=accept')
        t.equal(await client.callText('test_sampling', { prompt: 'hi' }), 'LLM response: sampled text')
        t.equal(await client.callText('test_roots'), 'file:///project')
        t.match(await client.callText('test_two_questions'), /ada.* .*ada/)
      }
      t.ok(client.asked.includes('elicitation/create'))
      t.ok(client.asked.includes('sampling/createMessage'))
      t.ok(client.asked.includes('roots/list'))
    })
  }
}

t.test('sdk1 client over the old SSE transport: everything a client does', async (t) => {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
  const client = await connect('sdk1', `${vmcp.origin}/sse`, { sse: true })
  t.teardown(async () => {
    await client.close()
    await vmcp.close()
    await fixture.close()
  })
  t.ok((await client.listTools()).some(({ name }) => name === 'test_simple_text'))
  t.match(await client.callText('test_simple_text'), 'simple text')
  t.match(await client.callText('test_elicitation', { message: 'who?' }), 'ada@example.com')
  const progress: number[] = []
  await client.callText('test_tool_with_progress', {}, { onprogress: (p) => void progress.push(p.progress) })
  t.same(progress, [0, 50, 100])
  await t.rejects(client.call('no_such_tool'))
})
