/**
 * Stateless clients of stdio servers, and session clients of stateless programs, on the wire: which clients share a
 * process, which messages wait, and which are rejected. The programs are the fixture backend, and small ones for
 * errors.
 */
import { EventEmitter, once } from 'node:events'
import t from 'tap'
import { makeCaller } from '../../../../../runtime/net/index.ts'
import {
  openSession,
  post,
  stateless,
  statelessRequest,
  statelessStream,
} from '../../../../helpers/mcp/wire.ts'
import { fakeAuthenticator, startRig } from '../../../../helpers/proxy/rig.ts'
import { bareNames, startTestVmcp } from '../../../../helpers/vmcp/vmcp.ts'
import { askable, bridgeTo, program } from './rig.ts'

t.setTimeout(120_000)
// Each test has its own processes.
t.jobs = 4

/** The tool appears and disappears with the state of one process. */
async function hasExtraTool(response: Promise<{ text: string }>): Promise<boolean> {
  return (await response).text.includes('"extra_tool"')
}

function isToolChange({ method }: { method?: string }): boolean {
  return method === 'notifications/tools/list_changed'
}

for (const era of ['session', 'stateless'])
  t.test(
    `${era} program: the responses of the stateless era are complete, with their statuses`,
    async (t) => {
      const { url } = await bridgeTo(t, [program, era])
      const discovered = await stateless(url, 'server/discover')
      t.equal(discovered.status, 200)
      t.match(discovered.response?.result, {
        resultType: 'complete',
        capabilities: { tools: { listChanged: true } },
        _meta: { 'io.modelcontextprotocol/serverInfo': { name: `fixture-${era}` } },
      })
      t.match(discovered.response?.result?.['supportedVersions'], ['2026-07-28'])
      t.match((await stateless(url, 'tools/list')).response?.result, {
        resultType: 'complete',
        cacheScope: 'private',
        ttlMs: Number,
      })
      const cases: [method: string, params: Record<string, unknown>, status: number, code: number][] = [
        ['resources/read', { uri: 'test://nothing' }, 400, -32602],
        ['no/such/method', {}, 404, -32601],
        ['ping', {}, 404, -32601],
        ['logging/setLevel', { level: 'info' }, 404, -32601],
        ['subscriptions/listen', {}, 400, -32602],
        ['tools/call', { name: 'test_sampling', arguments: { prompt: 'x' } }, 400, -32021],
      ]
      for (const [method, params, status, code] of cases) {
        const response = await stateless(url, method, params)
        t.match({ status: response.status, code: response.response?.error?.code }, { status, code }, method)
      }
      const { body, headers } = statelessRequest('tools/list')
      const { 'mcp-method': _, ...lacking } = headers
      t.match((await post(url, body, lacking)).response?.error, { code: -32020 })
      const future = { ...headers, 'mcp-protocol-version': '2099-01-01' }
      t.match((await post(url, body.replaceAll('2026-07-28', '2099-01-01'), future)).response?.error, {
        code: -32022,
        data: { supported: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] },
      })
      for (const method of ['GET', 'DELETE']) {
        const refused = await fetch(url, { method, headers: { 'mcp-protocol-version': '2026-07-28' } })
        t.match(
          { status: refused.status, allow: refused.headers.get('allow') },
          { status: 405, allow: 'POST' },
        )
      }
      t.equal((await post(url, '{"jsonrpc":"2.0","method":"notifications/x"}', headers)).status, 202)
    },
  )

for (const era of ['session', 'stateless'])
  t.test(`${era} program: a mirrored argument that differs is rejected once the tool is known`, async (t) => {
    const { url } = await bridgeTo(t, [program, era])
    const params = { name: 'test_mirrored_header', arguments: { region: 'eu' } }
    await stateless(url, 'tools/list')
    t.match((await stateless(url, 'tools/call', params)).response?.error, { code: -32020 })
    const headers = { 'mcp-param-region': 'eu' }
    t.match((await stateless(url, 'tools/call', params, { headers })).response?.result, { content: [{}] })
  })

t.test('session program: consecutive requests use one process, and callers never share one', async (t) => {
  const { url } = await bridgeTo(t, [program, 'session'])
  const as = (caller: string, capabilities: unknown = {}) => ({
    headers: { 'x-gatehouse-caller': caller },
    capabilities,
  })
  for (const capabilities of [{}, askable]) {
    await stateless(url, 'tools/call', { name: 'test_trigger_tool_change' }, as('ada', capabilities))
    t.ok(await hasExtraTool(stateless(url, 'tools/list', {}, as('ada', capabilities))))
    t.notOk(await hasExtraTool(stateless(url, 'tools/list', {}, as('bob', capabilities))))
    t.notOk(
      await hasExtraTool(stateless(url, 'tools/list', {}, { capabilities })),
      'and neither does an anonymous caller',
    )
  }
})

t.test('session program: the proxy in front names the caller, and clients cannot override it', async (t) => {
  const { port } = await bridgeTo(t, [program, 'session'])
  const incoming = fakeAuthenticator((exchange) => {
    const subject = exchange.req.headers.authorization?.slice(7) ?? ''
    exchange.caller = makeCaller({ issuer: 'https://issuer.example', subject, claims: {} })
  })
  const rig = await startRig(`http://127.0.0.1:${port}`, {
    incoming: () => incoming,
    identifyCallers: true,
  })
  t.teardown(() => rig.close())
  const as = (name: string, more = {}) => ({ headers: { authorization: `Bearer ${name}`, ...more } })
  await stateless(`${rig.url}/mcp`, 'tools/call', { name: 'test_trigger_tool_change' }, as('ada'))
  t.ok(await hasExtraTool(stateless(`${rig.url}/mcp`, 'tools/list', {}, as('ada'))))
  t.notOk(await hasExtraTool(stateless(`${rig.url}/mcp`, 'tools/list', {}, as('bob'))))
  const pretended = as('ada', { 'x-gatehouse-caller': 'bob' })
  t.ok(await hasExtraTool(stateless(`${rig.url}/mcp`, 'tools/list', {}, pretended)))
})

t.test('session program: a question only reaches the client of its call', async (t) => {
  const { url } = await bridgeTo(t, [program, 'session'])
  const call = (message: string, more: Record<string, unknown> = {}) =>
    stateless(
      url,
      'tools/call',
      { name: 'test_elicitation', arguments: { message }, ...more },
      { capabilities: askable },
    )
  const asked = await Promise.all(['for ada', 'for bob'].map((message) => call(message)))
  const states = asked.map(({ response }, n) => {
    t.match(response?.result, {
      resultType: 'input_required',
      inputRequests: {
        'ask-1': { method: 'elicitation/create', params: { message: ['for ada', 'for bob'][n] } },
      },
    })
    return String(response?.result?.['requestState'])
  })
  t.not(states[0], states[1])
  const response = (name: string) => ({ 'ask-1': { action: 'accept', content: { username: name } } })
  const wrong = await call('for ada', { requestState: states[1], inputResponses: response('ada') })
  t.match(
    wrong.response?.error,
    { code: -32602, message: /no longer waiting/ },
    'a state is valid for its request only',
  )
  const done = await Promise.all([
    call('for ada', { requestState: states[0], inputResponses: response('ada') }),
    call('for bob', { requestState: states[1], inputResponses: response('bob') }),
  ])
  t.match(done[0]?.text, 'ada')
  t.match(done[1]?.text, 'bob')
  const again = await call('for ada', { requestState: states[0], inputResponses: response('ada') })
  t.match(again.response?.error, { code: -32602 }, 'and only once')
})

for (const era of ['session', 'stateless'])
  t.test(`${era} program: a client that disconnects cancels its call`, async (t) => {
    const lines = new EventEmitter()
    const { url } = await bridgeTo(t, [program, era], { onLine: (line) => lines.emit(line) })
    await stateless(url, 'tools/list')
    const waiting = once(lines, 'fixture: waiting')
    const cancelled = once(lines, 'fixture: cancelled')
    const { body, headers } = statelessRequest('tools/call', { name: 'wait' })
    const abort = new AbortController()
    const call = fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body,
      signal: abort.signal,
    })
    const refused = t.rejects(call)
    await waiting
    abort.abort()
    await refused
    await cancelled
  })

for (const era of ['session', 'stateless'])
  t.test(`${era} program: listeners get what they subscribed to, under their own ids`, async (t) => {
    const { url } = await bridgeTo(t, [program, era])
    const filter = { toolsListChanged: true, resourceSubscriptions: ['test://watched-resource'] }
    const both = await statelessStream(url, 'subscriptions/listen', { notifications: filter })
    const tools = await statelessStream(url, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    })
    const acks = [await both.next(), await tools.next()]
    t.match(acks[0]?.params?.['notifications'], filter)
    t.match(acks[1]?.params?.['notifications'], { toolsListChanged: true })
    t.notSame(acks[0]?.params?.['_meta'], acks[1]?.params?.['_meta'])
    await stateless(url, 'tools/call', { name: 'test_trigger_tool_change' })
    t.same((await both.next(isToolChange)).params?.['_meta'], acks[0]?.params?.['_meta'])
    t.same((await tools.next(isToolChange)).params?.['_meta'], acks[1]?.params?.['_meta'])
    await stateless(url, 'tools/call', { name: 'test_trigger_resource_update' })
    const updated = await both.next(({ method }) => method === 'notifications/resources/updated')
    t.match(updated.params, { uri: 'test://watched-resource', _meta: acks[0]?.params?.['_meta'] })
    t.same(tools.pending, [])
    both.close()
    tools.close()
  })

for (const era of ['session', 'stateless'])
  t.test(
    `${era} program: a program that exits is restarted, and waiting requests get an error`,
    async (t) => {
      // Exits on a call, as in a crash.
      const file = new URL(`file://${process.cwd()}/${program}`).href
      const dies = `process.argv[2] = '${era}'; await import('${file}'); process.stdin.on('data', (chunk) => { if (String(chunk).includes('"die"')) process.exit(1) })`
      const { url } = await bridgeTo(t, ['--input-type=module', '-e', dies, 'x'])
      t.equal((await stateless(url, 'tools/list')).status, 200)
      const listener = await statelessStream(url, 'subscriptions/listen', {
        notifications: { toolsListChanged: true },
      })
      await listener.next()
      const died = await stateless(url, 'tools/call', { name: 'die' })
      t.match(died.response?.error, { code: -32603, message: /the server has stopped/ })
      await listener.ended
      t.equal(listener.pending.length, 0, 'the stream is aborted, not closed')
      t.equal((await stateless(url, 'tools/list')).status, 200)
    },
  )

t.test('limits: processes are limited for both eras together, and idle ones end to make space', async (t) => {
  const { url } = await bridgeTo(t, [program, 'session'], { maxSessions: 4 })
  const as = (caller: string) => ({ headers: { 'x-gatehouse-caller': caller } })
  for (const caller of ['a', 'b', 'c', 'd', 'e'])
    t.equal((await stateless(url, 'tools/list', {}, as(caller))).status, 200)
  // Two processes wait for a response of their clients. A third client replaces the oldest one.
  const ask = (caller: string) =>
    stateless(
      url,
      'tools/call',
      { name: 'test_elicitation', arguments: { message: 'x' } },
      { ...as(caller), capabilities: askable },
    )
  t.match((await ask('a')).response?.result, { resultType: 'input_required' })
  t.match((await ask('b')).response?.result, { resultType: 'input_required' })
  t.match((await ask('c')).response?.result, { resultType: 'input_required' })
  await openSession(url)
  await openSession(url)
  await t.rejects(openSession(url), /503/)
})

t.test(
  "stateless program, session client: responses have the session era's form, and requests carry its log level",
  async (t) => {
    const { url } = await bridgeTo(t, [program, 'stateless'])
    const session = await openSession(url, { capabilities: askable })
    t.match(session.initialized.result, {
      protocolVersion: '2025-11-25',
      serverInfo: { name: 'fixture-stateless' },
      capabilities: { tools: { listChanged: true }, logging: {} },
    })
    t.same((await session.request('ping')).response?.result, {})
    t.match((await session.request('logging/setLevel', { level: 'loud' })).response?.error, { code: -32602 })
    t.match((await session.request('resources/read', { uri: 'test://nothing' })).response?.error, {
      code: -32002,
    })
    const { result } = (await session.request('tools/list')).response ?? {}
    t.notOk(result && ('resultType' in result || 'ttlMs' in result || 'cacheScope' in result))
    t.match((await session.request('no/such/method')).response?.error, { code: -32601 })
  },
)

t.test('stateless program, session client: a declined question goes to the program', async (t) => {
  const { url } = await bridgeTo(t, [program, 'stateless'])
  const session = await openSession(url, { capabilities: askable })
  const call = await session.open('tools/call', { name: 'test_elicitation', arguments: { message: 'who?' } })
  const question = await call.next(({ method }) => method === 'elicitation/create')
  t.match(question.params, { message: 'who?' })
  await session.response(question.id, { action: 'decline' })
  const { result } = await call.next(({ result: done }) => done !== undefined)
  t.match(result, { content: [{ text: /action=decline/ }] })
})

t.test('with a virtual server in front, each of its sessions keeps one process', async (t) => {
  const { url } = await bridgeTo(t, [program, 'session'])
  const vmcp = await startTestVmcp({ fixture: url }, { aggregation: bareNames('fixture') })
  t.teardown(() => vmcp.close())
  const [ada, bob] = [await openSession(vmcp.url), await openSession(vmcp.url)]
  await bob.request('tools/list')
  const stream = await ada.listen()
  await ada.request('tools/list')
  await ada.request('tools/call', { name: 'test_trigger_tool_change' })
  await stream.next(isToolChange)
  t.ok(await hasExtraTool(ada.request('tools/list')))
  t.notOk(await hasExtraTool(bob.request('tools/list')))
  stream.close()
})

t.test(
  'unanswered questions block no client, and the caller with the most loses its oldest one',
  async (t) => {
    const { url } = await bridgeTo(t, [program, 'session'], { maxSessions: 6 })
    const params = { name: 'test_elicitation', arguments: { message: 'x' } }
    const ask = (caller: string, more = {}) => {
      const options = { capabilities: askable, headers: { 'x-gatehouse-caller': caller } }
      return stateless(url, 'tools/call', { ...params, ...more }, options)
    }
    const asked = { result: { resultType: 'input_required' } }
    const { response } = await ask('one')
    t.match(response, asked)
    // Stateless clients have three processes in total.
    for (let n = 0; n < 5; n++) t.match((await ask('two')).response, asked)
    const answered = await ask('one', {
      requestState: response?.result?.['requestState'],
      inputResponses: { 'ask-1': { action: 'decline' } },
    })
    t.match(answered.response, { result: { resultType: 'complete' } })
  },
)
