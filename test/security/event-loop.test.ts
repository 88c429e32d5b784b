/**
 * Hostile inputs of one caller against a server in a process of its own: no turn of its event loop is long. Measured in
 * CPU time of the main thread, in proportion to what a fixed piece of work costs in that process at that time, so that a
 * busy machine changes nothing.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { openSession, post } from '../helpers/mcp/wire.ts'

t.setTimeout(240_000)

/** Longest turn, and what the yardstick of turn-watch.ts costs on the machine for which that is said; microseconds. */
const LONGEST_US = 50_000
const YARD_US = 10_000

const steps = [{ id: 'a', tool: 'raw.echo', arguments: {} }]
const big = { id: 'b', tool: 'raw.big', arguments: {} }
const compositeTools = [
  {
    name: 'unique',
    steps,
    parameters: { type: 'object', properties: { l: { type: 'array', uniqueItems: true } } },
  },
  {
    name: 'pattern',
    steps,
    parameters: { type: 'object', properties: { s: { type: 'string', pattern: '^(a+)+$' } } },
  },
  { name: 'print', steps: [{ id: 'a', tool: 'raw.echo', arguments: { s: '{{.params.n}} x' } }] },
  {
    name: 'loop',
    steps: [
      big,
      {
        id: 'f',
        type: 'forEach',
        dependsOn: ['b'],
        collection: '[1,2,3,4,5]',
        step: { tool: 'raw.echo', arguments: { s: 'x{{json .steps.b.output}}' } },
      },
    ],
  },
]

const rows: Readonly<Record<string, readonly [tool: string, args: string, status?: number]>> = {
  'uniqueItems over many objects': [
    'unique',
    JSON.stringify({ l: Array.from({ length: 10_000 }, (_, i) => ({ a: i })) }),
  ],
  'a pattern that backtracks': ['pattern', JSON.stringify({ s: `${'a'.repeat(28)}!` })],
  'a huge integer, printed': ['print', `{"n":${'7'.repeat(2_500_000)}}`],
  'a loop over a long list': ['loop', '{}'],
  'more values than a message may hold': ['raw_echo', `{"l":[${'[],'.repeat(2_600_000)}[]]}`, 400],
  'as many values as a message may hold': ['raw_echo', `{"l":[${'[],'.repeat(249_000)}[]]}`],
  'as many values, for a workflow': ['print', `{"n":[${'[],'.repeat(120_000)}[]]}`],
  'an unknown tool with a large body': ['nothing', `{"s":"${'x'.repeat(7_500_000)}"}`],
}

t.test('event loop: no input of one caller keeps the server from others', async (t) => {
  const tool = (name: string) => JSON.stringify({ name, inputSchema: { type: 'object' } })
  const list = JSON.stringify({
    content: [],
    structuredContent: { l: Array.from({ length: 250_000 }, (_, i) => i) },
  })
  const backend = await startRawBackend({
    tools: () => [tool('echo'), tool('big')],
    responses: { 'tools/call': ({ params }) => (params['name'] === 'big' ? list : '{"content":[]}') },
  })
  const config = JSON.stringify({
    name: 'x',
    groupRef: 'g',
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline' },
    aggregation: {},
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    compositeTools,
  })
  const file = join(t.testdir({ 'vmcp.yaml': config }), 'vmcp.yaml')
  const watch = ['--import', './test/helpers/turn-watch.ts']
  const serve = ['runtime/cli/main.ts', 'vmcp', 'serve', '-c', file, '--port', '0']
  const child = spawn(process.execPath, [...watch, ...serve], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await backend.close()
  })
  let log = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text))
  let url: string | undefined
  while (!url) {
    if (child.stderr) await once(child.stderr, 'data')
    url = /"url":"([^"]+\/mcp)"/.exec(log)?.[1]
  }
  const tell = async (message: { watch: boolean }): Promise<{ longestUs: number; yardUs: number }> => {
    child.send(message)
    const [reply] = await once(child, 'message')
    return reply
  }
  const { headers } = await openSession(url)
  const call = (name: string, args: string) =>
    post(
      url,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`,
      headers,
    )
  // Once for what is loaded and compiled with the first call.
  for (const { name } of compositeTools) await call(name, '{}')
  for (const [what, [name, args, expected = 200]] of Object.entries(rows)) {
    await tell({ watch: true })
    const { status } = await call(name, args)
    const { longestUs, yardUs } = await tell({ watch: false })
    t.equal(status, expected, what)
    const allowed = LONGEST_US * Math.max(1, yardUs / YARD_US)
    t.ok(longestUs < allowed, `${what}: ${longestUs} of ${Math.round(allowed)} us`)
  }
})
