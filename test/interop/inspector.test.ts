/**
 * The Inspector's command line uses a real server from npm through the proxy (both transports), through stdio, and
 * through a vMCP.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Peer, Recorder } from '../helpers/conformance/record.ts'
import { freePort, program } from '../helpers/gatehouse.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp/vmcp.ts'
import { startRig } from '../helpers/proxy/rig.ts'

const everything = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'

async function inspect(args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn('inspector', ['--cli', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}

const recorder = new Recorder('inspector')
const everythingOver = (transport: Peer['transport']): Peer => ({
  name: 'server-everything from npm',
  era: 'session',
  transport,
})
const inspectorOver = (transport: Peer['transport']): Peer => ({
  name: 'MCP Inspector',
  era: 'session',
  transport,
})

const callEcho = ['--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=inspected']

async function startEverything(t: Test, transport: 'streamableHttp' | 'sse'): Promise<string> {
  const port = await freePort()
  const server = spawn(process.execPath, [everything, transport], {
    stdio: 'ignore',
    env: { ...process.env, PORT: String(port) },
  })
  t.teardown(() => server.kill('SIGKILL'))
  while (!(await accepts(port))) await sleep(50)
  return `http://127.0.0.1:${port}`
}

function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  }).finally(() => socket.destroy()) as Promise<boolean>
}

for (const [transport, path, flag] of [
  ['streamableHttp', '/mcp', 'http'],
  ['sse', '/sse', 'sse'],
] as const) {
  t.test(`inspector: lists and calls through the proxy over ${flag}`, { timeout: 90_000 }, async (t) => {
    const rig = await startRig(await startEverything(t, transport))
    t.teardown(() => rig.close())
    const at = [`${rig.url}${path}`, '--transport', flag]
    t.match(await inspect([...at, '--method', 'tools/list']), { code: 0, output: /"echo"/ })
    t.match(await inspect([...at, ...callEcho]), { code: 0, output: /Echo: inspected/ })
    const over = flag === 'sse' ? 'HTTP+SSE' : 'streamable HTTP'
    recorder.addTested(t, {
      client: inspectorOver(over),
      through: 'proxy',
      server: everythingOver(over),
      operations: ['tools/list', 'tools/call'],
    })
  })
}

t.test('inspector: uses proxy stdio as its server', { timeout: 90_000 }, async (t) => {
  const url = await startEverything(t, 'streamableHttp')
  const command = [process.execPath, program, 'proxy', 'stdio', `${url}/mcp`]
  t.match(await inspect([...command, ...callEcho]), { code: 0, output: /Echo: inspected/ })
  recorder.addTested(t, {
    client: inspectorOver('stdio'),
    through: 'proxy stdio',
    server: everythingOver('streamable HTTP'),
    operations: ['tools/call'],
  })
})

t.test('inspector: sees a vMCP as one server', { timeout: 90_000 }, async (t) => {
  const url = await startEverything(t, 'streamableHttp')
  const server = await startTestVmcp({ one: `${url}/mcp` }, { aggregation: bareNames('one') })
  t.teardown(() => server.close())
  const at = [server.url, '--transport', 'http']
  t.match(await inspect([...at, '--method', 'tools/list']), { code: 0, output: /"echo"/ })
  t.match(await inspect([...at, ...callEcho]), { code: 0, output: /Echo: inspected/ })
  recorder.addTested(t, {
    client: inspectorOver('streamable HTTP'),
    through: 'virtual server',
    server: everythingOver('streamable HTTP'),
    operations: ['tools/list', 'tools/call'],
  })
})

t.test('the conformance page shows these results', async (t) => recorder.compare(t))
