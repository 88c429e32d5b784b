/** A list of a backend that fails, ends early or is declared wrongly affects no other list, and is reported. */
import t, { type Test } from 'tap'
import { makeLog } from '../../../../runtime/observe/index.ts'
import { openSession, stateless, type WireSession } from '../../../helpers/mcp/wire.ts'
import { type RawAnswer, type RawBackendOptions, startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'
import { until } from '../../../helpers/redis.ts'

t.setTimeout(180_000)

const bestEffort = { operational: { failureHandling: { partialFailureMode: 'best_effort' } } }
const methods = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'] as const
type ListMethod = (typeof methods)[number]

const tool = (name: string) => `{"name":"${name}","inputSchema":{"type":"object"}}`
const whole: Readonly<Record<ListMethod, string>> = {
  'tools/list': `{"tools":[${tool('echo')}]}`,
  'resources/list': '{"resources":[{"uri":"test://r","name":"r"}]}',
  'resources/templates/list': '{"resourceTemplates":[{"uriTemplate":"test://t/{a}","name":"t"}]}',
  'prompts/list': '{"prompts":[{"name":"p"}]}',
}
const all = '{"tools":{},"resources":{},"prompts":{}}'

function withLists(
  changed: Partial<Record<ListMethod, RawAnswer>> = {},
): Readonly<Record<string, RawAnswer>> {
  return { ...Object.fromEntries(methods.map((method) => [method, () => whole[method]])), ...changed }
}

/** A backend `bad` next to a backend `good`, with a client that has a session. */
async function rig(t: Test, bad: RawBackendOptions, config: object = bestEffort) {
  const backends = await Promise.all([
    startRawBackend({ capabilities: all, responses: withLists(), ...bad }),
    startRawBackend(),
  ])
  const lines: string[] = []
  const log = makeLog({ level: 'info', destination: { write: (line) => void lines.push(line) } })
  const vmcp = await startTestVmcp(
    { bad: backends[0].url, good: backends[1].url },
    { telemetry: { enablePrometheusMetricsPath: true }, ...config },
    { log },
  )
  t.teardown(() => Promise.all([vmcp.close(), ...backends.map((backend) => backend.close())]))
  const session = await openSession(vmcp.url)
  const status = async () =>
    (await (await fetch(`${vmcp.origin}/status`)).json()) as {
      problems: string[]
      problem_details: { type: string; backend?: string; message: string; fix: string }[]
    }
  return { vmcp, session, backend: backends[0], lines, status }
}

async function listed(session: WireSession, method: ListMethod): Promise<unknown> {
  const { response } = await session.request(method)
  if (response?.error) return response.error
  const [items] = Object.values(response?.result ?? {}).filter(Array.isArray) as Record<string, unknown>[][]
  return items?.map((item) => item['uriTemplate'] ?? item['uri'] ?? item['name'])
}

const complete: Readonly<Record<ListMethod, unknown>> = {
  'tools/list': ['bad_echo', 'good_echo'],
  'resources/list': ['test://r'],
  'resources/templates/list': ['test://t/{a}'],
  'prompts/list': ['bad_p'],
}

const failures: Readonly<Record<string, RawAnswer>> = {
  'HTTP 429': ({ res }) => void res.writeHead(429).end(),
  'HTTP 500': ({ res }) => void res.writeHead(500).end('oops'),
  'HTTP 401': ({ res }) => void res.writeHead(401).end(),
  'a refusal': ({ id, res }) =>
    void res
      .writeHead(200, { 'content-type': 'application/json' })
      .end(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32603,"message":"reason of the list"}}`),
  'a closed connection': ({ res }) => void res.destroy(),
  'a result that is no list': () => '{"tools":5,"resources":5,"resourceTemplates":5,"prompts":5}',
  'text instead of JSON': ({ res }) =>
    void res.writeHead(200, { 'content-type': 'application/json' }).end('hello'),
}

/** The problem ends with the text of the backend. */
const texts: Readonly<Record<string, RegExp>> = {
  'HTTP 500': /: oops$/,
  'a refusal': /: reason of the list$/,
  'text instead of JSON': /: hello$/,
}

for (const [what, failure] of Object.entries(failures)) {
  for (const method of methods) {
    t.test(`${method} alone: ${what}`, async (t) => {
      const { session, status, lines, vmcp } = await rig(t, { responses: withLists({ [method]: failure }) })
      for (const other of methods) {
        if (other !== method) t.same(await listed(session, other), complete[other], other)
      }
      t.same(await listed(session, method), method === 'tools/list' ? ['good_echo'] : [], method)
      t.notOk((await session.request('tools/call', { name: 'good_echo' })).response?.error)
      const called = await session.request('tools/call', { name: 'bad_echo' })
      if (method === 'tools/list')
        t.match(called.response?.error, {
          message: /bad is temporarily unavailable|backend bad: authentication/,
        })
      else t.match(called.response?.result, { content: [{ type: 'text' }] })
      const { problem_details: problems } = await status()
      const found = problems.find(({ message }) => message.startsWith(`${method} on backend bad failed: `))
      t.match(found, { type: 'list_problem', backend: 'bad', fix: /read again/ })
      t.match(found?.message, texts[what] ?? /in use$|missing$/)
      t.notMatch(called.text, /reason of the list|oops|hello/, 'clients do not see the text of the backend')
      t.equal(lines.filter((line) => line.includes('"list_problem"')).length, 1, 'one line')
      const metrics = await (await fetch(`${vmcp.origin}/metrics`)).text()
      t.match(metrics, /gatehouse_vmcp_list_read_failures_total\{target_workload_name="bad"\} [1-9]/)
    })
  }
}

t.test('under fail, a failed list is an error of that list that names backend and list', async (t) => {
  const { session, vmcp } = await rig(
    t,
    { responses: withLists({ 'prompts/list': ({ res }) => void res.writeHead(500).end() }) },
    {},
  )
  t.match(await listed(session, 'prompts/list'), { code: -32603, message: /backend bad .*prompts\/list/ })
  const { response } = await stateless(vmcp.url, 'prompts/list')
  t.match(response?.error, { message: /backend bad .*prompts\/list/ })
  for (const method of ['tools/list', 'resources/list', 'resources/templates/list'] as const)
    t.same(await listed(session, method), complete[method])
  for (const name of ['bad_echo', 'good_echo'])
    t.match((await session.request('tools/call', { name })).response?.result, { content: [{}] }, name)
  t.match((await session.request('prompts/get', { name: 'bad_p' })).response?.error, {
    message: /backend bad is temporarily unavailable/,
  })
})

t.test('under fail, the only list of a backend fails: calls of other backends go on', async (t) => {
  const { session } = await rig(
    t,
    {
      capabilities: '{"tools":{}}',
      responses: { 'tools/list': ({ res }) => void res.writeHead(429).end() },
    },
    {},
  )
  t.match(await listed(session, 'tools/list'), { code: -32603, message: /backend bad .*tools\/list/ })
  t.same(await listed(session, 'prompts/list'), [])
  t.match((await session.request('tools/call', { name: 'good_echo' })).response?.result, { content: [{}] })
})

t.test('a list that fails later keeps its last items, and the problem ends with the failure', async (t) => {
  let fails = false
  const { session, status, backend } = await rig(t, {
    capabilities: '{"tools":{},"resources":{},"prompts":{"listChanged":true}}',
    responses: withLists({
      'prompts/list': ({ res }) => (fails ? void res.writeHead(500).end() : whole['prompts/list']),
    }),
  })
  t.same(await listed(session, 'prompts/list'), ['bad_p'])
  fails = true
  backend.push('{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}')
  const problem = async () =>
    (await status()).problems.find((line) => line.startsWith('prompts/list on backend bad failed'))
  await until(async () => (await problem()) !== undefined)
  t.match(await problem(), /HTTP 500.*its last known items stay in use/)
  t.same(await listed(session, 'prompts/list'), ['bad_p'])
  fails = false
  await until(async () => (await problem()) === undefined)
  t.same(await listed(session, 'prompts/list'), ['bad_p'])
})

t.test('a list that never answers fails alone after a while', { timeout: 60_000 }, async (t) => {
  const { session, status } = await rig(t, { responses: withLists({ 'prompts/list': () => undefined }) })
  t.same(await listed(session, 'tools/list'), complete['tools/list'])
  const { problems } = await status()
  t.match(
    problems.find((line) => line.startsWith('prompts/list on backend bad failed')),
    /in time/,
  )
})

/** Pages of tools: `one`, then what the cursor of the first page leads to. */
function pages(cursor: string, second: RawAnswer): RawAnswer {
  return (request) =>
    'cursor' in request.params ? second(request) : `{"tools":[${tool('one')}],"nextCursor":${cursor}}`
}
const twoPage = `{"tools":[${tool('two')}]}`
const two = () => twoPage

const ends: Readonly<
  Record<string, { readonly list: RawAnswer; readonly names: readonly string[]; readonly why: RegExp }>
> = {
  'an empty cursor': { list: pages('""', two), names: ['one'], why: /nextCursor is empty/ },
  'a number': { list: pages('2', two), names: ['one'], why: /nextCursor must be a string.*number/ },
  'an object': { list: pages('{"a":1}', two), names: ['one'], why: /nextCursor must be a string.*object/ },
  'a list': { list: pages('["a"]', two), names: ['one'], why: /nextCursor must be a string.*array/ },
  true: { list: pages('true', two), names: ['one'], why: /nextCursor must be a string.*boolean/ },
  'a huge cursor': { list: pages(`"${'x'.repeat(70_000)}"`, two), names: ['one'], why: /65536 characters/ },
  'the same cursor again': {
    list: pages('"a"', () => `{"tools":[${tool('two')}],"nextCursor":"a"}`),
    names: ['one', 'two'],
    why: /nextCursor repeats an earlier cursor/,
  },
  'page 2 is rejected': {
    list: pages(
      '"a"',
      ({ id, res }) =>
        void res
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32602,"message":"bad cursor"}}`),
    ),
    names: ['one'],
    why: /the next page failed.*-32602/,
  },
  'page 2 is an unknown method': {
    list: pages(
      '"a"',
      ({ id, res }) =>
        void res
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no"}}`),
    ),
    names: ['one'],
    why: /the next page failed/,
  },
  'HTTP 429 on page 2': {
    list: pages('"a"', ({ res }) => void res.writeHead(429).end()),
    names: ['one'],
    why: /the next page failed.*HTTP 429/,
  },
  'page 2 is no list': {
    list: pages('"a"', () => '{"tools":7}'),
    names: ['one'],
    why: /the next page failed/,
  },
  'the first page for ever': {
    list: (() => {
      let page = 0
      return () => `{"tools":[${tool('one')}],"nextCursor":"${page++}"}`
    })(),
    names: ['one'],
    why: /contained no new items/,
  },
}

for (const [what, { list, names, why }] of Object.entries(ends)) {
  t.test(`pages: ${what}`, async (t) => {
    for (const config of [bestEffort, {}]) {
      const { session, status, backend } = await rig(
        t,
        { responses: withLists({ 'tools/list': list }) },
        config,
      )
      t.same(await listed(session, 'tools/list'), [...names.map((name) => `bad_${name}`), 'good_echo'])
      t.same(await listed(session, 'prompts/list'), ['bad_p'])
      t.match((await session.request('tools/call', { name: 'bad_one' })).response?.result, { content: [{}] })
      t.match((await session.request('tools/call', { name: 'good_echo' })).response?.result, {
        content: [{}],
      })
      const { problem_details: problems } = await status()
      const found = problems.find(({ message }) =>
        message.startsWith('tools/list on backend bad may be incomplete'),
      )
      t.match(found, { type: 'list_problem', message: why })
      t.ok(backend.requests.filter(({ method }) => method === 'tools/list').length < 50)
    }
  })
}

t.test('a null cursor is the end of the list, and no problem', async (t) => {
  const { session, status } = await rig(t, { responses: withLists({ 'tools/list': pages('null', two) }) })
  t.same(await listed(session, 'tools/list'), ['bad_one', 'good_echo'])
  t.same((await status()).problems, [])
})

t.test('a whole list stays in use when a later read ends early', async (t) => {
  let fails = false
  const { session, status, backend } = await rig(t, {
    capabilities: '{"tools":{"listChanged":true},"resources":{},"prompts":{}}',
    responses: withLists({
      'tools/list': pages('"a"', ({ res }) => (fails ? void res.writeHead(500).end() : twoPage)),
    }),
  })
  t.same(await listed(session, 'tools/list'), ['bad_one', 'bad_two', 'good_echo'])
  fails = true
  backend.push('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
  await until(async () =>
    (await status()).problems.some((line) => line.includes('its last known items stay in use')),
  )
  t.same(await listed(session, 'tools/list'), ['bad_one', 'bad_two', 'good_echo'])
})

const declarations: Readonly<Record<string, string>> = {
  true: '{"tools":true,"resources":true,"prompts":true}',
  'a list': '{"tools":[],"resources":[],"prompts":[]}',
  'a number': '{"tools":1,"resources":1,"prompts":1}',
  false: '{"tools":false,"resources":false,"prompts":false}',
  'one of each': '{"tools":true,"resources":[],"prompts":null}',
  'only prompts': '{"prompts":{}}',
  'only tools': '{"tools":{}}',
  nothing: '{}',
  null: 'null',
  'a text': '"all"',
  'a list instead of capabilities': '[]',
}
for (const [what, capabilities] of Object.entries(declarations)) {
  t.test(`capabilities: ${what}`, async (t) => {
    for (const config of [bestEffort, {}]) {
      const { session, status } = await rig(t, { capabilities }, config)
      for (const method of methods) t.same(await listed(session, method), complete[method], method)
      t.match((await session.request('tools/call', { name: 'bad_echo' })).response?.result, { content: [{}] })
      const { problems } = await status()
      const wanted =
        what === 'only tools' ? 'prompts/list' : what === 'only prompts' ? 'tools/list' : 'tools/list'
      t.ok(
        problems.some((line) => line.startsWith(`backend bad responds to ${wanted}, but`)),
        problems.join('\n'),
      )
    }
  })
}

t.test('undeclared lists that a backend does not have are asked for once, and are no problem', async (t) => {
  const { session, status, backend, vmcp } = await rig(t, {
    capabilities: '{"tools":{"listChanged":true}}',
    responses: {
      'prompts/list': ({ res }) => void res.writeHead(500).end(),
      'resources/list': () => '{"resources":[]}',
    },
  })
  const stream = await session.listen()
  t.same(await listed(session, 'tools/list'), ['bad_echo', 'good_echo'])
  backend.push('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
  const count = (method: string) => backend.requests.filter((request) => request.method === method).length
  await until(() => count('tools/list') === 2)
  t.same(await listed(session, 'tools/list'), ['bad_echo', 'good_echo'])
  for (const method of methods.slice(1)) t.equal(count(method), 1, method)
  t.same((await status()).problems, [])
  t.ok(vmcp)
  stream.close()
})
