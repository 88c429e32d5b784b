/** A proxy with policies, a tool filter and an audit log in its file enforces all three in front of a real server. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { stringify } from 'yaml'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { startGatehouse } from '../helpers/gatehouse.ts'

/** Capabilities that pass through a proxy that reads every message. */
const offered: ReadonlySet<string> = new Set(['tools', 'resources', 'prompts', 'logging', 'completions'])

t.test('proxy --config: enforces policies, filters and audit', { timeout: 60_000 }, async (t) => {
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  const dir = t.testdir({})
  const logFile = join(dir, 'audit.log')
  const file = join(dir, 'runconfig.yaml')
  writeFileSync(
    file,
    stringify({
      name: 'deep',
      targetUri: new URL(fixture.url).origin,
      host: '127.0.0.1',
      port: 8080,
      authz: {
        type: 'cedar',
        policies: [
          'permit(principal, action, resource);',
          'forbid(principal, action == Action::"call_tool", resource == Tool::"test_image_content");',
        ],
      },
      tools: { filter: ['test_simple_text', 'test_image_content'] },
      audit: { enabled: true, logFile },
    }),
  )
  const proxy = startGatehouse(['proxy', '--config', file, '--port', '0', 'deep'])
  t.teardown(() => proxy.interrupt())
  const [, port] = await proxy.waitFor(/on port (\d+)/)
  const client = new Client({ name: 'deep', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)))
  const direct = new Client({ name: 'direct', version: '1' })
  await direct.connect(new StreamableHTTPClientTransport(new URL(fixture.url)))
  const own = Object.keys(direct.getServerCapabilities() ?? {}).filter((name) => offered.has(name))
  await direct.close()
  t.same(
    Object.keys(client.getServerCapabilities() ?? {}).sort(),
    own.sort(),
    'only capabilities of the server',
  )
  const { tools } = await client.listTools()
  t.same(
    tools.map(({ name }) => name),
    ['test_simple_text'],
    'the filter and the policy apply to the list',
  )
  t.match(await client.callTool({ name: 'test_simple_text' }), { content: [{ type: 'text' }] })
  await t.rejects(client.callTool({ name: 'test_image_content' }), /denied|403/)
  await client.close()
  await proxy.interrupt()
  const lines = readFileSync(logFile, 'utf8').trim().split('\n')
  const events = lines.map((line) => JSON.parse(line) as { type: string; outcome: string })
  t.ok(events.some(({ type, outcome }) => type === 'mcp_tool_call' && outcome === 'success'))
  t.ok(events.some(({ type, outcome }) => type === 'mcp_tool_call' && outcome === 'denied'))
})
