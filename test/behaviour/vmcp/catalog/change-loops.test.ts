/**
 * Backends that announce changes endlessly: lists are reread with pauses, clients are not flooded, and the loop is
 * reported.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { openSession, type RpcMessage, stateless, statelessStream } from '../../../helpers/mcp/wire.ts'
import { type RawBackendOptions, startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'
import { until } from '../../../helpers/redis.ts'

t.setTimeout(180_000)

/** A clock that makes pauses short, and on which a backend is never quiet, however slow this machine is. */
function pausesOnly() {
  const start = Date.now()
  return {
    now: () => start,
    after(ms: number, work: () => void) {
      if (ms >= 5_000) return () => {}
      const timer = setTimeout(work, ms / 20)
      return () => clearTimeout(timer)
    },
  }
}

/** Far more than the reads until the report, and far fewer than those of a loop without pauses. */
const maxReads = 40

async function rig(t: Test, options: RawBackendOptions) {
  const [bad, good] = await Promise.all([startRawBackend(options), startRawBackend()])
  const vmcp = await startTestVmcp({ bad: bad.url, good: good.url }, {}, { clock: pausesOnly() })
  t.teardown(() => Promise.all([vmcp.close(), bad.close(), good.close()]))
  const status = async () => (await (await fetch(`${vmcp.origin}/status`)).json()) as { problems: string[] }
  const reported = async (notification: string) =>
    (await status()).problems.some((line) => line.startsWith(`backend bad sends ${notification} `))
  const reads = (method: string) => bad.requests.filter((request) => request.method === method).length
  return { vmcp, bad, reported, reads }
}

function changed(kind: string): string {
  return `{"jsonrpc":"2.0","method":"notifications/${kind}/list_changed"}`
}

function isChange({ method }: RpcMessage): boolean {
  return method?.endsWith('list_changed') ?? false
}

const kinds = {
  tools: ['tools/list', '{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}'],
  resources: ['resources/list', '{"resources":[{"uri":"test://r","name":"r"}]}'],
  prompts: ['prompts/list', '{"prompts":[{"name":"p"}]}'],
} as const

for (const [kind, [method, list]] of Object.entries(kinds)) {
  t.test(`${kind}: a change on the stream after each list`, async (t) => {
    const { vmcp, bad, reported, reads } = await rig(t, {
      capabilities:
        '{"tools":{"listChanged":true},"resources":{"listChanged":true},"prompts":{"listChanged":true}}',
      responses: {
        [method]: () => {
          setImmediate(() => bad.push(changed(kind)))
          return list
        },
      },
    })
    const session = await openSession(vmcp.url)
    const stream = await session.listen()
    await session.request(method)
    await until(() => reported('list_changed'))
    t.ok(reads(method) < maxReads, `${reads(method)} reads`)
    t.same(stream.pending.filter(isChange), [], 'nothing changed for the client')
    t.match((await session.request('tools/call', { name: 'good_echo' })).response?.result, { content: [{}] })
    stream.close()
  })
}

/** Sends a notification before a response, on the response's stream. */
function answerWith(res: ServerResponse, id: string, notification: string, result: string): undefined {
  const event = (message: string) => `data: ${message}\n\n`
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.end(event(notification) + event(`{"jsonrpc":"2.0","id":${id},"result":${result}}`))
}

t.test('a change on the response stream of each list, with another list each time', async (t) => {
  let turn = 0
  const { vmcp, reported, reads } = await rig(t, {
    responses: {
      'tools/list': ({ id, res }) =>
        answerWith(
          res,
          id,
          changed('tools'),
          `{"tools":[{"name":"tool${turn++ % 2}","inputSchema":{"type":"object"}}]}`,
        ),
    },
  })
  const session = await openSession(vmcp.url)
  const stream = await session.listen()
  await session.request('tools/list')
  await until(() => reported('list_changed'))
  t.ok(reads('tools/list') < maxReads, `${reads('tools/list')} reads`)
  t.ok(stream.pending.filter(isChange).length < maxReads, 'the client gets few notifications')
  stream.close()
})

t.test('a change on the own connection of a session with each list and call', async (t) => {
  const { vmcp, reported, reads } = await rig(t, {
    responses: {
      'tools/list': ({ id, res }) => answerWith(res, id, changed('tools'), kinds.tools[1]),
      'tools/call': ({ id, res }) => answerWith(res, id, changed('tools'), textResult('done')),
    },
  })
  const sessions = await Promise.all([1, 2, 3].map(() => openSession(vmcp.url)))
  const streams = await Promise.all(sessions.map((session) => session.listen()))
  for (const session of sessions) {
    await session.request('tools/list')
    t.match((await session.request('tools/call', { name: 'bad_echo' })).text, 'done')
  }
  await until(() => reported('list_changed'))
  t.ok(reads('tools/list') < 4 * maxReads, `${reads('tools/list')} reads`)
  for (const stream of streams) stream.close()
})

t.test('a tool that was announced during a pause can be called by its name', async (t) => {
  let [now, count] = [Date.now(), 1]
  const clock = { now: () => now, after: () => () => {} }
  const tool = (i: number) => `{"name":"tool${i}","inputSchema":{"type":"object"}}`
  const backend = await startRawBackend({
    capabilities: '{"tools":{"listChanged":true}}',
    tools: () => Array.from({ length: count }, (_, i) => tool(i)),
  })
  const vmcp = await startTestVmcp({ a: backend.url }, {}, { clock })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const reads = () => backend.requests.filter(({ method }) => method === 'tools/list').length
  const session = await openSession(vmcp.url)
  const stream = await session.listen()
  await session.request('tools/list')
  await until(() => backend.streams.size > 0)
  for (let i = 0; i < 11; i++) {
    now += i === 10 ? 1_000 : 100
    const before = reads()
    backend.push(changed('tools'))
    await until(() => reads() > before)
  }
  const call = async (name: string) =>
    (await stateless(vmcp.url, 'tools/call', { name, arguments: {} })).response
  count = 2
  backend.push(changed('tools'))
  now += 1_000
  await until(async () => (await call('a_tool1'))?.result !== undefined)
  const before = reads()
  backend.push(changed('tools'))
  for (let i = 0; i < 5; i++) t.match((await call('a_none'))?.error, { code: -32602 })
  t.equal(reads(), before, 'unknown names cause no reads in the second after a read')
  stream.close()
})

/** Turns a raw backend into a stateless one that announces a change after each list. */
function statelessLoop(): { before: NonNullable<RawBackendOptions['before']>; lists: () => number } {
  const streams = new Set<ServerResponse>()
  let lists = 0
  const before = (_req: IncomingMessage, res: ServerResponse, body: string): boolean => {
    const { id, method } = JSON.parse(body || '{}') as { id?: unknown; method?: string }
    const send = (result: object) =>
      void res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }))
    const event = (message: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`
    const meta = { 'io.modelcontextprotocol/subscriptionId': id }
    if (method === 'server/discover')
      send({ supportedVersions: ['2026-07-28'], capabilities: { tools: { listChanged: true } } })
    else if (method === 'tools/list') {
      lists++
      send({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] })
      for (const stream of streams)
        stream.write(event({ method: 'notifications/tools/list_changed', params: {} }))
    } else if (method === 'subscriptions/listen') {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      const params = { _meta: meta, notifications: { toolsListChanged: true } }
      res.write(event({ method: 'notifications/subscriptions/acknowledged', params }))
      streams.add(res)
      res.once('close', () => streams.delete(res))
    } else res.writeHead(404).end()
    return true
  }
  return { before, lists: () => lists }
}

t.test('a backend of the stateless era: a change on its stream after each list', async (t) => {
  const { before, lists } = statelessLoop()
  const { vmcp, reported } = await rig(t, { before })
  const listener = await statelessStream(vmcp.url, 'subscriptions/listen', {
    notifications: { toolsListChanged: true },
  })
  await listener.next()
  await until(() => reported('list_changed'))
  t.ok(lists() > 0 && lists() < maxReads, `${lists()} reads`)
  t.same(listener.pending, [], 'nothing changed for the client')
  listener.close()
})

for (const era of ['session', 'stateless'] as const) {
  t.test(`endless resources/updated: ${era} clients get few of them`, async (t) => {
    const { vmcp, bad, reported } = await rig(t, {
      capabilities: '{"tools":{},"resources":{"subscribe":true}}',
      responses: { 'resources/list': () => kinds.resources[1], 'resources/subscribe': () => '{}' },
    })
    const client = await openSession(vmcp.url)
    const stream =
      era === 'session'
        ? await client.listen()
        : await statelessStream(vmcp.url, 'subscriptions/listen', {
            notifications: { resourceSubscriptions: ['test://r'] },
          })
    if (era === 'session') await client.request('resources/subscribe', { uri: 'test://r' })
    else await stream.next()
    let sent = 0
    const flood = setInterval(() => {
      for (let i = 0; i < 20; i++) {
        sent++
        bad.push('{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://r"}}')
        bad.push(
          `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://${sent}"}}`,
        )
      }
    }, 5)
    t.teardown(() => clearInterval(flood))
    await until(() => reported('resources/updated'))
    clearInterval(flood)
    const heard = () => stream.pending.filter(({ method }) => method === 'notifications/resources/updated')
    t.ok(heard().length > 0 && heard().length < Math.min(400, sent / 2), `${heard().length} of ${sent}`)
    t.ok(heard().every(({ params }) => params?.['uri'] === 'test://r'))
    stream.close()
  })
}
