/**
 * Hostile arguments of one caller, workflows included: no turn of the server's event loop may be long. watched.ts
 * describes the measurement; the other files in this folder cover the other inputs.
 */
import t from 'tap'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { openSession, post } from '../helpers/mcp/wire.ts'
import { startWatched } from '../helpers/vmcp/watched.ts'

t.setTimeout(240_000)

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

const rows: Readonly<
  Record<string, readonly [tool: string, args: (size: number) => string, status?: number]>
> = {
  'uniqueItems over many objects': [
    'unique',
    (n) => JSON.stringify({ l: Array.from({ length: 10_000 * n }, (_, i) => ({ a: i })) }),
  ],
  'a pattern that backtracks': ['pattern', (n) => JSON.stringify({ s: `${'a'.repeat(28 * n)}!` })],
  'a huge integer, printed': ['print', (n) => `{"n":${'7'.repeat(2_500_000 * n)}}`],
  'a loop over a long list': ['loop', () => '{}'],
  'more values than a message may hold': ['raw_echo', (n) => `{"l":[${'[],'.repeat(2_600_000 * n)}[]]}`, 400],
  'as many values as a message may hold': ['raw_echo', (n) => `{"l":[${'[],'.repeat(249_000 * n)}[]]}`],
  'as many values, for a workflow': ['print', (n) => `{"n":[${'[],'.repeat(120_000 * n)}[]]}`],
  'an unknown tool with a large body': ['nothing', (n) => `{"s":"${'x'.repeat(7_500_000 * n)}"}`],
}

t.test('event loop: no arguments of one caller block other clients', async (t) => {
  const tool = (name: string) => JSON.stringify({ name, inputSchema: { type: 'object' } })
  const list = JSON.stringify({
    content: [],
    structuredContent: { l: Array.from({ length: 250_000 }, (_, i) => i) },
  })
  const backend = await startRawBackend({
    tools: () => [tool('echo'), tool('big')],
    responses: { 'tools/call': ({ params }) => (params['name'] === 'big' ? list : '{"content":[]}') },
  })
  t.teardown(() => backend.close())
  const watched = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    compositeTools,
  })
  const { headers } = await openSession(watched.url)
  const call = (name: string, args: string) =>
    post(
      watched.url,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`,
      headers,
    )
  // Warms up the code that is loaded and compiled with the first call.
  for (const { name } of compositeTools) await call(name, '{}')
  for (const [what, [name, args, status]] of Object.entries(rows)) {
    await watched.row(what, async (size) => (await call(name, args(size))).status, status)
  }
})
