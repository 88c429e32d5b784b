/**
 * Tests a proxy with an external decision point in front of one server, and the output of `gatehouse explain` for it.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { servingCertificate } from '../hooks/serving-certificate.ts'
import { stringify } from 'yaml'
import { runGatehouse, startGatehouse } from '../helpers/gatehouse.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { startAuthzenPoint } from '../helpers/decisions/authzen-point.ts'
import { startDecisionPoint } from '../helpers/decisions/decision-point.ts'

async function throughProxy(t: Test, authz: object): Promise<void> {
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  const file = join(t.testdir({}), 'runconfig.yaml')
  writeFileSync(file, stringify({ name: 'asked', targetUri: new URL(fixture.url).origin, authz }))
  const proxy = startGatehouse(['proxy', '--config', file, '--host', '127.0.0.1', '--port', '0', 'asked'])
  t.teardown(() => proxy.interrupt())
  const [, port] = await proxy.waitFor(/on port (\d+)/)
  const client = new Client({ name: 'asked', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)))
  const { tools } = await client.listTools()
  t.same(
    tools.map(({ name }) => name),
    ['echo'],
  )
  t.match(await client.callTool({ name: 'echo' }), { content: [{ type: 'text' }] })
  await t.rejects(client.callTool({ name: 'test_simple_text' }), /denied by authorization policy/)
  await client.close()
}

t.test('proxy --config: the decision point controls calls and lists', { timeout: 60_000 }, async (t) => {
  const point = await startDecisionPoint(({ resource }) => resource === 'mrn:mcp:asked:tool:echo')
  t.teardown(() => point.close())
  await throughProxy(t, { type: 'httpv1', httpv1: { http: { url: point.url }, claimMapping: 'standard' } })
})

t.test(
  'proxy --config: a decision point that speaks AuthZEN controls calls and lists',
  { timeout: 60_000 },
  async (t) => {
    const point = await startAuthzenPoint(({ resource }) => resource.properties['name'] === 'echo')
    t.teardown(() => point.close())
    await throughProxy(t, { type: 'authzenv1', authzenv1: { http: { url: point.url } } })
    t.match(point.asked[0], { path: '/access/v1/evaluations' })
    t.match(point.asked[1], {
      path: '/access/v1/evaluation',
      body: { action: { name: 'tools/call' }, resource: { type: 'tool', id: 'asked/asked/echo' } },
    })
  },
)

t.test('explain names the decision point and the request to it', async (t) => {
  const example = join(import.meta.dirname, '../../manifests/examples/decision-point/decision-point.yaml')
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'decision-point-client' },
    stringData: servingCertificate,
  }
  const authority = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'company-ca' },
    data: { 'ca.crt': 'x' },
  }
  const tools = [{ name: 'deploy', inputSchema: { type: 'object' } }]
  const dir = t.testdir({
    'secret.yaml': stringify(secret),
    'authority.yaml': stringify(authority),
    'state.yaml': stringify({ backends: { deployments: { tools, health: 'healthy' } } }),
  })
  const files = [
    '-f',
    example,
    '-f',
    join(dir, 'secret.yaml'),
    '-f',
    join(dir, 'authority.yaml'),
    '--state',
    join(dir, 'state.yaml'),
  ]
  const { stdout, code } = await runGatehouse([
    'explain',
    ...files,
    ...['--claims', '{"sub":"ada","groups":["ops"]}', '--tool', 'deployments_deploy'],
  ])
  t.equal(code, 1, 'the result is uncertain')
  t.match(stdout, /the external decision point decides/)
  t.match(stdout, 'https://pdp.authz.svc:8443/decision')
  t.match(stdout, '"principal":{"sub":"ada","groups":["ops"]},"operation":"mcp:tool:call"')
  t.match(stdout, '"gatehouse":{"backend":"deployments","original":"deploy"}')
})

t.test('explain and validate support a decision point that speaks AuthZEN', async (t) => {
  const kind = (name: string, metadata: string, spec: object) =>
    stringify({ apiVersion: 'gatehouse.dev/v1beta1', kind: name, metadata: { name: metadata }, spec })
  const authzenv1 = { http: { url: 'https://pdp.example.com/' }, context: { includeArgs: true } }
  const entry = {
    groupRef: { name: 'all' },
    remoteUrl: 'https://files.example.com/mcp',
    transport: 'streamable-http',
  }
  const dir = t.testdir({
    'manifests.yaml': [
      kind('MCPGroup', 'all', {}),
      kind('MCPServerEntry', 'files', entry),
      kind('VirtualMCPServer', 'platform', {
        groupRef: { name: 'all' },
        incomingAuth: { type: 'anonymous', authzConfig: { type: 'authzenv1', authzenv1 } },
      }),
    ].join('---\n'),
    'state.yaml': stringify({
      backends: { files: { tools: [{ name: 'read', inputSchema: { type: 'object' } }], health: 'healthy' } },
    }),
  })
  const file = join(dir, 'manifests.yaml')
  t.equal((await runGatehouse(['validate', '-f', file])).code, 0)
  const { stdout, code } = await runGatehouse([
    'explain',
    ...['-f', file, '--state', join(dir, 'state.yaml')],
    ...['--claims', '{"sub":"ada","groups":["ops"]}', '--tool', 'files_read', '--args', '{"path":"a"}'],
  ])
  t.equal(code, 1)
  t.match(stdout, 'https://pdp.example.com/access/v1/evaluation')
  t.match(
    stdout,
    '{"subject":{"type":"user","id":"ada","properties":{"groups":["ops"]}},"action":{"name":"tools/call"},' +
      '"resource":{"type":"tool","id":"platform/files/read","properties":{"name":"files_read","backend":"files","original":"read"}},' +
      '"context":{"server":"platform","arguments":{"path":"a"}}}',
  )
})
