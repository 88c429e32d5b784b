/** Backends that are down, slow, broken or restarted: responses for clients, and no effect on other backends. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { makeLog } from '../../../../runtime/observe/index.ts'
import { openSession, post, stateless, type WireSession } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { type RawBackend, startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

proves(
  '3.error.partialFailure.fail',
  '3.error.partialFailure.best_effort',
  '3.config.operational.failureHandling.partialFailureMode',
  '3.config.operational.timeouts.default',
  '3.config.operational.timeouts.perWorkload',
)

const DEAD = 'http://127.0.0.1:9/mcp'

function operational(partialFailureMode: string, more: Record<string, unknown> = {}) {
  return { operational: { failureHandling: { partialFailureMode, ...more } } }
}

async function names(session: WireSession): Promise<string[]> {
  const { response } = await session.request('tools/list')
  return ((response?.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)
}

t.test('best_effort: the available backends respond', async (t) => {
  const up = await startRawBackend()
  const vmcp = await startTestVmcp({ up: up.url, dead: DEAD }, operational('best_effort'))
  t.teardown(() => Promise.all([vmcp.close(), up.close()]))
  const session = await openSession(vmcp.url)
  t.same(await names(session), ['up_echo'])
  t.match((await session.request('tools/call', { name: 'up_echo', arguments: { a: 1 } })).text, 'a')
  t.equal((await stateless(vmcp.url, 'tools/list')).status, 200)
})

t.test('a connection cut during a request: safe requests are repeated once, calls never', async (t) => {
  const cuts = new Map<string, number>()
  const raw = await startRawBackend({
    capabilities: '{"tools":{},"prompts":{}}',
    responses: {
      'prompts/list': () => '{"prompts":[{"name":"p"}]}',
      'prompts/get': () => '{"messages":[]}',
    },
    before(req, _res, body) {
      const { method = '' } = body === '' ? {} : (JSON.parse(body) as { method?: string })
      const left = cuts.get(method) ?? 0
      if (left === 0) return false
      cuts.set(method, left - 1)
      req.socket.destroy()
      return true
    },
  })
  const vmcp = await startTestVmcp(
    { raw: raw.url },
    operational('best_effort', { healthCheckInterval: '1h' }),
  )
  t.teardown(() => Promise.all([vmcp.close(), raw.close()]))
  for (const method of ['initialize', 'tools/list', 'prompts/list']) cuts.set(method, 1)
  const session = await openSession(vmcp.url)
  t.same(await names(session), ['raw_echo'], 'requests that open and list')
  cuts.set('prompts/get', 1)
  t.match((await session.request('prompts/get', { name: 'raw_p' })).response, { result: { messages: [] } })
  cuts.set('prompts/get', 2)
  t.match((await session.request('prompts/get', { name: 'raw_p' })).response, { error: { code: -32603 } })
  cuts.set('tools/call', 1)
  const call = await session.request('tools/call', { name: 'raw_echo' })
  t.match(call.response?.result, {
    isError: true,
    content: [{ text: /closed the connection before it responded/ }],
  })
  t.equal(cuts.get('tools/call'), 0)
  t.notOk(
    raw.requests.some(({ method }) => method === 'tools/call'),
    'it may have been executed',
  )
})

t.test('fail: lists and calls are rejected, and the error names the backend', async (t) => {
  const up = await startRawBackend()
  const vmcp = await startTestVmcp({ up: up.url, dead: DEAD }, operational('fail'))
  t.teardown(() => Promise.all([vmcp.close(), up.close()]))
  const session = await openSession(vmcp.url)
  for (const response of [
    await session.request('tools/list'),
    await session.request('tools/call', { name: 'up_echo' }),
    await stateless(vmcp.url, 'tools/list'),
  ]) {
    t.match(response.response?.error, { code: -32603, message: /backend dead/, data: { backends: ['dead'] } })
  }
  t.equal((await session.request('ping')).status, 200)
})

t.test('fail is the default, and also applies when there are no backends', async (t) => {
  const vmcp = await startTestVmcp({ dead: DEAD })
  const empty = await startTestVmcp({})
  t.teardown(() => Promise.all([vmcp.close(), empty.close()]))
  const session = await openSession(vmcp.url)
  t.equal((await session.request('tools/list')).response?.error?.code, -32603)
  t.same(await names(await openSession(empty.url)), [])
})

t.test('a backend that comes back is offered again automatically', async (t) => {
  let down = true
  const backend = await startRawBackend({
    before: (_req, res) => {
      if (down) res.writeHead(503).end()
      return down
    },
  })
  const up = await startRawBackend()
  const pending: (() => void)[] = []
  const clock = { now: Date.now, after: (_ms: number, work: () => void) => (pending.push(work), () => {}) }
  const vmcp = await startTestVmcp({ up: up.url, back: backend.url }, operational('best_effort'), { clock })
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), up.close()]))
  const session = await openSession(vmcp.url)
  const stream = await session.listen()
  t.same(await names(session), ['up_echo'])
  down = false
  for (const work of pending.splice(0)) work()
  await stream.next(({ method }) => method === 'notifications/tools/list_changed')
  t.same(await names(session), ['back_echo', 'up_echo'])
  stream.close()
})

t.test("a call that exceeds the workload's timeout is cancelled, and the backend is notified", async (t) => {
  let cancelled: (() => void) | undefined
  const toldOff = new Promise<void>((resolve) => {
    cancelled = resolve
  })
  const backend = await startRawBackend({
    responses: { 'tools/call': () => new Promise<string>(() => {}) },
    before: (_req, _res, body) => {
      if (body.includes('notifications/cancelled')) cancelled?.()
      return false
    },
  })
  const timeouts = { default: '30s', perWorkload: { slow: '1s' } }
  const vmcp = await startTestVmcp({ slow: backend.url }, { operational: { timeouts } })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const { response } = await session.request('tools/call', { name: 'slow_echo' })
  t.match(response?.result, {
    isError: true,
    content: [{ text: 'backend slow: the backend did not answer in time' }],
  })
  await toldOff
  const read = await stateless(vmcp.url, 'tools/call', { name: 'slow_echo' })
  t.match(read.response?.result, { isError: true })
})

t.test('workloads without their own timeout use the default', async (t) => {
  const never = () => new Promise<string>(() => {})
  const soon = () => setTimeout(1_500).then(() => textResult('done'))
  const [hangs, takes] = await Promise.all([
    startRawBackend({ responses: { 'tools/call': never } }),
    startRawBackend({ responses: { 'tools/call': soon } }),
  ])
  const timeouts = { default: '1s', perWorkload: { takes: '60s' } }
  const vmcp = await startTestVmcp({ hangs: hangs.url, takes: takes.url }, { operational: { timeouts } })
  t.teardown(() => Promise.all([vmcp.close(), hangs.close(), takes.close()]))
  const session = await openSession(vmcp.url)
  const [given, done] = await Promise.all([
    session.request('tools/call', { name: 'hangs_echo' }),
    session.request('tools/call', { name: 'takes_echo' }),
  ])
  t.match(given.text, 'did not answer in time')
  t.match(done.text, 'done')
})

t.test(
  'responses that are not MCP are errors of that backend only, and their content is not shown',
  async (t) => {
    const broken: Record<
      string,
      (backend: { res: import('node:http').ServerResponse; id: string }) => undefined
    > = {
      html: ({ res }) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>secret</h1>'),
      cut: ({ res, id }) =>
        void res
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":${id},"result":{`),
      foreign: ({ res }) =>
        void res
          .writeHead(200, { 'content-type': 'application/json' })
          .end('{"jsonrpc":"2.0","id":"x","result":{}}'),
      empty: ({ res }) =>
        void res.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n'),
      error500: ({ res }) => void res.writeHead(500).end('stack trace secret'),
      hangup: ({ res }) => void res.destroy(),
      noise: ({ res }) =>
        void res.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {not json}\n\n'),
    }
    let how = ''
    const backend = await startRawBackend({
      responses: { 'tools/call': ({ res, id }) => broken[how]?.({ res, id }) },
    })
    const vmcp = await startTestVmcp(
      { raw: backend.url },
      { operational: { timeouts: { default: '300ms' } } },
    )
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    for (how of Object.keys(broken)) {
      const { text, response } = await session.request('tools/call', { name: 'raw_echo' })
      t.match(response?.result, { isError: true }, how)
      t.match(text, 'backend raw')
      t.notMatch(text, 'secret')
    }
    t.equal((await post(vmcp.url, '{"jsonrpc":"2.0","id":1,"method":"ping"}', session.headers)).status, 200)
  },
)

t.test('an event stream that breaks before the response is resumed where it stopped', async (t) => {
  const seen: (string | undefined)[] = []
  const backend: RawBackend = await startRawBackend({
    responses: {
      'tools/call': ({ res, id }) => {
        held = id
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.end(`retry: 1\n\nid: ${eventId}\ndata: \n\n`)
        return undefined
      },
    },
    before: (req, res) => {
      const last = req.headers['last-event-id']
      if (req.method !== 'GET' || last === undefined) return false
      seen.push(Buffer.from(last, 'latin1').toString())
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.end(
        `id: e-2\ndata: {"jsonrpc":"2.0","id":${held},"result":{"content":[{"type":"text","text":"resumed"}]}}\n\n`,
      )
      return true
    },
  })
  let held = ''
  let eventId = ''
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  for (eventId of ['e-1', 'é 😀'])
    t.match((await session.request('tools/call', { name: 'raw_echo' })).text, 'resumed')
  t.same(seen, ['e-1', 'é 😀'])
  for (eventId of ['\u0001', 'x'.repeat(5_000)])
    t.match((await session.request('tools/call', { name: 'raw_echo' })).response?.result, { isError: true })
  t.equal(seen.length, 2, 'an id that is invalid in a header is ignored')
})

t.test('a backend that hangs from the start blocks no call to another backend', async (t) => {
  const release: (() => void)[] = []
  const hung = await startRawBackend({
    before: (_req, res) => {
      release.push(() => res.destroy())
      return true
    },
  })
  const good = await startRawBackend()
  const vmcp = await startTestVmcp(
    { good: good.url, hung: hung.url },
    { operational: { failureHandling: { partialFailureMode: 'best_effort' } } },
  )
  t.teardown(() => Promise.all([vmcp.close(), good.close(), hung.close()]))
  const session = await openSession(vmcp.url)
  const called = await session.request('tools/call', { name: 'good_echo', arguments: { x: 1 } })
  t.match(
    called.response?.result,
    { content: [{ text: '{"x":1}' }] },
    'answered while the other backend hangs',
  )
  t.ok(release.length > 0)
  for (const end of release) end()
})

t.test('problems of replaced definitions disappear from the status', async (t) => {
  let name = 'n'.repeat(70)
  const backend = await startRawBackend({
    tools: () => [`{"name":"${name}","inputSchema":{"type":"object"}}`],
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, { aggregation: { maxToolNameLength: 0 } })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const listed = async () => (await session.request('tools/list')).text
  const problems = async () => JSON.stringify(await (await fetch(`${vmcp.origin}/status`)).json())
  t.match(await listed(), name)
  t.match(await problems(), /the name of tool \S+ has 74/)
  name = 'short'
  const stream = await session.listen()
  backend.push('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
  await stream.next(({ method }) => method === 'notifications/tools/list_changed')
  t.match(await listed(), 'raw_short')
  t.notMatch(await problems(), /the name of tool \S+ has 74/)
  stream.close()
})

t.test('HTTP errors of a backend are reported without their body', async (t) => {
  let status = 0
  const backend = await startRawBackend({
    responses: { 'tools/call': ({ res }) => void res.writeHead(status).end('secret stack trace') },
  })
  const vmcp = await startTestVmcp({ raw: backend.url, dead: DEAD }, operational('best_effort'))
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const texts: Record<number, string> = {
    400: 'the backend rejected the request (HTTP 400)',
    403: 'authentication to the backend failed (HTTP 403)',
    429: 'the backend is not accepting more requests at the moment (HTTP 429)',
    500: 'the backend returned an internal error (HTTP 500)',
    502: 'the backend returned an internal error (HTTP 502)',
    503: 'the backend is temporarily unavailable (HTTP 503)',
  }
  for (const [code, text] of Object.entries(texts)) {
    status = Number(code)
    const { response } = await session.request('tools/call', { name: 'raw_echo' })
    t.same(response?.result, { content: [{ type: 'text', text: `backend raw: ${text}` }], isError: true })
  }
})

t.test('lists that cannot be reread stay in use, marked stale, until they can', async (t) => {
  let now = Date.parse('2026-01-01T00:00:00Z')
  let broken: 'not' | 'failing' | 'hanging' | 'refusing' = 'not'
  let name = 'one'
  const waiting: (() => void)[] = []
  const backend = await startRawBackend({
    capabilities: '{"tools":{}}',
    tools: () => [`{"name":"${name}","inputSchema":{"type":"object"}}`],
    before: (_req, res, body) => {
      if (broken === 'not' || !body.includes('tools/list')) return false
      if (broken === 'hanging') waiting.push(() => res.destroy())
      else res.writeHead(broken === 'failing' ? 500 : 401).end()
      return true
    },
  })
  const lines: string[] = []
  const log = makeLog({ level: 'info', destination: { write: (line) => void lines.push(line) } })
  const clock = { now: () => now, after: () => () => {} }
  const vmcp = await startTestVmcp(
    { b: backend.url },
    { telemetry: { enablePrometheusMetricsPath: true } },
    { clock, log },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const get = async (path: string) => (await fetch(`${vmcp.origin}${path}`)).text()
  t.same(await names(session), ['b_one'])
  t.notMatch(await get('/api/backends/health'), /lists_stale_since/)

  broken = 'failing'
  name = 'two'
  now += 31_000
  t.same(await names(session), ['b_one'], 'the last good list, although one that fails is down by default')
  t.match((await session.request('tools/call', { name: 'b_one' })).response, { result: { content: [{}] } })
  t.match(JSON.parse(await get('/api/backends/health')), {
    backends: { b: { status: 'healthy', lists_stale_since: '2026-01-01T00:00:31.000Z' } },
  })
  t.match(await get('/status'), /backend b: its lists have been unreadable since 2026-01-01T00:00:31/)
  t.match(await get('/metrics'), /gatehouse_vmcp_list_read_failures_total\{target_workload_name="b"\} [1-9]/)
  t.equal(lines.filter((line) => line.includes('the previous lists stay in use')).length, 1, 'reported once')

  broken = 'hanging'
  now += 5_000
  t.same(await names(session), ['b_one'], 'no client waits for the next attempt')
  broken = 'not'
  for (const cut of waiting.splice(0)) cut()
  for (let found: string[] = []; found[0] !== 'b_two'; found = await names(session)) now += 5_000
  t.notMatch(await get('/status'), /unreadable since/)
  t.notMatch(await get('/api/backends/health'), /lists_stale_since/)

  broken = 'refusing'
  now += 31_000
  t.match((await session.request('tools/list')).response?.error, {
    message: 'backend b: authentication to the backend failed (HTTP 401)',
  })
})
