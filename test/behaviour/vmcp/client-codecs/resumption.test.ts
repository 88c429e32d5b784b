/**
 * Session streams whose connection breaks: the client resumes with its last event id and misses nothing, or does not
 * come back and its requests are cancelled.
 */
import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { ReplayBudget, ReplayStreams } from '../../../../runtime/vmcp/clients/sessions/replay.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { connect } from '../../../helpers/mcp/clients.ts'
import { openSession, stream } from '../../../helpers/mcp/wire.ts'
import { startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(180_000)

/** Reads the raw text of a response up to the expected piece, then disconnects. */
async function readUntil(url: string, init: RequestInit, wanted: RegExp): Promise<string> {
  const abort = new AbortController()
  const response = await fetch(url, { ...init, signal: abort.signal })
  let text = ''
  const decoder = new TextDecoder()
  if (response.body) {
    for await (const chunk of response.body) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      if (wanted.test(text)) break
    }
  }
  abort.abort()
  return text
}

function lastId(text: string): string {
  return [...text.matchAll(/^id: (\S+)$/gm)].at(-1)?.[1] ?? ''
}

const post = (headers: Record<string, string>, params: unknown): RequestInit => ({
  method: 'POST',
  headers: {
    ...headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  },
  body: JSON.stringify({ jsonrpc: '2.0', id: 'call', method: 'tools/call', params }),
})

t.test('a response resumes where its connection broke, without loss or duplicates', async (t) => {
  let finish: (() => void) | undefined
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ res, id, params }) => {
        const { progressToken } = params['_meta'] as { progressToken: unknown }
        const progress = (n: number) =>
          `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${String(progressToken)},"progress":${n}}}\n\n`
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(progress(1))
        finish = () => {
          res.write(progress(2))
          res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${textResult('done')}}\n\n`)
        }
        return undefined
      },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const call = { name: 'raw_echo', arguments: {}, _meta: { progressToken: 'p' } }
  const begun = await readUntil(vmcp.url, post(session.headers, call), /"progress":1/)
  const id = lastId(begun)
  t.match(id, /^\S+-\d+-1$/)
  finish?.()
  const resumed = await stream(vmcp.url, { headers: { ...session.headers, 'last-event-id': id } })
  t.match(await resumed.next(), { method: 'notifications/progress', params: { progress: 2 } })
  t.match(await resumed.next(), { id: 'call', result: { content: [{ text: 'done' }] } })
  await resumed.ended
  const again = await stream(vmcp.url, { headers: { ...session.headers, 'last-event-id': id } })
  t.match(await again.next(), { params: { progress: 2 } }, 'a lost response can be fetched again')
  await again.ended
})

t.test(
  'unsolicited messages for a disconnected client arrive when it returns, on one stream only',
  async (t) => {
    const fixture = await startFixture()
    const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
    t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
    const session = await openSession(vmcp.url)
    await session.request('resources/subscribe', { uri: 'test://watched-resource' })
    const first = await readUntil(
      vmcp.url,
      { headers: { ...session.headers, accept: 'text/event-stream' } },
      /^id: /m,
    )
    const id = lastId(first)
    t.ok(id, 'an event id is available from the start')
    fixture.state.update('test://watched-resource')
    const back = await stream(vmcp.url, { headers: { ...session.headers, 'last-event-id': id } })
    t.equal((await back.next()).method, 'notifications/resources/updated')
    const unknown = await stream(vmcp.url, { headers: { ...session.headers, 'last-event-id': 'other-1-1' } })
    t.equal(unknown.status, 200, 'an id of another replica opens a fresh stream')
    fixture.state.update('test://watched-resource')
    t.equal((await unknown.next()).method, 'notifications/resources/updated')
    t.equal(back.pending.length, 0, 'each message is sent on one stream')
    back.close()
    unknown.close()
  },
)

t.test('an event id is only valid in its own session', async (t) => {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const call = { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 1 } }
  const ada = await openSession(vmcp.url)
  const text = await readUntil(vmcp.url, post(ada.headers, call), /"progress":0/)
  const eve = await openSession(vmcp.url)
  const stolen = await stream(vmcp.url, { headers: { ...eve.headers, 'last-event-id': lastId(text) } })
  const own = await stream(vmcp.url, { headers: { ...ada.headers, 'last-event-id': lastId(text) } })
  t.match((await own.next(({ result }) => result !== undefined)).result, { content: [{ text: 'done' }] })
  t.equal(stolen.pending.length, 0)
  stolen.close()
})

t.test('a stateless response has no event ids, because that era resumes no streams', async (t) => {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const { stateless } = await import('../../../helpers/mcp/wire.ts')
  const { text, messages } = await stateless(
    vmcp.url,
    'tools/call',
    { name: 'test_tool_with_progress', arguments: {} },
    { meta: { progressToken: 1 } },
  )
  t.equal(messages.length, 4)
  t.notMatch(text, /^id:/m)
})

/** A path to the server that can be cut while requests use it. */
async function startCutter(t: { teardown(work: () => unknown): void }, url: string) {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const to = dial(Number(target.port), target.hostname)
    for (const end of [socket, to]) {
      sockets.add(end)
      end
        .on('error', () => {})
        .once('close', () => {
          sockets.delete(end)
          socket.destroy()
          to.destroy()
        })
    }
    socket.pipe(to).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    cut() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

t.test('an SDK client whose connection is cut during a call gets its result', async (t) => {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
  const cutter = await startCutter(t, vmcp.url)
  const client = await connect('sdk1', cutter.url)
  t.teardown(async () => {
    await client.close()
    await vmcp.close()
    await fixture.close()
  })
  const progress: number[] = []
  const result = await client.callText(
    'test_tool_with_progress',
    {},
    {
      onprogress({ progress: done }) {
        progress.push(done)
        if (done === 0) cutter.cut()
      },
    },
  )
  t.equal(result, 'done')
  t.same(progress, [0, 50, 100])
})

t.test('streams: buffered events are bounded per stream, per session and in total', async (t) => {
  const budget = new ReplayBudget(10_000)
  const streams = new ReplayStreams(budget)
  const one = streams.open()
  for (let i = 0; i < 1_000; i++) one.send(Buffer.alloc(1_000, 0x61))
  const two = streams.open()
  t.ok(two.send(Buffer.alloc(9_999)), 'events that cannot be buffered are still sent')
  const given: boolean[] = []
  for (let i = 0; i < 20; i++) {
    const stream = streams.open()
    stream.onAbandoned = () => void given.push(true)
  }
  t.ok(given.length >= 12, 'the oldest events are dropped')
  streams.close()
  t.ok(budget.take(10_000), 'all memory is released')
})
