/** Plain forwarding: requests and responses pass byte for byte, except for required changes. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { json, rawRequest, raw, rpc, startRig, startServer, startUpstream } from '../../helpers/proxy/rig.ts'
import { proves } from '../../helpers/proves.ts'

proves('1.does.forward', '1.scenario.none', '1.flag.target-uri')

await t.test('forward: method, path, query, body and status pass unchanged', async (t) => {
  const upstream = await startUpstream((seen, res) => {
    res.writeHead(207, 'Odd Status', { 'X-Answer': 'yes', 'Set-Cookie': ['a=1', 'b=2'] })
    res.end(seen.body.toUpperCase())
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))

  const response = await rawRequest(
    rig.port,
    [
      'PUT //a/./b/../%2Fc;x?q=%zz&;y=1 HTTP/1.1',
      'Host: 127.0.0.1',
      'Content-Length: 5',
      'X-Odd: A',
      'x-odd: b',
    ],
    'hello',
  )
  const [seen] = upstream.seen
  t.equal(seen?.method, 'PUT')
  t.equal(seen?.url, '//a/./b/../%2Fc;x?q=%zz&;y=1')
  t.equal(seen?.body, 'hello')
  t.equal(seen?.headers['x-odd'], 'A, b')
  t.match(response, /^HTTP\/1\.1 207 Odd Status\r\n/)
  t.match(response, /X-Answer: yes\r\n/i)
  t.match(response, /Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n/i)
  t.match(response, /HELLO/)
})

await t.test('forward: the target’s query comes first, and its fragment is dropped', async (t) => {
  const upstream = await startUpstream((_seen, res) => res.end())
  const rig = await startRig(`${upstream.url}?key=1#frag`)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  await fetch(`${rig.url}/mcp?a=b`)
  await fetch(`${rig.url}/mcp`)
  t.same(
    upstream.seen.map((seen) => seen.url),
    ['/mcp?key=1&a=b', '/mcp?key=1'],
  )
})

await t.test('forward: hop-by-hop headers are removed in both directions', async (t) => {
  const upstream = await startUpstream((_seen, res) => {
    res.writeHead(200, {
      Connection: 'x-hop',
      'X-Hop': 'down',
      'Keep-Alive': 'timeout=99',
      'Proxy-Authenticate': 'Basic',
      'X-Stays': '1',
    })
    res.end('ok')
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const response = await raw(
    rig.port,
    'GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\nProxy-Authorization: x\r\n' +
      'Proxy-Connection: x\r\nKeep-Alive: 5\r\nTE: gzip, trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n' +
      'Trailer: x\r\nOrigin: http://localhost:' +
      rig.port +
      '\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nCookie: c=1\r\nAuthorization: Bearer client\r\n' +
      'User-Agent: me\r\nTraceparent: 00-1\r\nX-Real-Ip: 7.7.7.7\r\n\r\n',
  )
  const headers = upstream.seen[0]?.headers ?? {}
  for (const name of [
    'x-mine',
    'proxy-authorization',
    'proxy-connection',
    'upgrade',
    'http2-settings',
    'trailer',
    'origin',
    'forwarded',
  ]) {
    t.equal(headers[name], undefined, name)
  }
  t.equal(headers['te'], 'trailers')
  t.equal(headers['host'], new URL(upstream.url).host)
  t.equal(headers['x-forwarded-for'], '127.0.0.1')
  t.equal(headers['x-forwarded-host'], 'localhost')
  t.equal(headers['x-forwarded-proto'], 'http')
  t.match(headers, {
    cookie: 'c=1',
    authorization: 'Bearer client',
    'user-agent': 'me',
    traceparent: '00-1',
    'x-real-ip': '7.7.7.7',
  })
  t.match(response, /X-Stays: 1/i)
  t.notMatch(response, /X-Hop|timeout=99|Proxy-Authenticate/i)
})

await t.test('forward: a compressed response stays compressed', async (t) => {
  const gzip = Buffer.from('1f8b0800000000000003cb48cdc9c9070086a6103605000000', 'hex')
  const upstream = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': gzip.length })
    res.end(gzip)
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const response = await rawRequest(rig.port, ['GET /x HTTP/1.1', 'Host: localhost', 'Accept-Encoding: br'])
  t.equal(upstream.seen[0]?.headers['accept-encoding'], 'br')
  t.match(response, /Content-Encoding: gzip/i)
  t.ok(response.endsWith(gzip.toString('latin1')))
})

await t.test('forward: trailers are forwarded', async (t) => {
  const upstream = await startUpstream((_seen, res) => {
    res.writeHead(200, { Trailer: 'X-Sum' })
    res.write('a')
    res.addTrailers({ 'X-Sum': '42' })
    res.end('b')
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const response = await rawRequest(rig.port, ['GET /x HTTP/1.1', 'Host: localhost', 'TE: trailers'])
  t.match(response, /Trailer: X-Sum\r\n/i)
  t.match(response, /0\r\nX-Sum: 42\r\n\r\n$/i)
})

await t.test('forward: the head and each event of a stream are flushed immediately', async (t) => {
  let push: (text: string) => void = () => {}
  let finish = (): void => {}
  const upstream = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.flushHeaders()
    push = (text) => res.write(text)
    finish = () => res.end()
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const response = await fetch(`${rig.url}/mcp`, { headers: { accept: 'text/event-stream' } })
  t.equal(response.headers.get('content-type'), 'text/event-stream')
  const reader = response.body?.getReader()
  for (const text of [': open\n\n', 'data: 1\n\n', ': ping\n\n', 'data: 2\n\n']) {
    push(text)
    const part = await reader?.read()
    t.equal(Buffer.from(part?.value ?? []).toString(), text)
  }
  finish()
  t.equal((await reader?.read())?.done, true)
})

await t.test('forward: a client that disconnects ends the request to the target', async (t) => {
  let gone: Promise<unknown> = Promise.resolve()
  const arrived = Promise.withResolvers<void>()
  const upstream = await startUpstream((_seen, res) => {
    gone = once(res, 'close')
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write('data: 1\n\n')
    arrived.resolve()
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const leave = new AbortController()
  const response = await fetch(`${rig.url}/mcp`, { signal: leave.signal })
  await arrived.promise
  t.equal(response.status, 200)
  leave.abort()
  await gone
  t.pass('the target saw the end')
})

await t.test('forward: a slow client slows the target down instead of filling memory', async (t) => {
  const chunk = Buffer.alloc(1 << 20)
  let sent = 0
  const upstream = await startServer((_req, res) => {
    const pump = (): void => {
      while (sent < 64) {
        sent++
        if (!res.write(chunk)) {
          res.once('drain', pump)
          return
        }
      }
      res.end()
    }
    pump()
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const socket = connect(rig.port, '127.0.0.1')
  socket.pause()
  socket.write('GET /big HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  await once(socket, 'readable')
  const before = sent
  // Socket buffers bound the data in flight; 64 MiB is far more.
  t.ok(before < 64, `the target was stopped after ${before} MiB`)
  let received = 0
  socket.on('data', (part: Buffer) => {
    received += part.length
  })
  await once(socket, 'close')
  t.ok(received > 64 << 20)
})

await t.test('forward: an unreachable target is 502, with the exact id for an MCP client', async (t) => {
  const rig = await startRig('http://127.0.0.1:1')
  t.teardown(() => rig.close())
  const call = await fetch(`${rig.url}/mcp`, {
    method: 'POST',
    headers: json,
    body: '{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call","params":{}}',
  })
  t.equal(call.status, 502)
  t.equal(
    await call.text(),
    '{"jsonrpc":"2.0","id":12345678901234567890,"error":{"code":-32603,"message":"the backend could not be reached"}}',
  )
  const get = await fetch(`${rig.url}/mcp`)
  t.equal(get.status, 502)
  t.equal(get.headers.get('content-type'), 'application/problem+json')
  t.notMatch(await get.text(), /ECONNREFUSED|127\.0\.0\.1/)
})

await t.test('forward: a target that never responds is 504, but an event stream may wait', async (t) => {
  const waiting = Promise.withResolvers<() => void>()
  const upstream = await startUpstream((seen, res) => {
    if (seen.method === 'GET') waiting.resolve(() => res.end('late'))
  })
  const rig = await startRig(upstream.url, { headersTimeoutMs: 50 })
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const stream = fetch(`${rig.url}/mcp`, { headers: { accept: 'text/event-stream' } })
  const finish = await waiting.promise
  const call = await fetch(`${rig.url}/mcp`, { method: 'POST', headers: json, body: rpc('a') })
  t.equal(call.status, 504)
  t.match(await call.json(), { jsonrpc: '2.0', id: 'a', error: { code: -32603 } })
  finish()
  t.equal(await (await stream).text(), 'late')
})

await t.test('forward: a response that breaks off at the target breaks off at the client', async (t) => {
  const upstream = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Length': 100 })
    res.write('partial', () => res.destroy())
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const response = await fetch(`${rig.url}/x`)
  await t.rejects(response.text())
})

await t.test(
  'forward: redirects on the same authority are followed with method and body, other redirects are returned',
  async (t) => {
    const upstream = await startUpstream((seen, res) => {
      if (seen.url === '/old') res.writeHead(307, { Location: '/new?x=1' }).end('moved')
      else if (seen.url === '/loop') res.writeHead(302, { Location: '/loop' }).end()
      else if (seen.url === '/other') res.writeHead(302, { Location: 'https://elsewhere.example/x' }).end()
      else if (seen.url === '/see') res.writeHead(303, { Location: '/new' }).end()
      else res.end(`${seen.method} ${seen.url} ${seen.body}`)
    })
    const rig = await startRig(upstream.url)
    t.teardown(() => Promise.all([rig.close(), upstream.close()]))
    const followed = await fetch(`${rig.url}/old`, {
      method: 'POST',
      headers: json,
      body: rpc(1),
      redirect: 'manual',
    })
    t.equal(await followed.text(), `POST /new?x=1 ${rpc(1)}`)
    t.equal((await fetch(`${rig.url}/loop`, { redirect: 'manual' })).status, 302)
    t.equal(upstream.seen.filter((seen) => seen.url === '/loop').length, 11)
    const other = await fetch(`${rig.url}/other`, { redirect: 'manual' })
    t.equal(other.headers.get('location'), 'https://elsewhere.example/x')
    t.equal((await fetch(`${rig.url}/see`, { redirect: 'manual' })).status, 303)
  },
)

await t.test('forward: HEAD and 204 have no body and keep the connection usable', async (t) => {
  const upstream = await startUpstream((seen, res) => {
    if (seen.method === 'HEAD') res.writeHead(200, { 'Content-Length': 10 }).end()
    else res.writeHead(204).end()
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const head = await fetch(`${rig.url}/x`, { method: 'HEAD' })
  t.equal(head.headers.get('content-length'), '10')
  t.equal((await fetch(`${rig.url}/x`, { method: 'DELETE' })).status, 204)
})

await t.test(
  'forward: the endpoint event of the deprecated HTTP+SSE transport points to the proxy',
  async (t) => {
    const upstream = await startUpstream((seen, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const host = seen.url === '/evil' ? 'elsewhere.example' : seen.headers.host
      res.end(
        `: hi\n\nevent: endpoint\ndata: http://${host}/messages?session_id=1\n\nevent: message\ndata: http://${host}/x\n\n`,
      )
    })
    const rig = await startRig(upstream.url)
    t.teardown(() => Promise.all([rig.close(), upstream.close()]))
    t.equal(
      await (await fetch(`${rig.url}/sse`)).text(),
      `: hi\n\nevent: endpoint\ndata: /messages?session_id=1\n\nevent: message\ndata: ${upstream.url}/x\n\n`,
    )
    t.match(
      await (await fetch(`${rig.url}/evil`)).text(),
      'data: http://elsewhere.example/messages?session_id=1',
    )
  },
)

await t.test('forward: a WebSocket is tunneled, and a rejected one gets a response', async (t) => {
  const upstream = await startUpstream((_seen, res) => res.writeHead(426).end('no'))
  upstream.server.on('upgrade', (req, socket) => {
    if (req.url === '/no') {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
      return
    }
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nhello ',
    )
    socket.pipe(socket)
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))

  const socket = connect(rig.port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part
  })
  socket.write(
    'GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\nearly ',
  )
  while (!text.includes('early')) await once(socket, 'data')
  socket.write('later')
  while (!text.includes('later')) await once(socket, 'data')
  t.match(text, /^HTTP\/1\.1 101 Switching Protocols\r\n/)
  t.match(text, /Sec-WebSocket-Accept: x/i)
  t.match(text, /hello early later$/)
  socket.end()
  await once(socket, 'close')

  const refused = await raw(
    rig.port,
    'GET /no HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  )
  t.match(refused, /^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*no$/)
})
