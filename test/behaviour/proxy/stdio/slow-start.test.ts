/**
 * Stdio servers that start slowly, behind the bridge: a client that gives up never ends or multiplies the process, and
 * the first request that the server reads is `initialize`.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  type JournalEntry,
  readJournal,
  type Script,
  scripted,
} from '../../../helpers/mcp/scripted-stdio-program.ts'
import { openSession, post, stateless, statelessRequest, stream } from '../../../helpers/mcp/wire.ts'
import { until } from '../../../helpers/redis.ts'
import { bridgeTo } from './bridge/rig.ts'

t.setTimeout(120_000)

const initializeRequest = JSON.stringify({
  jsonrpc: '2.0',
  id: 7,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'probe', version: '1' } },
})
const accept = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** A bridge whose server responds only after a call of `open`. Only the first process is started ahead. */
async function slowBridge(t: Test, script: Partial<Script> = {}, more = {}, wrapper: readonly string[] = []) {
  const folder = t.testdir({ journal: '' })
  const gate = join(folder, 'gate')
  const journal = join(folder, 'journal')
  const words = scripted({ journal, gate, ...script })
  const command = wrapper.length === 0 ? words : [...wrapper, process.execPath, ...words]
  const bridge = await bridgeTo(t, command, { probeMs: 100, ahead: false, ...more })
  await until(() => readJournal(journal).length > 0)
  return {
    bridge,
    url: bridge.url,
    open: () => writeFileSync(gate, ''),
    read: (): readonly JournalEntry[] => readJournal(journal),
  }
}

/** Sends a request like a health check, with a short timeout. */
async function giveUp(url: string, body: string, headers: Record<string, string> = {}): Promise<void> {
  const signal = AbortSignal.timeout(150)
  await fetch(url, { method: 'POST', body, headers: { ...accept, ...headers }, signal }).then(
    () => Promise.reject(new Error('it was answered')),
    () => undefined,
  )
  // Later requests are handled after the disconnection above.
  for (let n = 0; n < 2; n++) await (await fetch(new URL('/health', url))).text()
}

async function giveUpDiscover(url: string): Promise<void> {
  const { body, headers } = statelessRequest('server/discover')
  await giveUp(url, body, headers)
}

function starts(entries: readonly JournalEntry[]): number {
  return entries.filter(({ what }) => what === 'start').length
}

function received(entries: readonly JournalEntry[]): readonly string[] {
  return entries.map(({ what }) => what).filter((what) => what !== 'start' && what !== 'end')
}

const kinds: readonly (readonly [string, Partial<Script>])[] = [
  ['that answers unknown methods with an error', {}],
  ['that ignores unknown methods', { on: { 'server/discover': { do: 'ignore' } } }],
  ['that exits on an unknown method', { on: { 'server/discover': { do: 'exit', code: 1 } } }],
  ['that prints a banner', { banner: ['Welcome!', '', 'usage: server [options]', '{"not":"rpc"}'] }],
  ['that begins lines with a byte order mark', { byteOrderMark: true }],
  ['of the stateless era', { era: 'stateless' }],
  ['of both eras', { era: 'both' }],
]

for (const [kind, script] of kinds) {
  t.test(`slow server ${kind}: health checks that give up leave one process`, async (t) => {
    const { url, open, read } = await slowBridge(t, script)
    for (let n = 0; n < 3; n++) await giveUpDiscover(url)
    const waiting = stateless(url, 'tools/list')
    open()
    t.match((await waiting).response?.result, { tools: [{ name: 'pid' }] })
    t.equal(starts(read()), 1, 'one process')
    t.notOk(read().some(({ what }) => what === 'end'))
    t.equal(received(read())[0], 'initialize', 'the first request')
    t.equal(received(read()).filter((what) => what === 'initialize').length, 1)
  })

  t.test(`slow server ${kind}: a session client that gives up leaves one process`, async (t) => {
    const { url, open, read } = await slowBridge(t, script)
    for (let n = 0; n < 3; n++) await giveUp(url, initializeRequest)
    const waiting = post(url, initializeRequest)
    open()
    const { response, headers } = await waiting
    t.match(response, { id: 7, result: { serverInfo: { name: 'scripted' } } })
    const session = { 'mcp-session-id': headers.get('mcp-session-id') ?? '' }
    await post(url, '{"jsonrpc":"2.0","method":"notifications/initialized"}', session)
    const call = await post(url, '{"jsonrpc":"2.0","id":8,"method":"tools/list"}', session)
    t.match(call.response, { id: 8, result: { tools: [{ name: 'pid' }] } })
    t.equal(starts(read()), 1, 'one process')
    t.equal(received(read())[0], 'initialize', 'the first request')
  })
}

t.test('slow server behind a wrapper such as npx: one process, which ends with the bridge', async (t) => {
  const run = [
    '-e',
    'require("node:child_process").spawn(process.argv[1], process.argv.slice(2), { stdio: "inherit" })',
    '--',
  ]
  const { bridge, url, open, read } = await slowBridge(t, {}, {}, run)
  for (let n = 0; n < 3; n++) await giveUpDiscover(url)
  open()
  t.match((await stateless(url, 'tools/list')).response?.result, { tools: [{}] })
  t.equal(starts(read()), 1)
  await bridge.close()
  await until(() => read().some(({ what }) => what === 'end'))
})

t.test('slow server: era detection and the first session share one process', async (t) => {
  const { url, open, read } = await slowBridge(t)
  const { body, headers } = statelessRequest('server/discover')
  const discover = body.replace('"name":"wire"', '"name":"probe"')
  t.match(discover, /"name":"probe"/)
  await giveUp(url, discover, headers)
  const waiting = post(url, discover, headers)
  open()
  t.match((await waiting).response?.result, { _meta: { 'dev.gatehouse/native-era': 'session' } })
  t.match((await post(url, initializeRequest)).response, { id: 7, result: {} })
  t.equal(starts(read()), 1)
  const other = initializeRequest.replace('"probe"', '"another"')
  t.match((await post(url, other)).response, { id: 7, result: {} })
  t.equal(starts(read()), 2, 'a second session has its own process')
})

t.test(
  "slow server: clients with a different initialize do not get the first client's process",
  async (t) => {
    const { url, open, read } = await slowBridge(t)
    await giveUp(url, initializeRequest)
    open()
    const session = await openSession(url, { capabilities: { sampling: {} } })
    t.match(session.initialized.result, { serverInfo: { name: 'scripted' } })
    t.equal(starts(read()), 2)
  },
)

t.test(
  'slow server: a process that got _meta of a session client does not serve stateless ones',
  async (t) => {
    for (const [meta, expected] of [
      ['', 1],
      ['"_meta":{"example.com/tenant":"a"},', 2],
    ] as const) {
      const { url, open, read } = await slowBridge(t)
      await giveUp(url, initializeRequest.replace('"params":{', `"params":{${meta}`))
      open()
      t.match((await stateless(url, 'tools/list')).response?.result, { tools: [{ name: 'pid' }] })
      t.equal(starts(read()), expected)
    }
  },
)

t.test('slow server: the number of processes of clients that gave up is bounded', async (t) => {
  const { url, read } = await slowBridge(t)
  for (let n = 0; n < 12; n++) await giveUp(url, initializeRequest.replace('"probe"', `"probe ${n}"`))
  await until(() => read().filter(({ what }) => what === 'end').length >= 4)
  t.equal(starts(read()), 12)
})

t.test(
  'slow server over the deprecated HTTP+SSE transport: a client that gives up leaves one process',
  async (t) => {
    const { url, open, read } = await slowBridge(t, {}, { mode: 'sse' })
    const begin = async () => {
      const events = await stream(url)
      const { params } = await events.next(({ method }) => method === 'endpoint')
      await fetch(new URL(String(params?.['data']), url), {
        method: 'POST',
        headers: accept,
        body: initializeRequest,
      })
      return events
    }
    for (let n = 0; n < 3; n++) {
      const events = await begin()
      events.close()
      await events.ended
    }
    const events = await begin()
    open()
    t.match(await events.next(), { id: 7, result: { serverInfo: { name: 'scripted' } } })
    t.equal(starts(read()), 1)
    events.close()
  },
)

t.test('a bridge reports how long its server has been starting, until the first response', async (t) => {
  const { bridge, url, open } = await slowBridge(t)
  t.equal(bridge.startingSince, undefined, 'it has received no request')
  await giveUpDiscover(url)
  t.type(bridge.startingSince, 'number')
  open()
  await stateless(url, 'tools/list')
  t.equal(bridge.startingSince, undefined)
})
