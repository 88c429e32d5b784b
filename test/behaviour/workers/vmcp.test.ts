/** A virtual server with several processes: the state of one process takes effect in all of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { openSession, post, stateless, stream, type WireSession } from '../../helpers/mcp/wire.ts'
import { startSessionTaskServer } from '../../helpers/conformance/task-servers.ts'
import { tasksOn } from '../../helpers/mcp/tasks/clients.ts'
import { bareNames } from '../../helpers/vmcp/vmcp.ts'
import { nextWorker, startServed } from '../../helpers/workers/served.ts'

const able = { elicitation: {}, sampling: {}, roots: {} }
const question = { name: 'test_elicitation', arguments: { message: 'who?' } }
const accepted = { action: 'accept', content: { username: 'ada', email: 'ada@example.com' } }
const slowMs = 1_500

t.setTimeout(240_000)

/** A backend whose calls take as long as their argument. */
const startSlow = () =>
  startRawBackend({
    responses: {
      'tools/call': async ({ params }) => {
        const { ms = 0 } = params['arguments'] as { ms?: number }
        await sleep(ms)
        return textResult('done')
      },
    },
  })

function call(session: WireSession, name: string, args: unknown = {}) {
  return session.request('tools/call', { name, arguments: args })
}

t.test('sessions, quotas, metrics and audit are shared by all processes', async (t) => {
  const backend = await startSlow()
  t.teardown(() => backend.close())
  const served = await startServed(
    t,
    { raw: backend.url },
    {
      workers: 2,
      more: {
        telemetry: { enablePrometheusMetricsPath: true, metricsEnabled: true },
        quotas: [{ name: 'calls', limit: 5, window: 'hour', per: 'server' }],
      },
      flags: ['--enable-audit'],
    },
  )
  const session = await openSession(served.url, { headers: nextWorker })
  const texts = []
  for (let i = 0; i < 8; i++) texts.push((await call(session, 'raw_echo')).text)
  t.equal(
    texts.filter((text) => text.includes('done')).length,
    5,
    'the quota is counted once for all processes',
  )
  t.equal(
    new Set(backend.requests.flatMap(({ method, req }) => (method === 'tools/call' ? req.socket : []))).size,
    2,
  )
  const called = backend.requests.filter(({ method }) => method === 'tools/call')
  t.equal(new Set(called.map(({ headers }) => headers['mcp-session-id'])).size, 1, 'of one session')

  const scrape = async () => (await fetch(`${served.origin}/metrics`, { headers: nextWorker })).text()
  const calls = /^gatehouse_mcp_requests_total\{[^}]*mcp_method="tools\/call"[^}]*\} (\d+)$/gm
  const total = (page: string) => [...page.matchAll(calls)].reduce((sum, [, value]) => sum + Number(value), 0)
  t.same([total(await scrape()), total(await scrape())], [8, 8], 'at every process')
  process.kill(served.pids()[0] ?? 0, 'SIGKILL')
  await served.run.waitFor(/a worker exited unexpectedly and is being replaced/)
  t.equal(total(await scrape()), 8, 'counters of a dead process are kept')

  t.equal((await session.end()).status, 200)
  for (let i = 0; i < 3; i++) t.equal((await session.request('ping')).status, 404, 'ended everywhere')
  t.equal(await served.run.interrupt(), 0)
  const audited = served.run
    .output()
    .split('\n')
    .filter((line) => line.includes('"audit_id"') || line.includes('auditId'))
  t.equal(audited.filter((line) => JSON.parse(line).type === 'mcp_tool_call').length, 8)
})

t.test('elicitation: the response reaches another process, in both eras', async (t) => {
  const fixture = await startFixture({ era: 'session' })
  t.teardown(() => fixture.close())
  const served = await startServed(
    t,
    { fixture: fixture.url },
    { workers: 2, more: { aggregation: bareNames('fixture') } },
  )
  const headers = { ...nextWorker, origin: served.origin }
  const session = await openSession(served.url, { capabilities: able, headers })
  const owners = new Set<unknown>()
  for (let i = 0; i < 3; i++) {
    const asking = await session.open('tools/call', question)
    const { id } = await asking.next(({ method }) => method === 'elicitation/create')
    owners.add(String(id).split('.')[0])
    const taken = await session.response(id, accepted)
    t.equal(taken.status, 202)
    t.equal(
      taken.headers.get('access-control-allow-origin'),
      served.origin,
      'once, whichever process responds',
    )
    const { result } = await asking.next((message) => message.result !== undefined)
    t.match(result, { content: [{ text: /ada@example.com/ }] })
    // Every second call starts at the other process.
    if (i === 0) await session.request('ping')
  }
  t.ok(owners.size === 2, 'both processes have asked')

  const options = { capabilities: able, headers: nextWorker }
  for (let i = 0; i < 3; i++) {
    const asked = await stateless(served.url, 'tools/call', question, options)
    const { inputRequests = {}, requestState } = asked.response?.result ?? {}
    const inputResponses = Object.fromEntries(
      Object.keys(inputRequests as object).map((key) => [key, accepted]),
    )
    const again = { ...question, inputResponses, requestState }
    const done = await stateless(served.url, 'tools/call', again, options)
    t.match(done.response?.result, { resultType: 'complete', content: [{ text: /ada@example.com/ }] })
    t.match(await stateless(served.url, 'tools/call', again, options), { status: 400 }, 'accepted once')
    if (i === 0) await fetch(`${served.origin}/health`, { headers: nextWorker })
  }
})

t.test('streams: messages for a session arrive wherever its stream is open', async (t) => {
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  const served = await startServed(
    t,
    { fixture: fixture.url },
    { workers: 2, more: { aggregation: bareNames('fixture') } },
  )
  const session = await openSession(served.url, { capabilities: able, headers: nextWorker })
  for (let i = 0; i < 2; i++) {
    const open = await session.listen()
    await session.request('resources/subscribe', { uri: 'test://watched-resource' })
    fixture.state.update('test://watched-resource')
    const { params } = await open.next(({ method }) => method === 'notifications/resources/updated')
    t.equal(params?.['uri'], 'test://watched-resource')
    open.close()
    // The next stream opens at the other process.
    if (i === 0) await session.request('ping')
  }
})

t.test('the deprecated HTTP+SSE transport: messages reach the stream', async (t) => {
  const backend = await startSlow()
  t.teardown(() => backend.close())
  const served = await startServed(t, { raw: backend.url }, { workers: 2, flags: ['--enable-audit'] })
  const events = await stream(`${served.origin}/sse`, { headers: nextWorker })
  const { params } = await events.next(({ method }) => method === 'endpoint')
  const endpoint = `${served.origin}${String(params?.['data'])}`
  const send = (id: number, method: string, params: unknown) =>
    post(endpoint, JSON.stringify({ jsonrpc: '2.0', id, method, params }), nextWorker)
  const clientInfo = { name: 'old', version: '1' }
  await send(1, 'initialize', { protocolVersion: '2024-11-05', capabilities: {}, clientInfo })
  await events.next(({ id }) => id === 1)
  for (let id = 2; id < 6; id++) {
    t.equal((await send(id, 'tools/call', { name: 'raw_echo', arguments: {} })).status, 202)
    t.match((await events.next((message) => message.id === id)).result, { content: [{ text: 'done' }] })
  }
  events.close()
  await served.run.interrupt()
  const audited = served.run
    .output()
    .split('\n')
    .filter((line) => line.includes('mcp_tool_call'))
  t.equal(audited.length, 4, 'one line for each request, at every process')
  for (const line of audited) t.match(line, '"127.0.0.1"')
})

t.test('cancellation and resumption reach the process of the call', async (t) => {
  const backend = await startSlow()
  t.teardown(() => backend.close())
  const served = await startServed(t, { raw: backend.url }, { workers: 2 })
  const session = await openSession(served.url, { headers: nextWorker })
  const ids = ['c1', 'c2']
  for (const id of ids) {
    const body = {
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'raw_echo', arguments: { ms: 20_000 } },
    }
    const pending = post(session.url, JSON.stringify(body), session.headers)
    while (!backend.requests.some((request) => request.body.includes('20000') && !request.res.destroyed))
      await sleep(20)
    await session.notify('notifications/cancelled', { requestId: id })
    const { messages } = await pending
    t.same(messages, [], 'a cancelled request has no response')
    backend.requests.length = 0
  }

  for (let i = 0; i < 2; i++) {
    const opened = await fetch(session.url, {
      headers: { ...session.headers, accept: 'text/event-stream' },
    })
    const reader = opened.body?.getReader()
    const first = new TextDecoder().decode((await reader?.read())?.value)
    await reader?.cancel()
    const id = /^id: (\S+)$/m.exec(first)?.[1] ?? ''
    t.match(id, /^w\d+\./)
    // The next connection goes to the other process.
    const resumed = await stream(session.url, { headers: { ...session.headers, 'last-event-id': id } })
    t.equal(resumed.status, 200)
    await sleep(100)
    t.equal(resumed.pending.length, 0)
    resumed.close()
    if (i === 0) await session.request('ping')
  }
})

t.test('a killed process: its calls fail, the session continues', async (t) => {
  const backend = await startSlow()
  t.teardown(() => backend.close())
  const served = await startServed(t, { raw: backend.url }, { workers: 2 })
  const session = await openSession(served.url, { headers: nextWorker })
  const slow = [1, 2].map(() => call(session, 'raw_echo', { ms: slowMs }))
  while (backend.requests.filter(({ method }) => method === 'tools/call').length < 2) await sleep(20)
  process.kill(served.pids()[0] ?? 0, 'SIGKILL')
  const ends = await Promise.allSettled(slow)
  t.same(ends.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  for (let i = 0; i < 4; i++) t.match((await call(session, 'raw_echo')).text, 'done')
  while (served.pids().length < 2) await sleep(50)
  for (let i = 0; i < 4; i++) t.match((await call(session, 'raw_echo')).text, 'done')
})

t.test(
  'a changed file takes effect in all processes, and a graceful shutdown answers calls in flight',
  async (t) => {
    const [one, two] = await Promise.all([startSlow(), startSlow()])
    t.teardown(() => Promise.all([one.close(), two.close()]))
    const more = { operational: { workers: 2 } }
    const served = await startServed(t, { one: one.url }, { more })
    const session = await openSession(served.url, { headers: nextWorker })
    t.notMatch((await session.request('tools/list')).text, 'two_echo')
    served.write({ one: one.url, two: two.url })
    let seen = 0
    while (seen < 4) seen = (await session.request('tools/list')).text.includes('two_echo') ? seen + 1 : 0
    served.write({ one: one.url, two: two.url }, { operational: { workers: 3 } })
    await served.run.waitFor(/"sections":\["operational.workers"\]/)
    const slow = [1, 2].map(() => call(session, 'one_echo', { ms: slowMs }))
    while (one.requests.filter(({ method }) => method === 'tools/call').length < 2) await sleep(20)
    const ended = served.run.interrupt()
    for (const { text } of await Promise.all(slow)) t.match(text, 'done')
    t.equal(await ended, 0)
  },
)

t.test('tasks: another process returns the state and the result', async (t) => {
  const backend = await startSessionTaskServer()
  t.teardown(() => backend.close())
  const served = await startServed(
    t,
    { b: backend.url },
    { workers: 2, more: { aggregation: bareNames('b'), ...tasksOn() } },
  )
  const session = await openSession(served.url, { capabilities: { tasks: {} }, headers: nextWorker })
  for (let i = 0; i < 3; i++) {
    const created = await session.request('tools/call', {
      name: 'slow_compute',
      arguments: { seconds: 0.2, label: 'shared' },
      task: { ttl: 60_000 },
    })
    const taskId = /"taskId":"([^"]+)"/.exec(created.text)?.[1]
    const read = await session.request('tasks/get', { taskId })
    t.match(read.response?.result, { taskId })
    t.match((await session.request('tasks/result', { taskId })).text, /shared/)
    // Every second call starts at the other process.
    if (i === 0) await session.request('ping')
  }
})
