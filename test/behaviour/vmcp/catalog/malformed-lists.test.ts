/** Malformed items of one backend break no list: SDK clients read the other items, and operators get a report. */
import t from 'tap'
import { makeLog } from '../../../../runtime/observe/index.ts'
import { type ClientKind, connect } from '../../../helpers/mcp/clients.ts'
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const OBJECT = { type: 'object' }
const TOOLS = [
  {
    name: 'null_members',
    description: null,
    outputSchema: null,
    annotations: null,
    _meta: null,
    inputSchema: OBJECT,
  },
  { name: 'wrong_members', title: 5, icons: {}, inputSchema: OBJECT },
  { name: 'no_schema' },
  { name: 'array_schema', inputSchema: { type: 'array' } },
  { name: 'list_result', inputSchema: OBJECT, outputSchema: { type: 'array' } },
  {
    name: 'uncompilable',
    inputSchema: OBJECT,
    outputSchema: { type: 'object', properties: { a: { pattern: '(' } } },
  },
  { name: 'flags', inputSchema: { type: 'object', properties: { any: true } } },
]
const LISTS = {
  'tools/list': { tools: TOOLS, nextCursor: null },
  'resources/list': { resources: [{ uri: 'test://unnamed' }, { uri: 'test://r', name: 'r', size: 'big' }] },
  'resources/templates/list': {
    resourceTemplates: [
      { uriTemplate: 'test://{a}' },
      { uriTemplate: 'test://{b}', name: 't', mimeType: null },
    ],
  },
  'prompts/list': {
    prompts: [
      { name: 'p', arguments: null },
      { name: 'q', arguments: [{}] },
    ],
  },
}

/** `spaces`: indentation of members. */
function listing({ spaces }: { readonly spaces: number }) {
  return {
    capabilities: '{"tools":{},"resources":{},"prompts":{}}',
    responses: Object.fromEntries(
      Object.entries(LISTS).map(([method, list]) => [method, () => JSON.stringify(list, undefined, spaces)]),
    ),
  }
}
const options = listing({ spaces: 0 })

for (const [kind, spaces] of [
  ['sdk1', 0],
  ['sdk2-session', 0],
  ['sdk2-stateless', 0],
  ['sdk2-stateless', 1],
] as [ClientKind, number][]) {
  t.test(`${kind} reads every list next to a backend with malformed items, ${spaces} spaces`, async (t) => {
    const [bad, good] = await Promise.all([startRawBackend(listing({ spaces })), startRawBackend()])
    const vmcp = await startTestVmcp({ bad: bad.url, good: good.url })
    const client = await connect(kind, vmcp.url)
    t.teardown(() => Promise.all([client.close(), vmcp.close(), bad.close(), good.close()]))
    t.same(
      (await client.listTools()).map(({ name }) => name),
      ['flags', 'list_result', 'no_schema', 'null_members', 'uncompilable', 'wrong_members']
        .map((name) => `bad_${name}`)
        .concat('good_echo'),
    )
    t.same(await client.listResources(), ['test://r'])
    t.same(await client.listTemplates(), ['test://{b}'])
    t.same(await client.listPrompts(), ['bad_p'])
    t.match(await client.callText('bad_null_members', { a: 1 }), '{"a":1}', 'a repaired tool can be called')
  })
}

t.test('dropped and repaired items are reported in status, health, log and metrics', async (t) => {
  const bad = await startRawBackend(options)
  const lines: string[] = []
  const log = makeLog({ level: 'info', destination: { write: (line) => void lines.push(line) } })
  const vmcp = await startTestVmcp(
    { bad: bad.url },
    { telemetry: { enablePrometheusMetricsPath: true } },
    { log },
  )
  t.teardown(() => Promise.all([vmcp.close(), bad.close()]))
  const session = await openSession(vmcp.url)
  await session.request('tools/list')
  await stateless(vmcp.url, 'tools/list')
  const get = async (path: string) => (await fetch(`${vmcp.origin}${path}`)).text()
  const { problems } = JSON.parse(await get('/status')) as { problems: string[] }
  for (const line of [
    'tool "array_schema" from backend bad is left out: inputSchema must be a JSON Schema of type object',
    'tool "wrong_members" from backend bad was repaired; affected members: title, icons',
    'resource "test://unnamed" from backend bad is left out: name must be a non-empty string',
    'prompt "q" from backend bad is left out: arguments must be a list of named arguments',
  ])
    t.ok(problems.includes(line), line)
  t.match(JSON.parse(await get('/api/backends/health')), {
    backends: { bad: { items_repaired: 6, items_left_out: 4 } },
  })
  const logged = lines.filter((line) => line.includes('items in the lists are malformed'))
  t.equal(logged.length, 1, 'one line, not one for each read')
  t.match(logged[0], /"backend":"bad"/)
  const metrics = await get('/metrics')
  t.match(metrics, /gatehouse_vmcp_malformed_items_total\{target_workload_name="bad",action="repaired"\} \d/)
  t.match(metrics, /gatehouse_vmcp_malformed_items_total\{target_workload_name="bad",action="left_out"\} \d/)
})

t.test(
  'a result schema that is only valid in the stateless era reaches stateless clients unchanged',
  async (t) => {
    const bad = await startRawBackend(options)
    const vmcp = await startTestVmcp({ bad: bad.url })
    t.teardown(() => Promise.all([vmcp.close(), bad.close()]))
    const session = await openSession(vmcp.url)
    const tool = ({ response }: { response: { result?: Record<string, unknown> } | undefined }) =>
      ((response?.result?.['tools'] ?? []) as { name: string }[]).find(
        ({ name }) => name === 'bad_list_result',
      )
    t.match(tool(await stateless(vmcp.url, 'tools/list')), { outputSchema: { type: 'array' } })
    t.notHas(tool(await session.request('tools/list')), 'outputSchema')
  },
)
