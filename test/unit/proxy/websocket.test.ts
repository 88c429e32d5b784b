/** The byte stream over WebSocket frames: it keeps any chunking, and closes when the peer violates the protocol. */
import { once } from 'node:events'
import { Duplex, PassThrough } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { acceptKey, WebSocketStream } from '../../../runtime/proxy/tunnel/websocket.ts'

/** Returns two ends of one connection in memory. */
function pair(): [Duplex, Duplex] {
  const there = new PassThrough()
  const back = new PassThrough()
  const ends: [Duplex, Duplex] = [
    Duplex.from({ readable: back, writable: there }),
    Duplex.from({ readable: there, writable: back }),
  ]
  // An end whose other end is destroyed first is aborted; a socket would only close.
  for (const end of ends) end.on('error', () => undefined)
  return ends
}

async function readAll(stream: Duplex): Promise<Buffer> {
  const parts: Buffer[] = []
  stream.on('data', (part: Buffer) => parts.push(part))
  await once(stream, 'close')
  return Buffer.concat(parts)
}

await t.test('websocket: the accept key is that of RFC 6455', async (t) => {
  t.equal(acceptKey('dGhlIHNhbXBsZSBub25jZQ=='), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
})

await t.test('websocket: bytes arrive unchanged in both directions, for any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 20 }),
      fc.boolean(),
      async (chunks, fromClient) => {
        const [a, b] = pair()
        const client = new WebSocketStream(a, 'client')
        const server = new WebSocketStream(b, 'server')
        const [from, to] = fromClient ? [client, server] : [server, client]
        const received = readAll(to)
        for (const chunk of chunks) from.write(Buffer.from(chunk))
        from.end()
        return (await received).equals(Buffer.concat(chunks))
      },
    ),
    { numRuns: 50 },
  )
})

await t.test('websocket: large writes are split into frames, and split frames are joined', async (t) => {
  const [a, b] = pair()
  const client = new WebSocketStream(a, 'client')
  const received = readAll(client)
  const server = new WebSocketStream(b, 'server')
  const payload = Buffer.alloc(300_000, 'abc')
  server.end(payload)
  t.ok((await received).equals(payload))
})

await t.test('websocket: a client’s frames are masked, a server’s are not', async (t) => {
  for (const isClient of [true, false]) {
    const wire = new PassThrough()
    const stream = new WebSocketStream(
      Duplex.from({ readable: new PassThrough(), writable: wire }),
      isClient ? 'client' : 'server',
    )
    stream.write(Buffer.from('hello'))
    const [frame] = await once(wire, 'data')
    const second: unknown = Buffer.isBuffer(frame) ? frame.readUInt8(1) : undefined
    t.equal(second, isClient ? 0x85 : 0x05)
    t.equal(String(frame).includes('hello'), !isClient)
    stream.destroy()
  }
})

await t.test('websocket: any protocol violation ends the stream', async (t) => {
  const violations: readonly [string, number[]][] = [
    ['an unmasked frame of a client', [0x82, 0x01, 0x61]],
    ['reserved bits', [0xc2, 0x81, 0, 0, 0, 0, 0x61]],
    ['a text frame', [0x81, 0x81, 0, 0, 0, 0, 0x61]],
    ['a frame of a gigabyte', [0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0]],
  ]
  for (const [name, bytes] of violations) {
    const wire = new PassThrough()
    const server = new WebSocketStream(Duplex.from({ readable: wire, writable: new PassThrough() }), 'server')
    server.resume()
    wire.write(Buffer.from(bytes))
    await once(server, 'close')
    t.ok(server.destroyed, name)
  }
})

await t.test('websocket: a ping is answered with its own payload', async (t) => {
  const [a, b] = pair()
  const server = new WebSocketStream(b, 'server')
  server.resume()
  a.write(Buffer.from([0x89, 0x82, 0, 0, 0, 0, 0x68, 0x69]))
  const [frame] = await once(a, 'data')
  t.same([...frame], [0x8a, 0x02, 0x68, 0x69])
  server.destroy()
})
