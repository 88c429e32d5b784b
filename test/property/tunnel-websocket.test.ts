/**
 * Tests the frames of the tunnel's WebSocket: data arrives unchanged for any chunks, and invalid frames end the stream.
 */
import { createRequire } from 'node:module'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Duplex, duplexPair, PassThrough } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { WebSocket } from 'undici'
import { silentLog } from '../../runtime/net/index.ts'
import { Secret } from '../../runtime/observe/index.ts'
import { makeTunnelProvider, startRelay } from '../../runtime/proxy/index.ts'
import { WebSocketStream } from '../../runtime/proxy/tunnel/websocket.ts'
import { rawRequest, startServer } from '../helpers/proxy/rig.ts'
import { untyped } from '../helpers/untyped.ts'

/** Cuts all data into pieces of these sizes, repeatedly. */
function cutter(sizes: readonly number[]): PassThrough {
  let turn = 0
  return new PassThrough({
    transform(chunk: Buffer, _encoding, done) {
      for (let at = 0; at < chunk.length; ) {
        const size = sizes[turn++ % sizes.length] ?? 1
        this.push(chunk.subarray(at, at + size))
        at += size
      }
      done()
    },
  })
}

async function readAll(stream: Duplex): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of stream) parts.push(untyped(part))
  return Buffer.concat(parts)
}

await t.test('frames: bytes arrive unchanged in both directions, in any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 70_000 }), { maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      async (writes, sizes, fromClient) => {
        const [near, far] = duplexPair()
        const cut = Duplex.from({ readable: far.pipe(cutter(sizes)), writable: far })
        const sender = new WebSocketStream(near, fromClient ? 'client' : 'server')
        const receiver = new WebSocketStream(cut, fromClient ? 'server' : 'client')
        const received = readAll(receiver)
        for (const bytes of writes) {
          if (!sender.write(bytes)) await once(sender, 'drain')
          sender.ping()
        }
        sender.end()
        return (await received).equals(Buffer.concat(writes))
      },
    ),
    { numRuns: 60 },
  )
})

await t.test('frames: any input from a peer ends or continues the stream, without an exception', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.boolean(), async (bytes, asClient) => {
      const [near, far] = duplexPair()
      const stream = new WebSocketStream(near, asClient ? 'client' : 'server')
      stream.on('error', () => {})
      stream.resume()
      far.resume()
      far.end(bytes)
      if (!stream.closed) await once(stream, 'close')
    }),
  )
})

await t.test('frames: invalid frames end the stream', async (t) => {
  const mask = [1, 2, 3, 4]
  const cases: Record<string, number[]> = {
    'not masked': [0x82, 0x01, 0x61],
    'reserved bit': [0xc2, 0x81, ...mask, 0x61],
    'text frame': [0x81, 0x81, ...mask, 0x61],
    'unknown opcode': [0x83, 0x81, ...mask, 0x61],
    'ping in fragments': [0x09, 0x80, ...mask],
    'ping that is too long': [0x89, 0xfe, 0x00, 0x7e, ...mask, ...Array.from({ length: 126 }, () => 0)],
    'frame that is too long': [0x82, 0xff, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, ...mask],
    'length beyond any number': [0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ...mask],
  }
  for (const [name, bytes] of Object.entries(cases)) {
    const [near, far] = duplexPair()
    const stream = new WebSocketStream(near, 'server')
    const data: Buffer[] = []
    stream.on('data', (part: Buffer) => data.push(part))
    far.resume()
    far.write(Buffer.from(bytes))
    await once(stream, 'close')
    t.equal(data.length, 0, name)
  }
})

await t.test('interop: another WebSocket client carries requests of our relay', async (t) => {
  const relay = await startRelay({
    host: '127.0.0.1',
    port: 0,
    domain: 'tunnels.test',
    authToken: () => new Secret('t'),
    log: silentLog,
  })
  t.teardown(() => relay.close({ graceMs: 0 }))
  const socket = new WebSocket(
    `ws://127.0.0.1:${relay.port}/.gatehouse/tunnel?hostname=other&session=${'x'.repeat(16)}`,
    { protocols: 'gatehouse-tunnel.v1', headers: { authorization: 'Bearer t' } },
  )
  socket.binaryType = 'arraybuffer'
  await once(socket, 'open')
  const body = 'y'.repeat(200_000)
  let text = ''
  socket.addEventListener('message', ({ data }) => {
    text += Buffer.from(untyped(data)).toString()
    if (!text.includes('\r\n\r\n')) return
    socket.send(Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`))
    socket.send(Buffer.from(body))
  })
  const response = await rawRequest(relay.port, ['GET /hello HTTP/1.1', 'Host: other.tunnels.test'])
  t.match(text, /^GET \/hello HTTP\/1\.1\r\n/)
  t.ok(response.endsWith(`\r\n\r\n${body}`))
  socket.close()
})

await t.test('interop: another WebSocket server carries requests to our proxy', async (t) => {
  interface WsSocket {
    send(data: Buffer): void
    on(event: 'message', listener: (data: Buffer) => void): void
  }
  interface WsServer {
    handleUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer, done: (ws: WsSocket) => void): void
    on(event: 'headers', listener: (headers: string[]) => void): void
  }
  // The package is a dependency of the Kubernetes client and ships no types.
  const ws: { WebSocketServer: new (options: object) => WsServer } = untyped(
    createRequire(import.meta.url)('ws'),
  )
  const accepting = new ws.WebSocketServer({ noServer: true, perMessageDeflate: false })
  accepting.on('headers', (headers) => headers.push('Gatehouse-Public-Url: https://demo.example'))
  const sockets: WsSocket[] = []
  const http = await startServer((_req, res) => res.end())
  http.server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    accepting.handleUpgrade(req, socket, head, (one) => sockets.push(one))
  })
  const local = await startServer((req, res) => {
    let size = 0
    req.on('data', (part: Buffer) => {
      size += part.length
    })
    req.on('end', () => res.end(`${req.method} ${size}`))
  })
  const up = Promise.withResolvers<string>()
  const tunnel = makeTunnelProvider('relay', JSON.stringify({ url: `ws://127.0.0.1:${http.port}` }), {
    env: { GATEHOUSE_TUNNEL_AUTH_TOKEN: 't' },
    ca: undefined,
    proxy: undefined,
  }).open(local.port, { onUp: up.resolve, onDown: up.reject, log: silentLog })
  t.teardown(async () => {
    await tunnel.close()
    await Promise.all([http.close(), local.close()])
  })
  t.equal(await up.promise, 'https://demo.example')
  const response = new Promise<string>((resolve) => {
    let text = ''
    sockets[0]?.on('message', (data) => {
      text += data.toString()
      if (text.includes('POST 300000')) resolve(text)
    })
  })
  sockets[0]?.send(Buffer.from('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n'))
  sockets[0]?.send(Buffer.alloc(300_000))
  t.match(await response, /^HTTP\/1\.1 200 OK/)
})
