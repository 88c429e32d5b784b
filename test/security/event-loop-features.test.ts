/**
 * Hostile arguments of one caller with every feature on: policies with patterns, audit with payloads, tool search and
 * scripts. No turn of the server's event loop may be long; see watched.ts.
 */
import { join } from 'node:path'
import t from 'tap'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { openSession, post } from '../helpers/mcp/wire.ts'
import { startWatched } from '../helpers/vmcp/watched.ts'

t.setTimeout(240_000)

const filler = (n: number, text: string) => text.repeat(Math.floor(n))
const members = (n: number) =>
  `{${Array.from({ length: Math.floor(n) }, (_, i) => `"k${i}":${i}`).join(',')}}`

/** JSON objects in shapes that are slow in different places. */
const SHAPES: Readonly<Record<string, (size: number) => string>> = {
  'a text that almost matches the patterns': (n) => `{"a":"${filler(65_000 * n, 'a')}"}`,
  'one long text': (n) => `{"a":"${filler(7_000_000 * n, 'x')}"}`,
  'a text of escapes': (n) => `{"a":"${filler(1_000_000 * n, '\\u0000')}"}`,
  'a text that looks like secrets': (n) => `{"a":"${filler(200_000 * n, 'token=Bearer a@b.c eyJ.')}"}`,
  'dense lists': (n) => `{"a":[${filler(240_000 * n, '[],')}[]]}`,
  'many members': (n) => members(9_900 * n),
  'a huge number': (n) => `{"a":${filler(5_000_000 * n, '7')}}`,
}

const forbids = Array.from(
  { length: 60 },
  (_, i) =>
    `forbid(principal, action, resource) when { context has arg_a && context.arg_a like "*${'a'.repeat(60)}b${i}*" };`,
)

t.test('event loop: policies, audit, tool search and scripts block no other client', async (t) => {
  const backend = await startRawBackend({ responses: { 'tools/call': () => '{"content":[]}' } })
  t.teardown(() => backend.close())
  const { url, row } = await startWatched(t, {
    incomingAuth: {
      type: 'anonymous',
      authz: { type: 'cedar', policies: ['permit(principal, action, resource);', ...forbids] },
    },
    audit: {
      enabled: true,
      includeRequestData: true,
      includeResponseData: true,
      maxDataSize: 65_536,
      logFile: join(t.testdir(), 'audit.log'),
    },
    optimizer: {},
    codeMode: { enabled: true },
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
  })
  const { headers } = await openSession(url)
  const call = async (name: string, args: string) =>
    (
      await post(
        url,
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`,
        headers,
      )
    ).status
  const calls: Readonly<Record<string, (args: string) => Promise<number>>> = {
    'a call': (args) => call('raw_echo', args),
    'a call by tool search': (args) => call('call_tool', `{"tool_name":"raw_echo","parameters":${args}}`),
    'a search': (args) =>
      call('find_tool', `{"tool_description":"echo","tool_keywords":["x"],"more":${args}}`),
    'data of a script': (args) => call('execute_tool_script', `{"script":"return 1","data":${args}}`),
    'a call of a script': (args) =>
      call('execute_tool_script', `{"script":"return call_tool('raw_echo', **data)","data":${args}}`),
  }
  // Warms up the code that is loaded and compiled with the first call of each kind.
  for (const send of Object.values(calls)) await send('{"a":"x"}')
  for (const [shape, of] of Object.entries(SHAPES))
    for (const [what, send] of Object.entries(calls)) await row(`${what}: ${shape}`, (n) => send(of(n)))
  const words = (n: number) => `[${filler(400_000 * n, '"a b",')}"c"]`
  await row('many keywords', (n) => call('find_tool', `{"tool_description":"x","tool_keywords":${words(n)}}`))
  const task = (n: number) => filler(3_000_000 * n, 'a ')
  await row('a long task', (n) => call('find_tool', `{"tool_description":"${task(n)}"}`))
  const script = (n: number) => `return ${filler(100_000 * n, '(')}1`
  await row('a deep script', (n) => call('execute_tool_script', `{"script":"${script(n)}"}`))
})
