/**
 * Loads files of decision points in ToolHive's format (`thv run --authz-config`), each in a ConfigMap byte for byte.
 * Expectations for the server, for the requests to the decision point, and for an unreachable decision point come from
 * ToolHive's end-to-end tests.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { startDecisionPoint } from '../../helpers/decisions/decision-point.ts'
import { manifest, startDev } from '../../helpers/dev-rig.ts'

t.setTimeout(180_000)

const point = await startDecisionPoint(({ operation, resource }) => {
  const isTool = operation === 'mcp:tool:call' && resource.includes(':tool:echo')
  return resource.startsWith('mrn:mcp:basic:') ? isTool : true
})
t.teardown(() => point.close())

/** Sets `insecure_skip_verify` under `http`, like the files of ToolHive's tests. */
const file = (pdp: object, http: object = { url: point.url, timeout: 10, insecure_skip_verify: true }) =>
  JSON.stringify({ version: '1.0', type: 'httpv1', pdp: { http, ...pdp } }, undefined, 2)

const files = {
  basic: file({ claim_mapping: 'standard' }),
  mpe: file({ claim_mapping: 'mpe' }),
  arguments: file({ claim_mapping: 'standard', context: { include_args: true } }),
  operation: file({ claim_mapping: 'standard', context: { include_operation: true } }),
  gone: file({ claim_mapping: 'standard' }, { url: 'http://127.0.0.1:9', timeout: 2 }),
}
type Name = keyof typeof files

const server = (name: string): string =>
  manifest(
    'MCPServer',
    name,
    {
      image: 'example.com/server:1',
      transport: 'stdio',
      proxyMode: name === 'basic' ? 'sse' : 'streamable-http',
      authzConfig: { type: 'configMap', configMap: { name } },
    },
    { 'gatehouse.dev/local-command': 'node test/helpers/mcp/fixture-server/stdio-program.ts' },
  )
const map = ([name, text]: [string, string]): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data: { 'authz.json': text },
  })

const { dev } = await startDev(t, [...Object.entries(files).map(map), ...Object.keys(files).map(server)])

async function connect(name: Name): Promise<Client> {
  const [, origin = ''] = await dev.waitFor(new RegExp(`MCPServer ${name}: ready on (127\\.0\\.0\\.1:\\d+)`))
  const client = new Client({ name: 'peer', version: '1' })
  await client.connect(
    name === 'basic'
      ? new SSEClientTransport(new URL(`http://${origin}/sse`))
      : new StreamableHTTPClientTransport(new URL(`http://${origin}/mcp`)),
  )
  t.teardown(() => client.close())
  return client
}

const call = (client: Client, name = 'echo') =>
  client.callTool({ name, arguments: { text: 'lodash', count: 4 } })
const lastOf = (name: Name) =>
  point.asked.findLast(({ question }) => question.resource.startsWith(`mrn:mcp:${name}:`))?.question

await t.test('sends the expected requests for allowed and denied calls, also over HTTP+SSE', async (t) => {
  const client = await connect('basic')
  t.match(JSON.stringify((await call(client)).content), 'lodash')
  t.same(lastOf('basic'), {
    principal: lastOf('basic')?.principal,
    operation: 'mcp:tool:call',
    resource: 'mrn:mcp:basic:tool:echo',
    context: {},
  })
  t.notOk('mannotations' in (lastOf('basic')?.principal ?? {}), 'standard claims')
  t.notOk('mclearance' in (lastOf('basic')?.principal ?? {}))
  await t.rejects(call(client, 'test_simple_text'), { code: 403, message: /denied by authorization policy/ })
})

await t.test('sends claims in the mpe format', async (t) => {
  await call(await connect('mpe'))
  t.match(lastOf('mpe')?.principal, { mannotations: {} })
})

await t.test('sends arguments', async (t) => {
  await call(await connect('arguments'))
  t.match(lastOf('arguments')?.context, { mcp: { args: { text: 'lodash', count: 4 } } })
})

await t.test('sends feature, operation and name', async (t) => {
  await call(await connect('operation'))
  t.match(lastOf('operation')?.context, { mcp: { feature: 'tool', operation: 'call', resource_id: 'echo' } })
})

await t.test('an unreachable decision point: the server starts, and rejects calls', async (t) => {
  await t.rejects(call(await connect('gone')), /authorization check failed: try again later/)
})
