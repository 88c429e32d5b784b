/** The listener's life cycle: bind, bind errors, and a graceful shutdown in four steps. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { registerStream, listen, silentLog } from '../../../runtime/net/index.ts'

const base = { host: '127.0.0.1', port: 0, log: silentLog }

await t.test('listen: reports address and port, and rejects when the port is in use', async (t) => {
  const first = await listen({ ...base, handler: (_req, res) => res.end('ok') })
  t.equal(first.url, `http://127.0.0.1:${first.port}`)
  t.equal(await (await fetch(first.url)).text(), 'ok')
  await t.rejects(listen({ ...base, port: first.port, handler: () => {} }), { code: 'EADDRINUSE' })
  await first.close({ graceMs: 0 })
  await t.rejects(fetch(first.url))
})

await t.test('listen: IPv6 addresses are written in brackets', async (t) => {
  const listener = await listen({ ...base, host: '::1', handler: (_req, res) => res.end('six') }).catch(
    () => undefined,
  )
  if (!listener) {
    t.pass('no IPv6 here')
    return
  }
  t.match(listener.url, /^http:\/\/\[::1\]:\d+$/)
  t.equal(await (await fetch(listener.url)).text(), 'six')
  await listener.close({ graceMs: 0 })
})

await t.test(
  'close: idle connections are closed, streams are ended, and requests in flight finish',
  async (t) => {
    let finish = (): void => {}
    const slow = Promise.withResolvers<void>()
    const listener = await listen({
      ...base,
      handler(req, res) {
        if (req.url === '/stream') {
          res.writeHead(200, { 'Content-Type': 'text/event-stream' })
          res.write('data: 1\n\n')
          registerStream(res, () => res.end('data: bye\n\n'))
        } else if (req.url === '/slow') {
          finish = () => res.end('done')
          slow.resolve()
        } else res.end('ok')
      },
    })
    await (await fetch(listener.url)).text()
    const stream = await fetch(`${listener.url}/stream`)
    const response = fetch(`${listener.url}/slow`)
    await slow.promise

    const closed = listener.close({ graceMs: 60_000 })
    t.equal(await stream.text(), 'data: 1\n\ndata: bye\n\n', 'the stream ends in order')
    await t.rejects(fetch(listener.url), 'no new connection is accepted')
    finish()
    t.equal(await (await response).text(), 'done', 'the request in flight gets its response')
    await closed
    t.equal(listener.close(), closed, 'a second close returns the same promise')
  },
)

/**
 * Opens a keep-alive connection that sends a request and returns the response up to the blank line and its body `ok`.
 */
function kept(port: number) {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  const waiting: (() => void)[] = []
  socket.on('error', () => {})
  socket.on('data', (part: Buffer) => {
    text += part.toString()
    for (const look of waiting) look()
  })
  const closed = once(socket, 'close')
  return {
    closed,
    async get(path: string, end = 'ok') {
      text = ''
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push(() => text.endsWith(end) && resolve())
      socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      await promise
      return text
    },
  }
}

await t.test(
  'close: an idle connection gets a response to one more request, and is then closed',
  async (t) => {
    const listener = await listen({ ...base, handler: (_req, res) => res.end('ok') })
    const [one, other] = [kept(listener.port), kept(listener.port)]
    t.match(await one.get('/'), /^connection: keep-alive/im)
    await other.get('/')
    const closed = listener.close({ graceMs: 60_000 })
    t.match(await one.get('/'), /^connection: close/im)
    await one.closed
    await other.closed
    await closed
    t.pass('the idle connection is closed too')
  },
)

await t.test('close: a response that has not started is the last on its connection', async (t) => {
  const arrived = Promise.withResolvers<void>()
  let finish = (): void => {}
  const listener = await listen({
    ...base,
    handler(_req, res) {
      finish = () => res.end('ok')
      arrived.resolve()
    },
  })
  const client = kept(listener.port)
  const answer = client.get('/')
  await arrived.promise
  const closed = listener.close({ graceMs: 60_000 })
  finish()
  t.match(await answer, /^connection: close/im)
  await Promise.all([client.closed, closed])
})

await t.test('close: a stream that opens during the shutdown is ended', async (t) => {
  const listener = await listen({
    ...base,
    handler(req, res) {
      if (req.url !== '/stream') return void res.end('ok')
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      registerStream(res, () => res.end('bye'))
      return undefined
    },
  })
  const client = kept(listener.port)
  await client.get('/')
  const closed = listener.close({ graceMs: 60_000 })
  t.match(await client.get('/stream', '0\r\n\r\n'), /bye/)
  await Promise.all([client.closed, closed])
})

await t.test('close: remaining connections are cut after the grace period', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const listener = await listen({ ...base, handler: () => arrived.resolve() })
  const response = fetch(listener.url)
  response.catch(() => {})
  await arrived.promise
  await listener.close({ graceMs: 10 })
  await t.rejects(response)
})

await t.test('unused connections: closed without a response, by close and by the timeout', async (t) => {
  async function opened(limits: { headersTimeoutMs?: number; checkIntervalMs?: number } = {}) {
    const listener = await listen({ ...base, handler: (_req, res) => res.end(), limits })
    const socket = connect(listener.port, '127.0.0.1')
    let text = ''
    socket
      .on('error', () => {})
      .on('data', (part: Buffer) => {
        text += part.toString()
      })
    await once(socket, 'connect')
    // Listen first: on a busy machine, the connection may close during the next request.
    const closed = once(socket, 'close')
    // A response on a later connection shows that the listener has accepted this one.
    await (await fetch(listener.url)).text()
    return { listener, closed, text: () => text }
  }
  const ahead = await opened()
  await Promise.all([ahead.listener.close({ graceMs: 600_000 }), ahead.closed])
  t.equal(ahead.text(), '', 'a closing listener does not wait for it')
  const late = await opened({ headersTimeoutMs: 50, checkIntervalMs: 20 })
  await late.closed
  t.equal(late.text(), '', 'no 408 that the client could treat as the response to its next request')
  await late.listener.close()
})

await t.test('close: tunnels end, too', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const listener = await listen({
    ...base,
    handler: (_req, res) => res.end(),
    onUpgrade(_req, res, socket) {
      if (res.socket) res.detachSocket(res.socket)
      socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
      arrived.resolve()
    },
  })
  const socket = connect(listener.port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  socket.resume()
  await arrived.promise
  await Promise.all([listener.close({ graceMs: 60_000 }), once(socket, 'close')])
  t.pass('closed without waiting for the grace')
})

await t.test('upgrade: only a WebSocket request takes over the connection', async (t) => {
  let upgrades = 0
  const listener = await listen({
    ...base,
    handler: (req, res) => res.end(`plain ${req.headers.upgrade}`),
    onUpgrade(_req, res) {
      upgrades++
      res.writeHead(403).end('no')
    },
  })
  t.teardown(() => listener.close({ graceMs: 0 }))
  const ask = async (protocol: string): Promise<string> => {
    const socket = connect(listener.port, '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part
    })
    socket.write(
      `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close, Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`,
    )
    await once(socket, 'close')
    return text
  }
  t.match(await ask('h2c'), /plain h2c/)
  t.equal(upgrades, 0)
  t.match(await ask('WebSocket'), /^HTTP\/1\.1 403 [\s\S]*no/)
  t.equal(upgrades, 1)
})
