/**
 * Runs every client era with every backend era, operation by operation: both generations of the SDK as clients, both as
 * backends, and the deprecated HTTP+SSE transport on either side, through one virtual server.
 */
import t, { type Test } from 'tap'
import { type Peer, Recorder } from '../helpers/conformance/record.ts'
import { type ClientKind, connect, httpClients } from '../helpers/mcp/clients.ts'
import { controlOf, type EraCell, eraOperations } from '../helpers/mcp/era-operations.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { proves } from '../helpers/proves.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp/vmcp.ts'

t.setTimeout(300_000)

proves('3.service.one-server', '3.endpoint.transports', '3.config.backends.transport', '3.config.name')

const clients = ['sdk1', 'sdk1-sse', 'sdk2-session', 'sdk2-stateless'] as const
const servers = {
  session: { name: 'SDK 1 server', era: 'session', transport: 'streamable HTTP' },
  stateless: { name: 'SDK 2 server', era: 'stateless', transport: 'streamable HTTP' },
  sse: { name: 'SDK 1 server', era: 'session', transport: 'HTTP+SSE' },
} as const satisfies Record<string, Peer>
const backends = ['session', 'stateless', 'sse'] as const
const recorder = new Recorder('vmcp-eras')

async function start(
  t: Test,
  kind: (typeof clients)[number],
  backend: (typeof backends)[number],
  crowd: number,
): Promise<EraCell> {
  const fixture = await startFixture({ era: backend === 'stateless' ? 'stateless' : 'session' })
  fixture.state.crowd = crowd
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
  return { client, control: controlOf(fixture.state) }
}

const operations: Readonly<Record<string, (t: Test, cell: EraCell) => Promise<void>>> = {
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
  ...eraOperations,
  async pagination(t, { client }) {
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
    t.equal(new Set(names).size, names.length, 'no message arrives twice')
    t.same(names, names.toSorted())
    await t.rejects(client.toolPage('not-a-cursor'))
  },
}

for (const backend of backends) {
  for (const kind of clients) {
    t.test(`${kind} client, ${backend} backend`, { timeout: 120_000 }, async (t) => {
      const passed = recorder.addCell({
        client: httpClients[kind],
        through: 'virtual server',
        server: servers[backend],
      })
      for (const [name, operation] of Object.entries(operations)) {
        await t.test(`${name}: behaves like a native server`, async (t) => {
          await operation(t, await start(t, kind, backend, name === 'pagination' ? 2_300 : 0))
          if (t.passing()) passed(name)
        })
      }
    })
  }
}

t.test('the conformance page shows these results', async (t) => recorder.compare(t))
