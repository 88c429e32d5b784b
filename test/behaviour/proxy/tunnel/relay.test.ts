/** The self-hosted relay with real MCP traffic, its limits, and disconnections at either end. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { Agent, fetch as undiciFetch } from 'undici'
import { type ProxyInput, resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { Secret } from '../../../../runtime/observe/index.ts'
import { makeTunnelProvider, runTunnel, startRelay } from '../../../../runtime/proxy/index.ts'
import { type RelayOptions, type RunningRelay } from '../../../../runtime/proxy/tunnel/relay-server.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { raw, rawRequest, startServer, startUpstream } from '../../../helpers/proxy/rig.ts'
import { untyped } from '../../../helpers/untyped.ts'

proves('1.command.tunnel')

const token = 'a-token-that-is-long-enough'

async function relayFor(t: Test, options: Partial<RelayOptions> = {}): Promise<RunningRelay> {
  const relay = await startRelay({
    host: '127.0.0.1',
    port: 0,
    domain: 'tunnels.test',
    authToken: () => new Secret(token),
    log: silentLog,
    ...options,
  })
  t.teardown(() => relay.close({ graceMs: 0 }))
  return relay
}

async function tunnelTo(
  t: Test,
  targetUri: string,
  relayPort: number,
  hostname: string,
  input: ProxyInput = {},
) {
  const urls: string[] = []
  const proxy = await runTunnel({
    config: resolveProxyConfig(hostname, { targetUri, ...input }, {}),
    provider: makeTunnelProvider(
      'relay',
      JSON.stringify({ url: `http://127.0.0.1:${relayPort}`, hostname }),
      {
        env: { GATEHOUSE_TUNNEL_AUTH_TOKEN: token },
        ca: undefined,
        proxy: undefined,
      },
    ),
    insecureUnauthenticated: true,
    onUrl: (url) => urls.push(url),
    log: silentLog,
    notify() {},
  })
  t.teardown(() => proxy.close({ graceMs: 0 }))
  return { proxy, urls }
}

async function health(relay: RunningRelay): Promise<{ tunnels: number }> {
  return untyped(await (await fetch(`${relay.url}/health`)).json())
}

/** A WebSocket to the relay, in raw bytes, as the tunnel client opens it. */
async function idleConnection(
  relay: RunningRelay,
  hostname: string,
  authorization = `Bearer ${token}`,
): Promise<{ socket: Socket; head: string }> {
  const socket = connect(relay.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    [
      `GET /.gatehouse/tunnel?hostname=${hostname}&session=${'s'.repeat(16)} HTTP/1.1`,
      'Host: relay',
      'Connection: Upgrade',
      'Upgrade: websocket',
      `Authorization: ${authorization}`,
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Protocol: gatehouse-tunnel.v1',
      '',
      '',
    ].join('\r\n'),
  )
  const [head] = await once(socket, 'data')
  return { socket, head: String(head) }
}

await t.test(
  'relay: an MCP client works through it, including sessions, streams and questions',
  async (t) => {
    const fixture = await startFixture()
    const relay = await relayFor(t)
    const { urls } = await tunnelTo(t, new URL(fixture.url).origin, relay.port, 'demo')
    // The public name resolves to the relay, as with a wildcard DNS entry.
    const agent = new Agent({
      connect: {
        lookup: (_host, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
      },
    })
    t.teardown(async () => {
      await agent.destroy()
      await fixture.close()
    })
    const client = new Client({ name: 'test', version: '1' })
    const transport = new StreamableHTTPClientTransport(new URL(`${urls[0]}/mcp`), {
      fetch: (url, init) => untyped(undiciFetch(url, { ...untyped(init), dispatcher: agent })),
    })
    await client.connect(transport)
    const changed = new Promise((resolve) => {
      client.fallbackNotificationHandler = async ({ method }) => resolve(method)
    })
    t.match(await client.callTool({ name: 'test_simple_text', arguments: {} }), {
      content: [{ type: 'text' }],
    })
    const progress: number[] = []
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, {
      onprogress: (one) => progress.push(one.progress),
    })
    t.same(progress, [0, 50, 100])
    await client.callTool({ name: 'test_trigger_tool_change', arguments: {} })
    t.equal(await changed, 'notifications/tools/list_changed', 'over a standing stream')
    await transport.terminateSession()
    await client.close()
  },
)

await t.test('relay: a WebSocket works, and its end frees its slot', async (t) => {
  const target = await startUpstream((_seen, res) => res.end('plain'))
  target.server.on('upgrade', (_req, socket) => {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n',
    )
    socket.pipe(socket)
  })
  const relay = await relayFor(t, { maxRequests: 1 })
  await tunnelTo(t, target.url, relay.port, 'sockets')
  t.teardown(() => target.close())
  for (const word of ['one', 'two']) {
    const socket = connect(relay.port, '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part
    })
    socket.write(
      'GET /ws HTTP/1.1\r\nHost: sockets.tunnels.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n',
    )
    while (!text.includes('\r\n\r\n')) await once(socket, 'data')
    t.match(text, /^HTTP\/1\.1 101 /)
    socket.write(word)
    while (!text.endsWith(word)) await once(socket, 'data')
    socket.end()
    await once(socket, 'close')
  }
  t.match(await rawRequest(relay.port, ['GET /x HTTP/1.1', 'Host: sockets.tunnels.test']), /plain$/)
})

await t.test('relay: bodies flow both ways before either is complete', async (t) => {
  const target = await startUpstream((seen, res) => res.end(String(seen.body.length)))
  const relay = await relayFor(t)
  // Goes to a plain server, because a proxy would read the whole body first.
  const echo = await startServer((req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/octet-stream' })
    res.flushHeaders()
    req.pipe(res)
  })
  t.teardown(() => Promise.all([target.close(), echo.close()]))
  const provider = makeTunnelProvider(
    'relay',
    JSON.stringify({ url: `http://127.0.0.1:${relay.port}`, hostname: 'echo' }),
    {
      env: { GATEHOUSE_TUNNEL_AUTH_TOKEN: token },
      ca: undefined,
      proxy: undefined,
    },
  )
  const up = Promise.withResolvers<string>()
  const tunnel = provider.open(echo.port, { onUp: up.resolve, onDown: up.reject, log: silentLog })
  t.teardown(() => tunnel.close())
  await up.promise
  const request = httpRequest({
    port: relay.port,
    host: '127.0.0.1',
    method: 'POST',
    headers: { Host: 'echo.tunnels.test', 'Transfer-Encoding': 'chunked' },
  })
  request.write('one')
  const [response] = await once(request, 'response')
  const chunks: AsyncIterator<Buffer> = response[Symbol.asyncIterator]()
  t.equal(String((await chunks.next()).value), 'one')
  for (const word of ['two', 'three']) {
    request.write(word)
    t.equal(String((await chunks.next()).value), word)
  }
  request.end()
  t.equal((await chunks.next()).done, true)
})

await t.test('relay: data from untrusted clients is bounded', async (t) => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  const target = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write(': open\n\n')
    arrive()
  })
  t.teardown(() => target.close())
  const relay = await relayFor(t, { maxRequests: 1, maxTunnels: 1 })
  await tunnelTo(t, target.url, relay.port, 'demo')
  const first = connect(relay.port, '127.0.0.1')
  first.write('GET /mcp HTTP/1.1\r\nHost: demo.tunnels.test\r\nAccept: text/event-stream\r\n\r\n')
  await arrived
  const second = await rawRequest(relay.port, ['GET /mcp HTTP/1.1', 'Host: demo.tunnels.test'])
  t.match(second, /^HTTP\/1\.1 503 [\s\S]*too many concurrent requests/)
  t.match(second, /Retry-After: 1/i)
  const { head, socket } = await idleConnection(relay, 'another')
  t.match(head, /^HTTP\/1\.1 503 /, 'and so is the number of tunnels')
  socket.destroy()
  first.destroy()
  // The slot is free again once the relay has noticed the disconnection.
  for (let response = ''; !response.startsWith('HTTP/1.1 200 '); ) {
    const again = connect(relay.port, '127.0.0.1')
    again.write('GET /mcp HTTP/1.1\r\nHost: demo.tunnels.test\r\nAccept: text/event-stream\r\n\r\n')
    response = String((await once(again, 'data'))[0])
    again.destroy()
  }
  t.pass('a request that ends makes space')
})

await t.test('relay: only tunnels with the token get a name, and no other path exists', async (t) => {
  const relay = await relayFor(t)
  for (const authorization of ['Bearer wrong', 'Bearer ', `Basic ${token}`, `Bearer ${token}x`]) {
    const { head, socket } = await idleConnection(relay, 'demo', authorization)
    t.match(head, /^HTTP\/1\.1 401 /, authorization.slice(0, 12))
    t.notMatch(head, token)
    socket.destroy()
  }
  for (const hostname of ['', 'a.b', '-x', 'x'.repeat(64), '%2e%2e', 'xn--ü']) {
    const { head, socket } = await idleConnection(relay, encodeURI(hostname))
    t.match(head, /^HTTP\/1\.1 400 /, JSON.stringify(hostname))
    socket.destroy()
  }
  t.equal((await health(relay)).tunnels, 0)
  const ask = (...lines: string[]): Promise<string> => rawRequest(relay.port, lines)
  t.match(await ask('GET / HTTP/1.1', 'Host: demo.tunnels.test'), /^HTTP\/1\.1 404 /)
  t.match(
    await ask('GET /.gatehouse/tunnel HTTP/1.1', 'Host: relay'),
    /^HTTP\/1\.1 404 /,
    'without an upgrade',
  )
  t.match(
    await ask(
      'GET /other HTTP/1.1',
      'Host: relay',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: x',
    ),
    /^HTTP\/1\.1 404 /,
  )
})

await t.test('relay: ambiguous requests are rejected', async (t) => {
  const target = await startUpstream((_seen, res) => res.end('ok'))
  t.teardown(() => target.close())
  const relay = await relayFor(t)
  await tunnelTo(t, target.url, relay.port, 'demo')
  const bad = [
    'POST /mcp HTTP/1.1\r\nHost: demo.tunnels.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST /mcp HTTP/1.1\r\nHost: demo.tunnels.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd',
    'GET http://elsewhere.example/mcp HTTP/1.1\r\nHost: demo.tunnels.test\r\nConnection: close\r\n\r\n',
    'GET /mcp HTTP/1.1\r\nHost: demo.tunnels.test\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\nConnection: close\r\n\r\n',
  ]
  for (const text of bad) t.match(await raw(relay.port, text), /^HTTP\/1\.1 400 /)
  t.equal(target.seen.length, 0)
  const fine = await rawRequest(relay.port, [
    'GET /mcp HTTP/1.1',
    'Host: DEMO.tunnels.test:443',
    'Connection: x-hop',
    'X-Hop: 1',
  ])
  t.match(fine, /^HTTP\/1\.1 200 /)
  t.equal(target.seen[0]?.headers['x-hop'], undefined, 'hop-by-hop headers are removed')
})

await t.test('relay: a silent client is dropped, and its name is free again', async (t) => {
  const relay = await relayFor(t, { pingEveryMs: 20, freeAfterMs: 1 })
  const { socket, head } = await idleConnection(relay, 'demo')
  t.match(head, /^HTTP\/1\.1 101 [\s\S]*gatehouse-public-url: http:\/\/demo\.tunnels\.test:\d+\r\n/)
  t.equal((await health(relay)).tunnels, 1)
  await once(socket, 'close')
  while ((await health(relay)).tunnels > 0);
  // A client that gets the name again proves that it was free.
  t.match((await idleConnection(relay, 'demo')).head, /^HTTP\/1\.1 101 /)
})

await t.test('relay: a client that answers pings stays connected', async (t) => {
  // Three pings without a pong end the connection, so a pong may take over a second on a busy machine.
  const pingEveryMs = 400
  const relay = await relayFor(t, { pingEveryMs })
  const target = await startUpstream((_seen, res) => res.end('ok'))
  t.teardown(() => target.close())
  const { urls } = await tunnelTo(t, target.url, relay.port, 'demo')
  t.equal(urls.length, 1)
  await new Promise((resolve) => setTimeout(resolve, 5 * pingEveryMs))
  t.match(await rawRequest(relay.port, ['GET /mcp HTTP/1.1', 'Host: demo.tunnels.test']), /^HTTP\/1\.1 200 /)
})

await t.test('relay: after a restart of the relay, the tunnel reconnects', async (t) => {
  const target = await startUpstream((_seen, res) => res.end('ok'))
  t.teardown(() => target.close())
  const first = await startRelay({
    host: '127.0.0.1',
    port: 0,
    domain: 'tunnels.test',
    authToken: () => new Secret(token),
    log: silentLog,
  })
  await tunnelTo(t, target.url, first.port, 'demo')
  await first.close({ graceMs: 0 })
  const second = await relayFor(t, { port: first.port })
  while ((await health(second)).tunnels === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  t.match(await rawRequest(second.port, ['GET /mcp HTTP/1.1', 'Host: demo.tunnels.test']), /^HTTP\/1\.1 200 /)
})

await t.test('relay: a client that does not read delays only its own response', async (t) => {
  let stuck = (): void => {}
  const blocked = new Promise<void>((resolve) => {
    stuck = resolve
  })
  const chunk = Buffer.alloc(65_536)
  let sent = 0
  const target = await startUpstream((seen, res) => {
    if (seen.url !== '/large') {
      res.end('small')
      return
    }
    const push = async (): Promise<void> => {
      while (sent < 2_000 && !res.destroyed) {
        sent++
        if (res.write(chunk)) continue
        const late = setTimeout(stuck, 300)
        await new Promise((resolve) => res.once('drain', resolve))
        clearTimeout(late)
      }
      res.end()
    }
    void push()
  })
  t.teardown(() => target.close())
  const relay = await relayFor(t)
  await tunnelTo(t, target.url, relay.port, 'demo')
  const slow = connect(relay.port, '127.0.0.1')
  slow.pause()
  slow.write('GET /large HTTP/1.1\r\nHost: demo.tunnels.test\r\nConnection: close\r\n\r\n')
  await blocked
  t.ok(sent < 1_500, `the target was held up after ${sent} of 2000 pieces`)
  t.match(await rawRequest(relay.port, ['GET /small HTTP/1.1', 'Host: demo.tunnels.test']), /small/)
  let size = 0
  slow.on('data', (data: Buffer) => {
    size += data.length
  })
  slow.resume()
  await once(slow, 'close')
  t.ok(size > 2_000 * 65_536, 'and then arrives complete')
})
