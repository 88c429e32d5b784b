/**
 * Runs stdio servers of either era behind the bridge, with clients of either era in front of it, operation by
 * operation: real SDK clients and programs of both generations, over streamable HTTP and the deprecated HTTP+SSE
 * transport.
 */
import { EventEmitter, once } from 'node:events'
import t, { type Test } from 'tap'
import { silentLog } from '../../runtime/net/index.ts'
import { startStdioBridge } from '../../runtime/proxy/index.ts'
import { Recorder } from '../helpers/conformance/record.ts'
import {
  type ClientKind,
  connect,
  connectToProgram,
  httpClients,
  type TestClient,
} from '../helpers/mcp/clients.ts'
import {
  type Control,
  controlOf as stateOf,
  type EraCell,
  eraOperations,
} from '../helpers/mcp/era-operations.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { program } from '../helpers/gatehouse.ts'

t.setTimeout(300_000)

const clients = ['sdk1', 'sdk1-sse', 'sdk2-session', 'sdk2-stateless'] as const
const programs = ['session', 'stateless', 'both'] as const
const serverNames = {
  session: 'SDK 1 server',
  stateless: 'SDK 2 server',
  both: 'server of both eras',
} as const
const recorder = new Recorder('stdio-eras')

/** Controls the program with its own tools, and reads its reports from standard error. */
function controlOf(client: TestClient, lines: EventEmitter): Control {
  return {
    toggleTool: async () => void (await client.call('test_trigger_tool_change')),
    togglePrompt: async () => void (await client.call('test_trigger_prompt_change')),
    update: async () => void (await client.call('test_trigger_resource_update')),
    heard: (what) => once(lines, what),
  }
}

async function start(
  t: Test,
  kind: (typeof clients)[number],
  era: (typeof programs)[number],
): Promise<EraCell> {
  const lines = new EventEmitter()
  const sse = kind === 'sdk1-sse'
  const bridge = await startStdioBridge({
    command: [process.execPath, 'test/helpers/mcp/fixture-server/stdio-program.ts', era],
    env: { PATH: process.env['PATH'] ?? '' },
    cwd: process.cwd(),
    host: '127.0.0.1',
    port: 0,
    mode: sse ? 'sse' : 'streamable-http',
    log: silentLog,
    onLine: (line) => lines.emit(line.replace('fixture: ', '')),
  })
  const generation: ClientKind = sse ? 'sdk1' : kind
  const client = await connect(generation, bridge.url, { sse })
  t.teardown(async () => {
    await client.close()
    await bridge.close()
  })
  const speaks = era === 'both' || era === 'stateless' ? 'fixture-stateless' : 'fixture-session'
  t.equal(client.version()?.name, speaks)
  t.equal(client.sessionId !== undefined, kind === 'sdk1' || kind === 'sdk2-session', 'the era of the client')
  return { client, control: controlOf(client, lines) }
}

const own: Readonly<Record<string, (t: Test, cell: EraCell) => Promise<void>>> = {
  async tools(t, { client }) {
    const names = (await client.listTools()).map(({ name }) => name)
    t.ok(names.includes('test_simple_text'))
    t.match(await client.callText('test_simple_text'), 'simple text')
    t.equal(await client.callText('echo', { a: [1, { b: null }] }), '{"a":[1,{"b":null}]}')
    t.match(await client.callText('test_error_handling'), /^!/)
    await t.rejects(client.call('no_such_tool'))
  },
  ...eraOperations,
}

for (const era of programs) {
  for (const kind of clients) {
    t.test(`${kind} client, ${era} program`, { timeout: 120_000 }, async (t) => {
      const cell = await start(t, kind, era)
      const passed = recorder.addCell({
        client: httpClients[kind],
        through: 'proxy in front of a program',
        server: { name: serverNames[era], era: era === 'both' ? 'either' : era, transport: 'stdio' },
      })
      const untouched = era !== 'stateless' && kind !== 'sdk2-stateless'
      for (const [name, operation] of Object.entries(own)) {
        // Without translation, the program filters log messages itself, and this program does not filter.
        if (name === 'logging' && untouched) continue
        await t.test(name, async (t) => {
          cell.client.asked.length = 0
          await operation(t, cell)
          if (t.passing()) passed(name)
        })
      }
    })
  }
}

for (const [kind, era] of [
  ['sdk2-stateless', 'session'],
  ['sdk1', 'stateless'],
  ['sdk2-session', 'stateless'],
] as const) {
  t.test(`proxy stdio: ${kind} client, ${era} HTTP server`, { timeout: 120_000 }, async (t) => {
    const fixture = await startFixture({ era })
    const client = await connectToProgram(kind, {
      command: process.execPath,
      args: [program, 'proxy', 'stdio', fixture.url],
    })
    t.teardown(async () => {
      await client.close()
      await fixture.close()
    })
    t.equal(client.version()?.name, `fixture-${era}`)
    const cell = { client, control: stateOf(fixture.state) }
    const passed = recorder.addCell({
      client: { ...httpClients[kind], transport: 'stdio' },
      through: 'proxy stdio',
      server: { name: serverNames[era], era, transport: 'streamable HTTP' },
    })
    for (const [name, operation] of Object.entries(own)) {
      await t.test(name, async (t) => {
        client.asked.length = 0
        await operation(t, cell)
        if (t.passing()) passed(name)
      })
    }
  })
}

t.test('the conformance page shows these results', async (t) => recorder.compare(t))
