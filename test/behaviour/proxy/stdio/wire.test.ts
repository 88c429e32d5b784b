/** `proxy stdio`: its output, stateless requests, and its limits. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { rpc, type Seen, startRig, startUpstream } from '../../../helpers/proxy/rig.ts'
import { initialize, startStdio, statelessMeta } from '../../../helpers/proxy/stdio-rig.ts'
import { untyped } from '../../../helpers/untyped.ts'
import { program } from '../../../helpers/gatehouse.ts'

proves('1.command.stdio')

interface Incoming {
  readonly id?: number | string
  readonly method?: string
  readonly params?: { readonly name?: string; readonly cursor?: string; readonly [key: string]: unknown }
}

function messageOf(seen: Seen): Incoming {
  return seen.body === '' ? {} : untyped(JSON.parse(seen.body))
}

function response(res: ServerResponse, message: unknown, status = 200): void {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(message))
}

await t.test('output: contains only messages, whatever the server sends', async (t) => {
  const bodies: Record<string, [contentType: string, body: string]> = {
    html: ['text/html', '<h1>captive portal</h1>'],
    text: ['application/json', 'oops'],
    empty: ['application/json', ''],
    notRpc: ['application/json', '{"ok":true}'],
    otherId: ['application/json', '{"jsonrpc":"2.0","id":99999,"error":{"code":1,"message":"m"}}'],
    garbage: ['text/event-stream', 'data: <h1>\n\ndata: {"a":1}\n\nevent: ping\ndata: x\n\n'],
  }
  const target = await startUpstream((seen, res) => {
    const [type = '', body = ''] = bodies[messageOf(seen).method ?? ''] ?? []
    res.writeHead(200, { 'Content-Type': type }).end(body)
  })
  t.teardown(() => target.close())
  const bridge = startStdio(t, `${target.url}/mcp`)
  for (const [id, method] of Object.keys(bodies).entries()) {
    bridge.send(rpc(id, method))
    // A response with an unknown id is forwarded, because it is a valid message for the client to check.
    if (method === 'otherId') t.match(await bridge.message(), { id: 99999 })
    const line = await bridge.next()
    t.match(JSON.parse(line), { jsonrpc: '2.0', id, error: { code: -32603 } }, method)
    t.notMatch(line, /portal|oops/)
  }
})

await t.test(
  'output: several messages in one response are one line each, and an error without id gets the request’s id',
  async (t) => {
    const target = await startUpstream((seen, res) => {
      const { id, method } = messageOf(seen)
      const error = { jsonrpc: '2.0', id: null, error: { code: -32601, message: 'no' } }
      if (method === 'null') response(res, error)
      else
        response(res, [
          { jsonrpc: '2.0', method: 'notifications/progress' },
          { jsonrpc: '2.0', id, result: {} },
        ])
    })
    t.teardown(() => target.close())
    const bridge = startStdio(t, `${target.url}/mcp`)
    bridge.send(rpc(1, 'several'))
    t.equal(await bridge.next(), '{"jsonrpc":"2.0","method":"notifications/progress"}')
    t.equal(await bridge.next(), '{"jsonrpc":"2.0","id":1,"result":{}}')
    bridge.send('{"jsonrpc":"2.0","id":9007199254740993,"method":"null"}')
    t.equal(
      await bridge.next(),
      '{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32601,"message":"no"}}',
      'the id keeps its digits',
    )
  },
)

await t.test('input: a line that is not a message gets an error, with its id if readable', async (t) => {
  const target = await startUpstream((seen, res) =>
    response(res, { jsonrpc: '2.0', id: messageOf(seen).id, result: {} }),
  )
  t.teardown(() => target.close())
  const bridge = startStdio(t, `${target.url}/mcp`)
  bridge.send('nonsense')
  t.same(await bridge.message(), { jsonrpc: '2.0', error: { code: -32700, message: 'Parse error' } })
  bridge.send('[{"jsonrpc":"2.0","id":1,"method":"a"}]')
  t.match(await bridge.message(), { error: { code: -32600 } })
  bridge.send('{"jsonrpc":"2.0","id":1}')
  t.match(await bridge.message(), { id: 1, error: { code: -32600 } })
  bridge.input.write(Buffer.concat([Buffer.alloc(64 * 1024 * 1024 + 1, 0x20), Buffer.from('\n')]))
  t.match(await bridge.message(), { error: { code: -32600, message: /too large/ } })
  bridge.input.write(`\r\n\n${rpc(2, 'ping')}\r\n`)
  t.match(await bridge.message(), { id: 2, result: {} }, 'and the bridge continues')
  t.equal(target.seen.length, 1, 'the server received none of it')
})

await t.test(
  'input: a line of up to 64 MiB reaches the server, and a longer one is rejected with its id',
  async (t) => {
    const most = 64 * 1024 * 1024
    const target = await startUpstream((seen, res) =>
      response(res, { jsonrpc: '2.0', id: messageOf(seen).id, result: { bytes: seen.body.length } }),
    )
    t.teardown(() => target.close())
    const bridge = startStdio(t, `${target.url}/mcp`)
    const line = (head: string, tail: string, bytes: number): string =>
      `${head}${'a'.repeat(bytes - head.length - tail.length)}${tail}`
    const callOf = (id: number, bytes: number): string =>
      line(`{"jsonrpc":"2.0","id":${id},"method":"x","params":{"a":"`, '"}}', bytes)
    bridge.send(callOf(1, 9_000_000))
    t.match(await bridge.message(), { id: 1, result: { bytes: 9_000_000 } })
    bridge.send(callOf(2, most))
    t.match(await bridge.message(), { id: 2, result: { bytes: most } })
    bridge.send(callOf(3, most + 1))
    t.match(await bridge.message(), { id: 3, error: { code: -32600, message: /too large/ } })
    bridge.send(line('{"method":"x","params":{"a":"', '"},"jsonrpc":"2.0","id":"late"}', most + 1))
    t.match(await bridge.message(), { id: 'late', error: { code: -32600 } }, 'the id is at the end')
    bridge.send(line('{"params":{"a":"', '"},"id":"4","n":{"id":5}}', most + 1))
    t.notOk('id' in (await bridge.message()), 'an id that may belong to another object is not used')
    bridge.send(callOf(6, 1_000))
    t.match(await bridge.message(), { id: 6, result: { bytes: 1_000 } }, 'the next one works')
  },
)

await t.test(
  'server: a request that the server finds too large gets its response, and the next one works',
  async (t) => {
    const origin = await startUpstream((seen, res) =>
      response(res, { jsonrpc: '2.0', id: messageOf(seen).id, result: {} }),
    )
    // A proxy with the usual limit is in between.
    const between = await startRig(origin.url)
    t.teardown(() => Promise.all([between.close(), origin.close()]))
    const bridge = startStdio(t, `${between.url}/mcp`)
    for (let round = 1; round < 20; round += 2) {
      bridge.send(rpc(round, 'x', { a: 'a'.repeat(9_000_000) }))
      t.match(await bridge.message(), { id: round, error: { message: /HTTP 413/ } })
      bridge.send(rpc(round + 1, 'x'))
      t.match(await bridge.message(), { id: round + 1, result: {} })
    }
  },
)

await t.test(
  'stateless: a long first request blocks no other request, and closing its stream cancels it',
  async (t) => {
    const { promise: closed, resolve: close } = Promise.withResolvers<void>()
    const target = await startUpstream((seen, res) => {
      const { id, method } = messageOf(seen)
      if (method === 'subscriptions/listen') {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        res.write('data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}\n\n')
        res.once('close', close)
      } else response(res, { jsonrpc: '2.0', id, result: {} })
    })
    t.teardown(() => target.close())
    const bridge = startStdio(t, `${target.url}/mcp`)
    bridge.send(rpc('listen:1', 'subscriptions/listen', { _meta: statelessMeta }))
    t.match(await bridge.message(), { method: 'notifications/subscriptions/acknowledged' })
    bridge.send(rpc(2, 'tools/list', { _meta: statelessMeta }))
    t.match(await bridge.message(), { id: 2 })
    bridge.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'listen:1' } })
    await closed
    bridge.send(rpc(3, 'tools/list', { _meta: statelessMeta }))
    t.match(await bridge.message(), { id: 3 }, 'the cancelled request got no response')
    t.notOk(
      target.seen.some(({ body }) => body.includes('cancelled')),
      'no cancellation message is sent to the server',
    )
    t.equal(await bridge.end(), true)
    t.notOk(
      target.seen.some(({ method }) => method !== 'POST'),
      'there is no session to end',
    )
  },
)

await t.test(
  'stateless: arguments are mirrored, and a rejection for a missing header causes a list of the tools',
  async (t) => {
    const tool = (name: string, header: string) => ({
      name,
      inputSchema: { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': header } } },
    })
    let header = 'Region'
    const target = await startUpstream((seen, res) => {
      const { id, method, params } = messageOf(seen)
      const result = (value: unknown): void => response(res, { jsonrpc: '2.0', id, result: value })
      if (method === 'tools/list') {
        if (params?.cursor === undefined) return result({ tools: [], nextCursor: 'two' })
        return result({ tools: [tool('mirrored', header)] })
      }
      if (params?.name === 'never' || seen.headers[`mcp-param-${header.toLowerCase()}`] === undefined) {
        return response(res, { jsonrpc: '2.0', id, error: { code: -32020, message: 'Header mismatch' } }, 400)
      }
      result({ saw: seen.headers[`mcp-param-${header.toLowerCase()}`] })
    })
    t.teardown(() => target.close())
    const bridge = startStdio(t, `${target.url}/mcp`)
    const call = (id: number, name: string): void =>
      bridge.send(
        rpc(id, 'tools/call', { name, arguments: { a: 'é' }, _meta: { ...statelessMeta, progressToken: 1 } }),
      )
    call(1, 'mirrored')
    t.match(await bridge.message(), { id: 1, result: { saw: '=?base64?w6k=?=' } })
    t.same(
      target.seen.map((seen) => messageOf(seen).method),
      ['tools/call', 'tools/list', 'tools/list', 'tools/call'],
    )
    t.notMatch(target.seen[1]?.body, 'progressToken')
    call(2, 'mirrored')
    t.match(await bridge.message(), { id: 2, result: {} })
    t.equal(target.seen.length, 5, 'known tools are not listed again')
    header = 'Zone'
    call(3, 'mirrored')
    t.match(await bridge.message(), { id: 3, result: {} }, 'a changed tool is listed again')
    call(4, 'never')
    t.match(await bridge.message(), { id: 4, error: { code: -32020 } }, 'a repeated rejection is forwarded')
  },
)

await t.test('order: initialize comes first, and all other requests run concurrently', async (t) => {
  const held: (() => void)[] = []
  let arrived = (): void => {}
  const target = await startUpstream((seen, res) => {
    const { id, method } = messageOf(seen)
    const reply = (): void => response(res, { jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25' } })
    if (method === 'initialize') setImmediate(reply)
    else held.push(reply)
    if (held.length === 5 || held.length === 6) arrived()
  })
  t.teardown(() => target.close())
  const bridge = startStdio(t, `${target.url}/mcp`)
  const all = new Promise<void>((resolve) => {
    arrived = resolve
  })
  bridge.send(initialize)
  for (let i = 1; i <= 5; i++) bridge.send(rpc(i, 'slow'))
  t.match(await bridge.message(), { id: 0 })
  await all
  t.match(target.seen[0]?.body, '"initialize"')
  for (const { headers } of target.seen.slice(1)) t.equal(headers['mcp-protocol-version'], '2025-11-25')
  for (const reply of held.toReversed()) reply()
  const ids = new Set<unknown>()
  for (let i = 0; i < 5; i++) ids.add((await bridge.message()).id)
  t.same(ids, new Set([1, 2, 3, 4, 5]))
  const sixth = new Promise<void>((resolve) => {
    arrived = resolve
  })
  bridge.send(rpc(7, 'slow'))
  bridge.send(rpc(7, 'slow'))
  t.match(await bridge.message(), { id: 7, error: { code: -32600, message: /in flight/ } })
  await sixth
  held.at(-1)?.()
  t.match(await bridge.message(), { id: 7, result: {} })
})

await t.test(
  'backpressure: a client that does not read slows the server down instead of filling memory',
  async (t) => {
    const chunk = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'm', params: { text: 'x'.repeat(65_536) } })}\n\n`
    const total = 1_000
    let sent = 0
    let stuck = (): void => {}
    const blocked = new Promise<void>((resolve) => {
      stuck = resolve
    })
    const target = await startUpstream((_seen, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const push = async (): Promise<void> => {
        while (sent < total) {
          sent++
          if (res.write(chunk)) continue
          const drained = once(res, 'drain')
          // No drain for this long counts as stuck. A slow machine only sends the signal earlier, which is harmless.
          const late = setTimeout(stuck, 300)
          await drained
          clearTimeout(late)
        }
        res.end('data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n')
      }
      void push()
    })
    t.teardown(() => target.close())
    const bridge = startStdio(t, `${target.url}/mcp`, { drainMs: 60_000 })
    bridge.output.pause()
    bridge.send(rpc(1))
    await blocked
    t.ok(sent < total / 2, `the server was held up after ${sent} of ${total} events`)
    bridge.output.resume()
    for (let i = 0; i < total; i++) await bridge.next()
    t.match(await bridge.message(), { id: 1, result: {} }, 'and no event was lost')
  },
)

await t.test('end: input without a message exits with 0 and sends no request', async (t) => {
  const target = await startUpstream((_seen, res) => res.end())
  t.teardown(() => target.close())
  t.equal(await startStdio(t, `${target.url}/mcp`).end(), true)
  t.equal(target.seen.length, 0)
  const nobody = startStdio(t, 'http://127.0.0.1:1/mcp')
  nobody.send(rpc(1))
  t.match(await nobody.message(), { id: 1, error: { message: 'the server could not be reached' } })
  t.equal(await nobody.done, false, 'while the input is still open')
})

await t.test('command: a closed output ends it quietly', async (t) => {
  const target = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    const timer = setInterval(
      () => res.write('data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'),
      5,
    )
    res.once('close', () => clearInterval(timer))
  })
  t.teardown(() => target.close())
  const child = spawn(process.execPath, [program, 'proxy', 'stdio', `${target.url}/mcp`], {
    stdio: 'pipe',
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  child.stdin.on('error', () => {})
  child.stdin.write(`${rpc(1)}\n`)
  await once(child.stdout, 'data')
  child.stdout.destroy()
  const [code] = await once(child, 'exit')
  t.equal(code, 0)
  t.equal(errors, '')
})
