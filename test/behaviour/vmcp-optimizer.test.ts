/** Tool search by words: what clients of every kind see, find and call. */
import t, { type Test } from 'tap'
import { connect } from '../helpers/mcp-clients.ts'
import { openSession, stateless, type WireAnswer } from '../helpers/mcp-wire.ts'
import { proves } from '../helpers/proves.ts'
import {
  type RawBackend,
  type RawBackendOptions,
  startRawBackend,
  textResult,
} from '../helpers/raw-backend.ts'
import { startFixture } from '../helpers/fixture-server/index.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp.ts'

proves('3.config.optimizer.enabled', '3.config.optimizer.maxToolsToReturn', '3.endpoint.find-call-tool')

const tool = (name: string, description: string, properties: Record<string, unknown> = {}, more = {}) =>
  JSON.stringify({ name, description, inputSchema: { type: 'object', properties }, ...more })

const TOOLS = [
  tool('create_issue', 'Opens a new issue in a repository', { repository: { type: 'string' } }),
  tool('list_issues', 'Lists the issues of a repository', { repository: { type: 'string' } }),
  tool('sendEmail', 'Sends a message to somebody', { recipient: { type: 'string' } }),
  tool('weather', 'Forecast for a place', { options: { type: 'object', properties: { postalCode: {} } } }),
  '{"name":"exact","description":"Keeps its bytes","inputSchema":{"type":"object","x":1.50,"big":12345678901234567890}}',
]

async function start(
  t: Test,
  more: Record<string, unknown> = {},
  backend: RawBackendOptions = {},
): Promise<{ url: string; origin: string; backend: RawBackend }> {
  const raw = await startRawBackend({ tools: () => TOOLS, ...backend })
  const vmcp = await startTestVmcp(
    { raw: raw.url },
    { aggregation: bareNames('raw'), optimizer: {}, ...more },
  )
  t.teardown(() => Promise.all([vmcp.close(), raw.close()]))
  return { url: vmcp.url, origin: vmcp.origin, backend: raw }
}

interface FindResult {
  readonly tools: { readonly name: string }[]
  readonly token_metrics: { baseline_tokens: number; returned_tokens: number; savings_percent: number }
}

function foundBy(answer: WireAnswer): FindResult {
  return answer.response?.result?.['structuredContent'] as unknown as FindResult
}

const names = (answer: WireAnswer): string[] => foundBy(answer).tools.map(({ name }) => name)

const find = (url: string, tool_description: string, tool_keywords?: unknown) =>
  stateless(url, 'tools/call', { name: 'find_tool', arguments: { tool_description, tool_keywords } })

t.test('tool search: every client lists two tools, finds what it needs and calls it', async (t) => {
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
    const { tools } = found['structuredContent'] as unknown as FindResult
    t.equal(tools[0]?.name, 'echo', kind)
    t.same(JSON.parse((found['content'] as { text: string }[])[0]?.text ?? ''), found['structuredContent'])
    t.match(
      await client.callText('call_tool', { tool_name: 'echo', parameters: { text: 'hi there' } }),
      'hi there',
    )
    await client.close()
  }
})

t.test('tool search: elicitation of a tool reaches the client through call_tool', async (t) => {
  const fixture = await startFixture({ era: 'both' })
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
    await client.close()
  }
})
