/** Incomplete header blocks: their total size is bounded, and clients with complete requests are not affected. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { listen, type Log, silentLog } from '../../../runtime/net/index.ts'
import { limitUnfinishedHeaders } from '../../../runtime/net/listener/unfinished-headers.ts'

const kibibyte = 1024

async function serve(log: Log = silentLog) {
  return listen({
    host: '127.0.0.1',
    port: 0,
    log,
    limits: { maxUnfinishedBytes: 200 * kibibyte, maxHeaderBytes: 64 * kibibyte, headersLookMs: 20 },
    handler: (req, res) => void req.resume().on('end', () => res.end('served')),
    onUpgrade(_req, res, socket) {
      res.detachSocket(socket as Socket)
      socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
      let received = 0
      socket.on('data', (data: Buffer) => {
        received += data.length
        if (received === 50 * kibibyte) socket.write('all')
      })
    },
  })
}

async function begin(port: number, headerBytes: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(`GET / HTTP/1.1\r\nHost: x\r\nX-A: ${'x'.repeat(headerBytes)}`)
  return socket
}

/** Resolves when `count` of the sockets are closed. */
async function closed(sockets: readonly Socket[], count: number): Promise<void> {
  const isClosed = (socket: Socket) => socket.closed
  while (sockets.filter(isClosed).length < count) {
    await Promise.race(sockets.filter((socket) => !isClosed(socket)).map((socket) => once(socket, 'close')))
  }
}

async function served(socket: Socket): Promise<boolean> {
  if (socket.destroyed) return false
  socket.write('\r\n\r\n')
  const [data] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [unknown]
  return String(data).includes('served')
}

t.test(
  'unfinished headers: the largest are closed when the total is too large, and one warning is logged',
  async (t) => {
    const told: string[] = []
    const listener = await serve({ ...silentLog, warn: (message) => void told.push(message) })
    t.teardown(() => listener.close({ graceMs: 0 }))
    const small = await begin(listener.port, 2 * kibibyte)
    const large = await Promise.all(Array.from({ length: 10 }, () => begin(listener.port, 40 * kibibyte)))
    // Four blocks fit within the bound. The header blocks may arrive over several checks, so more may be cut.
    await closed(large, 6)
    t.ok(await served(small), 'a small one gets a response')
    t.match(told, ['connections closed: their incomplete header blocks used too much memory'])
  },
)

t.test('unfinished headers: the largest are closed until half of the bound remains', async (t) => {
  const sizes = [1, 40, 30, 40, 20, 40, 10, 40]
  const cut: number[] = []
  const sockets = sizes.map((bytesRead) => ({ bytesRead, destroy: () => cut.push(bytesRead) }))
  const reports: unknown[] = []
  const stop = limitUnfinishedHeaders(
    new Set(sockets as unknown as Socket[]),
    () => ({ req: undefined, after: undefined, from: 0 }),
    { maxBytes: 202, maxHeaderBytes: 64, intervalMs: 1 },
    { ...silentLog, warn: (_message, fields) => void reports.push(fields) },
  )
  t.teardown(stop)
  while (reports.length === 0) await setTimeout(1)
  stop()
  // 101 bytes remain, which is exactly half of the bound.
  t.same(cut, [40, 40, 40])
  t.match(reports, [{ connections: 3, bytes: 221 }])
})

t.test('unfinished headers: connections with much complete traffic are not closed', async (t) => {
  const listener = await serve()
  t.teardown(() => listener.close({ graceMs: 0 }))
  const sockets = await Promise.all(Array.from({ length: 10 }, () => begin(listener.port, 4 * kibibyte)))
  for (const socket of sockets) t.ok(await served(socket))
  for (let round = 0; round < 4; round++) {
    for (const socket of sockets) {
      socket.write(
        `POST / HTTP/1.1\r\nHost: x\r\nX-A: ${'x'.repeat(10 * kibibyte)}\r\nContent-Length: 50000\r\n\r\n`,
      )
      socket.write('y'.repeat(50_000))
      const [data] = (await once(socket, 'data')) as [Buffer]
      t.match(String(data), /served/)
    }
  }
  t.notOk(sockets.some((socket) => socket.destroyed))
  for (const socket of sockets) socket.destroy()
})

t.test('unfinished headers: data of upgraded connections does not count', async (t) => {
  const listener = await serve()
  t.teardown(() => listener.close({ graceMs: 0 }))
  const sockets = await Promise.all(Array.from({ length: 10 }, () => upgrade(listener.port)))
  for (const socket of sockets) {
    socket.write('y'.repeat(50 * kibibyte))
    await once(socket, 'data')
  }
  // Ten checks run in this time.
  await setTimeout(200)
  t.notOk(sockets.some((socket) => socket.destroyed || socket.readableEnded))
  for (const socket of sockets) socket.destroy()
})

async function upgrade(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  await once(socket, 'data')
  return socket
}
