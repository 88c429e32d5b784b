/**
 * Differences between the eras, member by member: error codes, URL questions, members of one era only, tasks, and a
 * backend that changes its era at run time.
 */
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { openSession, stateless, type WireAnswer } from '../../../helpers/mcp/wire.ts'
import { json, startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(180_000)

const ABLE = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

/** A session-era backend whose calls and reads fail with one error. */
async function refusing(t: { teardown(work: () => unknown): void }, error: () => string | undefined) {
  const backend = await startRawBackend({
    capabilities: '{"tools":{},"resources":{}}',
    responses: {
      'resources/list': () => '{"resources":[{"uri":"test://a","name":"a"}]}',
      'resources/templates/list': () => '{"resourceTemplates":[]}',
      'resources/read': ({ res, id }) => {
        json(res, `{"jsonrpc":"2.0","id":${id},"error":${error()}}`)
        return undefined
      },
      'tools/call': ({ res, id }) => {
        const failure = error()
        if (failure === undefined) return textResult('done')
        json(res, `{"jsonrpc":"2.0","id":${id},"error":${failure}}`)
        return undefined
      },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, { aggregation: bareNames('raw') })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  return { backend, vmcp }
}

t.test('a missing resource: each era gets its own code, and the URI', async (t) => {
  const { vmcp } = await refusing(t, () => '{"code":-32002,"message":"gone"}')
  const modern = await stateless(vmcp.url, 'resources/read', { uri: 'test://a' })
  t.equal(modern.status, 400)
  t.same(modern.response?.error, { code: -32602, message: 'gone', data: { uri: 'test://a' } })
  const session = await openSession(vmcp.url)
  const legacy = await session.request('resources/read', { uri: 'test://a' })
  t.same(legacy.response?.error, { code: -32002, message: 'gone' }, 'forwarded unchanged')
})

t.test('a missing resource of a stateless backend: sessions get their own code', async (t) => {
  const fixture = await startFixture({
    era: 'stateless',
    before: (req, res) => {
      if (req.headers['mcp-name'] !== 'test://static-text') return false
      res.writeHead(400, { 'content-type': 'application/json' })
      res.end(
        '{"jsonrpc":"2.0","error":{"code":-32602,"message":"gone","data":{"uri":"test://static-text"}},"id":null}'.replace(
          ',"id":null',
          '',
        ),
      )
      return true
    },
  })
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const session = await openSession(vmcp.url)
  const { response } = await session.request('resources/read', { uri: 'test://static-text' })
  t.equal(response?.error?.code, -32002)
})

t.test('results of a stateless backend contain no members that are unknown to sessions', async (t) => {
  const fixture = await startFixture({ era: 'stateless' })
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const session = await openSession(vmcp.url)
  const read = await session.request('resources/read', { uri: 'test://static-text' })
  t.same(Object.keys(read.response?.result ?? {}), ['contents'])
  const called = await session.request('tools/call', { name: 'test_simple_text' })
  t.same(Object.keys(called.response?.result ?? {}), ['content'])
})

t.test('reserved metadata of a stateless backend reaches no session client', async (t) => {
  const meta = (more = '') =>
    `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"secret"},"io.modelcontextprotocol\\/subscriptionId":"secret","own":"kept"${more}}`
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ res, id, params }) => {
        const { progressToken } = params['_meta'] as { progressToken: unknown }
        const messages = [
          `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${JSON.stringify(progressToken)},"progress":1,${meta()}}}`,
          `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x",${meta()}}}`,
          `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}},${meta()}}}`,
        ]
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        for (const message of messages) res.write(`data: ${message}\n\n`)
        finish = () => {
          const result = `{"content":[{"type":"text","text":"x",${meta()}}],${meta(',"io.modelcontextprotocol/related-task":{"taskId":"1"}')}}`
          res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${result}}\n\n`)
        }
        return undefined
      },
    },
  })
  let finish = (): void => {}
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url, { capabilities: ABLE })
  const stream = await session.open('tools/call', { name: 'raw_echo', _meta: { progressToken: 7 } })
  const heard = []
  for (const method of ['notifications/progress', 'notifications/message', 'elicitation/create'])
    heard.push(await stream.next((message) => message.method === method))
  finish()
  heard.push(await stream.next((message) => message.result !== undefined))
  t.notMatch(JSON.stringify(heard), /secret/)
  for (const message of heard) t.match(JSON.stringify(message), /"own":"kept"/)
  t.match(heard.at(-1), { result: { _meta: { 'io.modelcontextprotocol/related-task': { taskId: '1' } } } })
  stream.close()
})

const VISIT =
  '{"code":-32042,"message":"sign in first","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://example.com/in","message":"Sign in"}]}}'

function retry(response: WireAnswer, action: string): Record<string, unknown> {
  const result = response.response?.result as { inputRequests: Record<string, unknown>; requestState: string }
  const { inputRequests, requestState } = result
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action }]))
  return { inputResponses, requestState }
}

t.test('a URL that must be visited first is an error in one era and a question in the other', async (t) => {
  let failure: string | undefined = VISIT
  const { vmcp, backend } = await refusing(t, () => failure)
  const call = { name: 'echo', arguments: { x: 1 } }
  const session = await openSession(vmcp.url, { capabilities: ABLE })
  t.equal((await session.request('tools/call', call)).response?.error?.code, -32042)

  const asked = await stateless(vmcp.url, 'tools/call', call, { capabilities: ABLE })
  t.match(asked.response?.result, {
    resultType: 'input_required',
    inputRequests: {
      'visit-1': {
        method: 'elicitation/create',
        params: { mode: 'url', message: 'Sign in', url: 'https://example.com/in' },
      },
    },
  })
  t.notMatch(asked.text, 'elicitationId')
  const declined = await stateless(
    vmcp.url,
    'tools/call',
    { ...call, ...retry(asked, 'decline') },
    { capabilities: ABLE },
  )
  t.match(declined.response?.error, { message: /declined to open the URL/ })
  const still = await stateless(
    vmcp.url,
    'tools/call',
    { ...call, ...retry(asked, 'accept') },
    { capabilities: ABLE },
  )
  t.equal(
    still.response?.result?.['resultType'],
    'input_required',
    'not complete, so the question is repeated',
  )
  failure = undefined
  const done = await stateless(
    vmcp.url,
    'tools/call',
    { ...call, ...retry(still, 'accept') },
    { capabilities: ABLE },
  )
  t.match(done.response?.result, { resultType: 'complete', content: [{ text: 'done' }] })
  t.notMatch(backend.requests.at(-1)?.body, /requestState|inputResponses/)

  failure = VISIT
  const unable = await stateless(vmcp.url, 'tools/call', call, { capabilities: { elicitation: {} } })
  t.match(unable, {
    status: 400,
    response: { error: { code: -32021, data: { requiredCapabilities: { elicitation: { url: {} } } } } },
  })
})

t.test('tasks: neither side sees them advertised, and no client gets one unasked', async (t) => {
  let response = '{"task":{"taskId":"t1","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":1}}'
  const backend = await startRawBackend({
    capabilities: '{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}',
    tools: () => ['{"name":"echo","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}'],
    responses: { 'tools/call': () => response },
  })
  const custom = [{ id: 'a/b', methods: ['a/run'], routeBy: 'backend' as const, backend: 'raw' }]
  const vmcp = await startTestVmcp({ raw: backend.url }, { extensions: { custom } })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const capabilities = {
    ...ABLE,
    tasks: { requests: {} },
    extensions: { 'io.modelcontextprotocol/tasks': {}, 'a/b': {} },
  }
  const session = await openSession(vmcp.url, { capabilities })
  t.notHas(session.initialized.result?.['capabilities'], { tasks: {} })
  const call = { name: 'raw_echo', arguments: {}, task: { ttl: 1_000 } }
  t.match((await session.request('tools/call', call)).response?.result, {
    isError: true,
    content: [{ text: /not valid MCP/ }],
  })
  const seen = backend.requests.map(({ body }) => body)
  t.ok(
    seen.some((body) => body.includes('"initialize"') && body.includes('"a/b"')),
    'an enabled extension is forwarded',
  )
  t.notOk(
    seen.some((body) => body.includes('io.modelcontextprotocol/tasks') || body.includes('"task')),
    'tasks are not',
  )
  response = '{"content":[],"task":"a member of that name"}'
  t.same((await session.request('tools/call', call)).response?.result, {
    content: [],
    task: 'a member of that name',
  })
  for (const method of ['tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel']) {
    t.equal((await session.request(method, { taskId: 't1' })).response?.error?.code, -32601, method)
  }
  const discovered = await stateless(vmcp.url, 'server/discover', {}, { capabilities })
  t.notMatch(discovered.text, 'tasks')
  t.match(await stateless(vmcp.url, 'tasks/get', { taskId: 't1' }, { capabilities }), {
    status: 404,
    response: { error: { code: -32601 } },
  })
})

t.test(
  'a stateless backend that responds with a task or an unknown result type violates the protocol',
  async (t) => {
    let type = 'task'
    const fixture = await startFixture({
      era: 'stateless',
      before: (req, res) => {
        if (req.headers['mcp-method'] !== 'tools/call') return false
        let body = ''
        req.on('data', (chunk: Buffer) => (body += chunk.toString()))
        req.on('end', () => {
          const { id } = JSON.parse(body) as { id: unknown }
          t.notMatch(body, 'io.modelcontextprotocol/tasks')
          const result = { resultType: type, taskId: 't1', status: 'working', ttlMs: null }
          json(res, JSON.stringify({ jsonrpc: '2.0', id, result }))
        })
        return true
      },
    })
    const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
    t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    const session = await openSession(vmcp.url)
    for (type of ['task', 'unheard_of']) {
      const call = { name: 'test_simple_text', arguments: {} }
      const modern = await stateless(vmcp.url, 'tools/call', call, { capabilities })
      t.match(modern.response?.result, { resultType: 'complete', isError: true, content: [{}] }, type)
      t.match((await session.request('tools/call', call)).response?.result, { isError: true }, type)
    }
  },
)

for (const [from, to] of [
  ['session', 'stateless'],
  ['stateless', 'session'],
] as const) {
  t.test(`a backend that changes from ${from} to ${to} keeps serving open sessions`, async (t) => {
    const before = await startFixture({ era: from })
    const port = Number(new URL(before.url).port)
    const vmcp = await startTestVmcp(
      { fixture: before.url },
      { aggregation: bareNames('fixture'), telemetry: { enablePrometheusMetricsPath: true } },
    )
    const session = await openSession(vmcp.url)
    const call = { name: 'echo', arguments: { x: 1 } }
    const echoed = { content: [{ text: '{"x":1}' }] }
    t.match((await session.request('tools/call', call)).response?.result, echoed)
    t.match((await stateless(vmcp.url, 'tools/call', call)).response?.result, echoed)
    await before.close()
    const after = await startFixture({ era: to, port })
    t.teardown(() => Promise.all([vmcp.close(), after.close()]))
    t.match((await session.request('tools/call', call)).response?.result, echoed)
    t.match((await stateless(vmcp.url, 'tools/call', call)).response?.result, echoed)
    const status = (await (await fetch(`${vmcp.origin}/status`)).json()) as {
      backends: { mcp_revision: string }[]
    }
    t.ok(status.backends)
    const metrics = await (await fetch(`${vmcp.origin}/metrics`)).text()
    t.match(metrics, /gatehouse_vmcp_backend_revision_reclassifications_total\{[^}]*fixture[^}]*\} 1/)
  })
}

t.test(
  'a backend that requires other headers than its list declares: the list is reread and the call repeated once',
  async (t) => {
    let marked = false
    let helps = true
    const calls: unknown[] = []
    const fixture = await startFixture({
      era: 'stateless',
      before: (req, res) => {
        const method = req.headers['mcp-method']
        if (method !== 'tools/list' && method !== 'tools/call') return false
        let body = ''
        req.on('data', (chunk: Buffer) => (body += chunk.toString()))
        req.on('end', () => {
          const { id } = JSON.parse(body) as { id: unknown }
          const response = (part: object, status = 200) => {
            res.writeHead(status, { 'content-type': 'application/json' })
            res.end(JSON.stringify({ jsonrpc: '2.0', id, ...part }))
          }
          const region = marked ? { type: 'string', 'x-mcp-header': 'Region' } : { type: 'string' }
          const tool = { name: 'here', inputSchema: { type: 'object', properties: { region } } }
          if (method === 'tools/list')
            return response({
              result: { resultType: 'complete', tools: [tool], ttlMs: 0, cacheScope: 'private' },
            })
          calls.push(req.headers['mcp-param-region'])
          if (marked && (!helps || req.headers['mcp-param-region'] !== 'eu'))
            return response({ error: { code: -32020, message: 'Header mismatch' } }, 400)
          return response({ result: { resultType: 'complete', content: [{ type: 'text', text: 'fine' }] } })
        })
        return true
      },
    })
    const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
    t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
    const session = await openSession(vmcp.url)
    const call = { name: 'here', arguments: { region: 'eu' } }
    t.match((await session.request('tools/call', call)).response?.result, { content: [{ text: 'fine' }] })
    marked = true
    t.match((await session.request('tools/call', call)).response?.result, { content: [{ text: 'fine' }] })
    t.same(calls, [undefined, undefined, 'eu'])
    helps = false
    const hopeless = await session.request('tools/call', call)
    t.match(hopeless.response?.result, { isError: true, content: [{ text: /headers of the call/ }] })
    t.equal(calls.length, 5, 'repeated once, not forever')
  },
)
