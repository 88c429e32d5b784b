/**
 * Stdio servers behind the bridge that exit or stop responding: every pending request gets an error with the reason,
 * the log contains it, and a server that cannot start is not restarted in a loop.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Log } from '../../../../runtime/net/index.ts'
import {
  type Fault,
  readJournal,
  type Script,
  scripted,
} from '../../../helpers/mcp/scripted-stdio-program.ts'
import { openSession, post, stateless, stream } from '../../../helpers/mcp/wire.ts'
import { until } from '../../../helpers/redis.ts'
import { bridgeTo } from './bridge/rig.ts'

t.setTimeout(120_000)

interface Logged {
  readonly message: string
  readonly fields: unknown
}

function recordingLog(): { readonly log: Log; readonly warnings: readonly Logged[] } {
  const warnings: Logged[] = []
  const ignore = (): void => undefined
  const note = (message: string, fields?: unknown): void => void warnings.push({ message, fields })
  const log = { debug: ignore, info: ignore, warn: note, error: note, child: () => log } as unknown as Log
  return { log, warnings }
}

async function bridge(t: Test, script: Partial<Script>, more = {}) {
  const folder = t.testdir({ journal: '' })
  const journal = join(folder, 'journal')
  const { log, warnings } = recordingLog()
  const lines: string[] = []
  const options = { log, onLine: (line: string) => lines.push(line), ahead: false, ...more }
  const { url, failed } = await bridgeTo(t, scripted({ journal, ...script }), options)
  return { url, failed, warnings, lines, read: () => readJournal(journal) }
}

const ends: readonly (readonly [name: string, fault: Fault, why: RegExp])[] = [
  ['exits', { do: 'exit', code: 3, stderr: ['no database'] }, /the server has stopped: exited with code 3$/],
  ['is killed', { do: 'signal', signal: 'SIGKILL' }, /the server has stopped: ended by SIGKILL$/],
  ['exits in the middle of a line', { do: 'exit mid-line' }, /the server has stopped: exited with code 3$/],
  [
    'closes its standard output',
    { do: 'close stdout' },
    /the server has stopped: closed its standard output$/,
  ],
]

for (const [name, fault, why] of ends) {
  t.test(`a server that ${name} in a call: all pending requests of the session are answered`, async (t) => {
    const on = { 'tools/call': fault, 'prompts/list': { do: 'ignore' } } as const
    const { url, warnings, read } = await bridge(t, { on })
    const session = await openSession(url)
    const pending = session.request('prompts/list')
    await until(() => read().some(({ what }) => what === 'prompts/list'))
    const call = await session.request('tools/call', { name: 'pid' })
    t.match(call.response?.error, { code: -32603, message: why })
    t.match((await pending).response?.error, { code: -32603, message: why })
    t.match(warnings.at(-1), {
      message: /a stdio server process ended on its own/,
      fields: { why: String },
    })
    await until(() => read().filter(({ what }) => what === 'end').length > 0 || fault.do === 'signal')
    const again = await openSession(url)
    t.match(again.initialized.result, { serverInfo: { name: 'scripted' } }, 'the next session works')
  })

  t.test(`a server that ${name} in a call: a stateless request is answered`, async (t) => {
    const { url } = await bridge(t, { on: { 'tools/call': fault } })
    t.match((await stateless(url, 'tools/call', { name: 'pid' })).response?.error, {
      code: -32603,
      message: why,
    })
    t.match((await stateless(url, 'tools/list')).response?.result, { tools: [{}] })
  })

  t.test(
    `a server that ${name} over the deprecated HTTP+SSE transport: the stream carries the errors and ends`,
    async (t) => {
      const { url } = await bridge(t, { on: { 'tools/call': fault } }, { mode: 'sse' })
      const events = await stream(url)
      const { params } = await events.next(({ method }) => method === 'endpoint')
      const send = (message: object) =>
        post(new URL(String(params?.['data']), url).href, JSON.stringify({ jsonrpc: '2.0', ...message }))
      await send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } })
      t.match(await events.next(), { id: 1, result: {} })
      await send({ id: 2, method: 'tools/call', params: { name: 'pid' } })
      t.match(await events.next(), { id: 2, error: { code: -32603, message: why } })
      await events.ended
    },
  )

  t.test(`a server that ${name} during initialize: the client gets an error`, async (t) => {
    const { url, failed } = await bridge(t, { on: { initialize: fault } })
    const body = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
    t.match((await post(url, body)).response, { id: 1, error: { code: -32603, message: why } })
    t.match(await failed, String(why.source.slice(0, -1).split(': ').at(-1)))
  })
}

t.test(
  'a server that closes its standard input and keeps running: pending requests fail, and it is terminated',
  async (t) => {
    const result =
      '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}'
    const script = `
    trap 'echo ended; exit' TERM
    read initialize; echo '{"jsonrpc":"2.0","id":1,"result":${result}}'
    read initialized; read call; exec <&-; echo closed
    while :; do sleep 0.1; done`
    const lines: string[] = []
    const command = ['sh', '-c', script]
    const { url } = await bridgeTo(t, [], { command, ahead: false, onLine: (line) => lines.push(line) })
    const session = await openSession(url)
    const pending = session.request('tools/call', { name: 'pid' })
    await until(() => lines.includes('closed'))
    // Only a write detects the broken pipe.
    const ping = session.request('ping')
    t.match((await pending).response?.error, { code: -32603, message: /closed its standard input$/ })
    t.match((await ping).response?.error, { code: -32603 })
  },
)

t.test('a server that exits during a stream: the stream ends with the error', async (t) => {
  const { url } = await bridge(t, { on: { 'tools/call': { do: 'exit mid-stream' } } })
  const session = await openSession(url)
  const { messages } = await session.request('tools/call', { name: 'pid' })
  t.match(messages, [
    { method: 'notifications/message' },
    { error: { code: -32603, message: /exited with code 3/ } },
  ])
})

t.test('a server that responds without a final newline and exits: the response arrives', async (t) => {
  const { url } = await bridge(t, { on: { 'tools/call': { do: 'answer without line end' } } })
  const session = await openSession(url)
  t.match((await session.request('tools/call', { name: 'pid' })).response?.result, { content: [{}] })
})

t.test(
  'a server that prints its usage and exits: the output is shown, and the reason is the exit code',
  async (t) => {
    const script = { banner: ['usage: server --token TOKEN'], exitAtStart: 2 }
    const { failed, lines, warnings } = await bridge(t, script)
    t.equal(await failed, 'exited with code 2')
    t.strictSame(lines, ['usage: server --token TOKEN'])
    t.match(warnings.at(0), { message: /not a JSON-RPC message/ })
  },
)

t.test('with showOutput, errors contain the last lines of output', async (t) => {
  const stderr = [
    ...Array.from({ length: 9 }, (_, n) => `line ${n}`),
    `\u001b[31mno database\u202e${'x'.repeat(999)}`,
  ]
  const on = { 'tools/call': { do: 'exit', code: 3, stderr } } as const
  const { url } = await bridge(t, { on }, { showOutput: true })
  const session = await openSession(url)
  const message = (await session.request('tools/call', { name: 'pid' })).response?.error?.message ?? ''
  t.match(message, /exited with code 3; it printed: line 5 \| line 6 \| line 7 \| line 8 \| .*no database/)
  t.notMatch(message, '\u001b')
  t.notMatch(message, '\u202e')
  t.ok(message.length < 800)
})

t.test('a banner of many lines causes one warning', async (t) => {
  const banner = Array.from({ length: 500 }, (_, n) => `progress ${n}`)
  const { url, warnings } = await bridge(t, { banner })
  await openSession(url)
  t.equal(warnings.filter(({ message }) => message.includes('not a JSON-RPC message')).length, 1)
})

t.test('a server that can no longer start is not restarted for every request', async (t) => {
  // It works once. Each later process finds the file and exits.
  const once = `
    const fs = require('node:fs')
    const [, journal] = process.argv
    const isFirst = fs.readFileSync(journal, 'utf8') === ''
    fs.appendFileSync(journal, JSON.stringify({ pid: process.pid, what: 'start' }) + '\\n')
    if (!isFirst) process.exit(5)
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      if (method === 'tools/call') process.exit(4)
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } } }))
    })`
  const journal = join(t.testdir({ journal: '' }), 'journal')
  const { url } = await bridgeTo(t, ['-e', once, journal], { ahead: false, now: () => 0 })
  const session = await openSession(url)
  await session.request('tools/call', { name: 'pid' })
  const body = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
  t.match((await post(url, body)).response?.error, { message: /exited with code 5/ })
  for (let n = 0; n < 5; n++) {
    const { status, response } = await post(url, body)
    t.equal(status, 503)
    t.match(response?.error, {
      message: /stopped before it responded \(exited with code 5\); it can be started again in 1 s/,
    })
  }
  t.equal(readJournal(journal).length, 2)
})

t.test('a second process that cannot run next to the first one does not end it', async (t) => {
  const alone = `
    const fs = require('node:fs')
    const [, folder] = process.argv
    try { fs.mkdirSync(folder) } catch { process.exit(9) }
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id } = JSON.parse(line)
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'alone', version: '1' } } }))
    })`
  const ended = Promise.withResolvers<string>()
  const lock = join(t.testdir({}), 'lock')
  const { url, failed } = await bridgeTo(t, ['-e', alone, lock], { onEnded: ended.resolve, now: () => 0 })
  await until(() => existsSync(lock))
  const session = await openSession(url)
  t.equal(await Promise.race([failed, ended.promise]), 'exited with code 9')
  t.match((await session.request('ping')).response, { result: {} })
  t.equal(await Promise.race([failed, Promise.resolve('still serving')]), 'still serving')
})

t.test('a server of neither era: clients and the bridge get its own error text', async (t) => {
  const script = { on: { initialize: { do: 'refuse', message: 'set API_KEY' } } } as const
  const journal = join(t.testdir({ journal: '' }), 'journal')
  const bridge = await bridgeTo(t, scripted({ journal, ...script }), { ahead: false })
  t.equal(bridge.refusal, undefined)
  const { response } = await stateless(bridge.url, 'tools/list')
  t.match(response?.error, { code: -32603, message: 'the server refused to open a session: set API_KEY' })
  t.equal(bridge.refusal, 'set API_KEY')
  const body = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
  t.match((await post(bridge.url, body)).response?.error, { code: -32050, message: 'set API_KEY' })
})
