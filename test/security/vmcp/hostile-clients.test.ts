/**
 * Clients that send invalid messages, or do not read what they requested, are rejected or cut off and cause no load.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { cutWhenStuck, maxBufferedBytes } from '../../../runtime/vmcp/clients/stream.ts'
import { openSession, post, stateless, statelessRequest } from '../../helpers/mcp/wire.ts'
import { type RawBackend, startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(180_000)

async function start(t: Test, responses: Parameters<typeof startRawBackend>[0] = {}) {
  const backend: RawBackend = await startRawBackend(responses)
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  return { backend, vmcp }
}

/** Sends a request and reads only its first bytes. */
async function sendAndStop(url: string, head: Record<string, string>, body: string): Promise<Socket> {
  const { hostname, port, pathname } = new URL(url)
  const socket = connect(Number(port), hostname)
  const lines = Object.entries({
    host: `${hostname}:${port}`,
    ...head,
    'content-length': String(body.length),
  })
  socket.write(
    `POST ${pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n${body}`,
  )
  await once(socket, 'readable')
  return socket
}

t.test('endless nesting is a message error at every position', async (t) => {
  const { vmcp, backend } = await start(t)
  const session = await openSession(vmcp.url)
  const deep = '['.repeat(50_000) + ']'.repeat(50_000)
  for (const body of [
    deep,
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw_echo","arguments":{"a":${deep}}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"ping","extra":${deep}}`,
    `{"jsonrpc":"2.0","id":1,"result":${deep}}`,
  ]) {
    const { status, response } = await post(vmcp.url, body, session.headers)
    t.equal(status, 400, body.slice(0, 60))
    t.match(String(response?.error?.code), /^-32(?:700|60\d)$/)
  }
  t.equal(backend.requests.filter(({ method }) => method === 'tools/call').length, 0)
  t.equal((await session.request('ping')).status, 200)
})

t.test('an ambiguous message is rejected', async (t) => {
  const { vmcp, backend } = await start(t)
  const session = await openSession(vmcp.url)
  for (const body of [
    '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"raw_echo"}}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","\\u006dethod":"tools/call","params":{"name":"raw_echo"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"raw_echo"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","NAME":"raw_echo"}}',
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    '{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
    '{"jsonrpc":"2.0","id":{"$":1},"method":"ping"}',
    '{"jsonrpc":"2.0","id":null,"method":"ping"}',
  ]) {
    const { status, text } = await post(vmcp.url, body, session.headers)
    t.equal(status, 400, body)
    t.notMatch(text, '"id":null')
  }
  t.equal(backend.requests.filter(({ method }) => method === 'tools/call').length, 0)
})

t.test('headers that contradict the message or each other are rejected', async (t) => {
  const { vmcp, backend } = await start(t)
  const { body, headers } = statelessRequest('tools/call', { name: 'raw_echo' })
  for (const [name, value] of [
    ['mcp-name', 'raw_other'],
    ['mcp-method', 'tools/list'],
    ['mcp-protocol-version', '2025-11-25'],
  ] as const) {
    const { status, response } = await post(vmcp.url, body, { ...headers, [name]: value })
    t.equal(status, 400, name)
    t.equal(response?.error?.code, -32020, name)
  }
  const session = await openSession(vmcp.url)
  const socket = await sendAndStop(
    vmcp.url,
    {
      'content-type': 'application/json',
      'mcp-session-id': session.id,
      'Mcp-Session-Id': 'another',
    },
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw_echo"}}',
  )
  t.match(String(socket.read()), /^HTTP\/1\.1 400 /)
  socket.destroy()
  t.equal(backend.requests.filter(({ method }) => method === 'tools/call').length, 0)
})

t.test('answers to unasked questions are accepted and dropped', async (t) => {
  const { vmcp, backend } = await start(t)
  const session = await openSession(vmcp.url)
  await session.request('tools/list')
  const before = backend.requests.length
  for (const id of [1, 'ask-1', 'x'.repeat(10_000)])
    t.equal((await session.response(id, { action: 'accept' })).status, 202)
  t.equal(backend.requests.length, before)
})

t.test('a client that reads nothing of a stream is disconnected before memory fills', async (t) => {
  const params = `{"level":"info","data":"${'x'.repeat(256 * 1024)}"}`
  const event = `data: {"jsonrpc":"2.0","method":"notifications/message","params":${params}}\n\n`
  const enough = 8 * maxBufferedBytes
  let sent = 0
  let over: (wasCut: boolean) => void = () => {}
  const outcome = new Promise<boolean>((resolve) => {
    over = resolve
  })
  const { vmcp } = await start(t, {
    capabilities: '{"tools":{"listChanged":true},"logging":{}}',
    responses: {
      'logging/setLevel': () => '{}',
      'tools/call': async ({ res }) => {
        const gone = once(res, 'close')
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        while (!res.destroyed && sent < enough) {
          sent += event.length
          if (!res.write(event)) await Promise.race([once(res, 'drain'), gone])
        }
        over(res.destroyed)
        res.destroy()
        return undefined
      },
    },
  })
  const session = await openSession(vmcp.url)
  await session.request('logging/setLevel', { level: 'debug' })
  const socket = await sendAndStop(
    vmcp.url,
    { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...session.headers },
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw_echo"}}',
  )
  t.ok(await outcome, 'the backend is stopped, too')
  socket.destroy()
  t.equal((await session.request('ping')).status, 200)
})

t.test('a response that no client reads is dropped after its timeout', async (t) => {
  const server = createServer((_req, res) => {
    res.writeHead(200, { 'content-length': 64 * 1024 * 1024 })
    res.end(Buffer.alloc(64 * 1024 * 1024))
    cutWhenStuck(res, 100)
    res.once('close', () => dropped(res.writableFinished))
  })
  let dropped: (finished: boolean) => void = () => {}
  const outcome = new Promise<boolean>((resolve) => {
    dropped = resolve
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const socket = await sendAndStop(`http://127.0.0.1:${port}/`, {}, '')
  socket.on('error', () => {})
  t.equal(await outcome, false)
  socket.destroy()
})

t.test('invented capabilities cause few backend sessions, because only known ones count', async (t) => {
  const { vmcp, backend } = await start(t)
  const opened = () => backend.requests.filter(({ method }) => method === 'initialize').length
  const kind = (name: string) => ({
    experimental: { [name]: {} },
    elicitation: { form: { applyDefaults: true } },
  })
  await stateless(vmcp.url, 'tools/list', {}, { capabilities: kind('known') })
  for (let i = 0; i < 150; i++) {
    const { response } = await stateless(vmcp.url, 'tools/list', {}, { capabilities: kind(`x${i}`) })
    t.match(response?.result, { tools: [{ name: 'raw_echo' }] }, `untrusted client ${i}`)
    if (i % 10 === 0)
      await stateless(
        vmcp.url,
        'tools/call',
        { name: 'raw_echo', arguments: {} },
        { capabilities: { experimental: { [`y${i}`]: {} } } },
      )
  }
  t.ok(opened() < 60, `${opened()} sessions at the backend`)
  const before = opened()
  await stateless(vmcp.url, 'tools/list', {}, { capabilities: kind('known') })
  t.equal(opened(), before, 'known clients are still known')
})

t.test('information about the client is limited in size', async (t) => {
  const { vmcp } = await start(t)
  const capabilities = { experimental: { x: 'y'.repeat(20_000) } }
  const modern = await stateless(vmcp.url, 'tools/list', {}, { capabilities })
  t.match(modern, { status: 400, response: { error: { code: -32602, message: /capabilities/ } } })
  await t.rejects(openSession(vmcp.url, { capabilities }), /-32602/)
  const twice =
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{},"roots":{}}}}'
  t.match(await post(vmcp.url, twice), { status: 400, response: { error: { code: -32602 } } })
  const long = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'n'.repeat(100_000), version: '1' },
  }
  t.equal(
    (await post(vmcp.url, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: long })))
      .status,
    200,
  )
})

t.test('ids of any length and size are returned unchanged, or rejected', async (t) => {
  const { vmcp } = await start(t)
  const session = await openSession(vmcp.url)
  const call = (id: string) =>
    post(
      vmcp.url,
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"raw_echo"}}`,
      session.headers,
    )
  for (const id of [
    `"${'i'.repeat(200_000)}"`,
    '9'.repeat(400),
    '-0',
    '12345678901234567890123',
    '"\\u0000\\ud83d\\ude00 \\" \\\\"',
    '""',
  ]) {
    const { text, status } = await call(id)
    t.equal(status, 200, id.slice(0, 30))
    t.ok(text.startsWith(`{"jsonrpc":"2.0","id":${id},"result":`), id.slice(0, 30))
  }
  for (const id of ['1.5', '1e3', 'true', '[1]', '{}', 'null']) {
    const { text, status } = await call(id)
    t.equal(status, 400, id)
    t.notMatch(text, '"id"')
  }
})

t.test('forged and malformed session ids are unknown, in any form', async (t) => {
  const { vmcp, backend } = await start(t)
  const session = await openSession(vmcp.url)
  await session.request('tools/list')
  const before = backend.requests.length
  const [half = ''] = session.id.split('-')
  for (const id of [
    half,
    `${session.id}0`,
    session.id.toUpperCase().replace(/[A-F]/, 'G'),
    '0',
    '../../etc/passwd',
    'gatehouse:vmcp:session:*',
    '*',
    '%00',
    '__proto__',
    'x'.repeat(4_000),
  ]) {
    const headers = { ...session.headers, 'mcp-session-id': id }
    t.equal((await post(vmcp.url, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', headers)).status, 404, id)
    t.equal((await fetch(vmcp.url, { headers: { ...headers, accept: 'text/event-stream' } })).status, 404, id)
    t.equal((await fetch(vmcp.url, { method: 'DELETE', headers })).status, 404, id)
  }
  t.equal(backend.requests.length, before)
  t.equal((await session.request('ping')).status, 200, 'the real session still works')
})

t.test('subscriptions of one session are bounded', async (t) => {
  const { vmcp } = await start(t, {
    capabilities: '{"tools":{},"resources":{"subscribe":true}}',
    responses: {
      'resources/list': () => '{"resources":[]}',
      'resources/templates/list': () => '{"resourceTemplates":[{"uriTemplate":"test://{id}","name":"t"}]}',
      'resources/subscribe': () => '{}',
    },
  })
  const session = await openSession(vmcp.url)
  // Small batches are never rejected for overload.
  for (let i = 0; i < 1_000; i += 50) {
    const answered = await Promise.all(
      Array.from({ length: 50 }, (_, k) =>
        session.request('resources/subscribe', { uri: `test://${i + k}` }),
      ),
    )
    for (const { status, response } of answered)
      t.match({ status, response }, { status: 200, response: { result: {} } })
  }
  const { response } = await session.request('resources/subscribe', { uri: 'test://one-more' })
  t.match(response?.error, { code: -32600, message: /too many subscriptions/ })
  t.same((await session.request('ping')).response?.result, {})
})
