/** Calls in the console: recorded live, found by filters, streamed to open pages. */
import t from 'tap'
import { startTestConsole } from '../../helpers/console/console.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { until } from '../../helpers/redis.ts'
import { openSession, post, stateless } from '../../helpers/mcp/wire.ts'

type Items = { name?: string; id: string; outcome: string; method: string }[]

t.test('calls of both eras are recorded with caller, target and outcome', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  const session = await openSession(console.vmcp.url)
  await session.request('tools/call', { name: 'notes_echo', arguments: { text: 'hi' } })
  await stateless(console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text: 'ho' } })
  await stateless(console.vmcp.url, 'tools/call', { name: 'missing', arguments: {} })
  const { json } = await console.api('calls')
  t.match(json['items'], [
    { name: 'missing', outcome: 'failure', error: { code: -32602 } },
    { name: 'notes_echo', backend: 'notes', outcome: 'success', era: '2026-07-28', ms: Number },
    {
      name: 'notes_echo',
      outcome: 'success',
      session: /^[0-9a-f]{12}$/,
      caller: { sub: 'anonymous' },
      payload: 'none',
    },
    { method: 'initialize', outcome: 'success' },
  ])
  const calls = (await console.api('calls?messages=calls')).json['items'] as Items
  t.strictSame(
    calls.map(({ method }) => method),
    ['tools/call', 'tools/call', 'tools/call'],
    'as many as in the overview',
  )
  t.match(await console.api('calls?messages=some'), { status: 400 })
  const text = JSON.stringify(json)
  t.notMatch(text, session.id, 'session ids are never shown')
  t.match(await console.api('overview'), {
    json: { totals: { calls: 3, failed: 1, denied: 0, p95: Number } },
  })
  const [{ id } = { id: '' }] = json['items'] as Items
  t.match((await console.api(`calls/${id}`)).json, { id, name: 'missing' })
  t.match((await console.api('calls/00000000.1')).json, { code: 'WRONG_REPLICA', status: 409 })
  t.match((await console.api(`calls/${id.split('.')[0]}.zzz`)).json, { code: 'NOT_FOUND', status: 404 })
})

t.test('calls can be filtered and paged', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  for (const text of ['a', 'b', 'c'])
    await stateless(console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text } })
  await stateless(console.vmcp.url, 'tools/call', { name: 'missing', arguments: {} })
  await post(console.vmcp.url, '{', { origin: 'https://evil.example' })
  const found = async (query: string) => (await console.api(`calls?${query}`)).json['items'] as Items
  t.equal((await found('backend=notes')).length, 3)
  t.equal((await found('text=MISSING')).length, 1)
  t.match(await found('outcome=denied'), [{ denied: { by: 'origin' } }])
  t.equal((await found('from=2999-01-01T00:00:00Z')).length, 0)
  t.equal((await found('tool=notes_echo&caller=anonymous')).length, 3)
  const first = (await console.api('calls?tool=notes_echo&limit=2')).json
  const second = (await console.api(`calls?tool=notes_echo&limit=2&cursor=${String(first['next'])}`)).json
  t.equal((second['items'] as Items).length, 1)
  t.notOk(second['next'])
  t.match((await console.api('calls?outcome=fine')).json, { status: 400, title: /outcome must be one of/ })
  t.match((await console.api('calls?from=yesterday')).json, { status: 400, title: /from must be a time/ })
})

t.test('a full ring buffer drops the oldest calls and reports it', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url }, {}, { ringBytes: 3_000 })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  const call = (name: string) => stateless(console.vmcp.url, 'tools/call', { name, arguments: { text: 'x' } })
  await call('missing')
  for (let i = 0; i < 20; i++) await call('notes_echo')
  const { json } = await console.api('calls?limit=200')
  const items = json['items'] as Items
  t.equal(items.at(-1)?.name, 'missing', 'failed calls are kept longer')
  t.same(
    items.slice(0, -1).map(({ name, id }) => `${name} ${id.split('.')[1]}`),
    Array.from({ length: items.length - 1 }, (_, i) => `notes_echo ${(21 - i).toString(36)}`),
    'the latest without a gap',
  )
  t.ok(items.length > 1 && items.length < 6, `${items.length} fit`)
  const oldest = items.at(-2)?.id ?? ''
  for (let i = 0; i < 5; i++) await call('notes_echo')
  t.match((await console.api(`calls?cursor=${oldest}`)).json, { gap: true })
})

t.test(
  'the stream contains calls, sessions and health, resumes after a break, and marks dropped events as a gap',
  async (t) => {
    const fixture = await startFixture()
    const console = await startTestConsole({ notes: fixture.url })
    t.teardown(() => Promise.all([console.close(), fixture.close()]))
    const stream = await console.events('stream?topics=calls,sessions')
    t.equal(stream.status, 200)
    await openSession(console.vmcp.url)
    const first = await stream.next('calls')
    t.match(first.data['items'], [{ method: 'initialize' }])
    t.match((await stream.next('sessions')).data, { count: 1 })
    stream.close()
    await stateless(console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text: 'x' } })
    const resumed = await console.events('stream?topics=calls', { 'last-event-id': first.id ?? '' })
    t.match((await resumed.next('calls')).data['items'], [{ name: 'notes_echo' }])
    resumed.close()
    const lost = await console.events('stream', { 'last-event-id': '00000000-5' })
    t.match((await lost.next('gap')).data, { type: 'gap' })
    lost.close()
    t.equal((await console.events('stream?topics=everything')).status, 400)
  },
)

t.test("open pages are notified when a backend's offer changes", async (t) => {
  const names = ['echo']
  const backend = await startRawBackend({
    tools: () => names.map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } })),
  })
  const console = await startTestConsole({ b: backend.url })
  t.teardown(() => Promise.all([console.close(), backend.close()]))
  const session = await openSession(console.vmcp.url)
  await session.request('tools/list')
  const stream = await console.events('stream?topics=catalog')
  await until(() => backend.streams.size > 0)
  names.push('another')
  backend.push('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
  await stream.next('catalog')
  stream.close()
  await until(async () => (await console.api('tools')).text.includes('b_another'))
})

t.test('streams are limited per visitor, and end with the server', async (t) => {
  const console = await startTestConsole({})
  const open = await Promise.all(Array.from({ length: 8 }, () => console.events('stream')))
  t.same(
    open.map(({ status }) => status),
    open.map(() => 200),
  )
  t.match(await console.api('stream'), { status: 503, json: { code: 'TOO_MANY_STREAMS' } })
  const byes = Promise.all(open.map((stream) => stream.next('bye')))
  await console.close()
  t.match((await byes)[0]?.data, { retryMs: Number })
})
