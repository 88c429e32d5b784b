/** Clients that do not read their response are disconnected after a while; slow and idle clients are not. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { registerStream, listen, silentLog } from '../../../runtime/net/index.ts'

const stalledMs = 1_000
const large = Buffer.alloc(16 * 1024 * 1024, 'x')
const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

async function serve(handler: Parameters<typeof listen>[0]['handler']) {
  return listen({ host: '127.0.0.1', port: 0, log: silentLog, limits: { stalledMs }, handler })
}

t.test('a client that reads nothing is disconnected, and its pending data is released', async (t) => {
  const cut = Promise.withResolvers<boolean>()
  const listener = await serve((_req, res) => {
    res.once('close', () => cut.resolve(res.writableFinished))
    res.end(large)
  })
  const socket = connect(listener.port, '127.0.0.1')
  socket.on('error', () => {}).pause()
  socket.write(request)
  t.equal(await cut.promise, false, 'the response was not sent completely')
  socket.destroy()
  await listener.close({ graceMs: 0 })
})

t.test('a client that reads slowly gets everything, although it takes longer', async (t) => {
  const listener = await serve((_req, res) => void res.end(large))
  const socket = connect(listener.port, '127.0.0.1')
  socket.write(request)
  let received = 0
  const from = performance.now()
  for await (const chunk of socket) {
    received += (chunk as Buffer).length
    if (received >= large.length) break
    await setTimeout(20)
  }
  t.ok(received >= large.length)
  t.ok(performance.now() - from > stalledMs, 'the transfer took longer than the limit')
  await listener.close({ graceMs: 0 })
})

t.test('a stream that was blocked once and is idle afterwards stays open', async (t) => {
  const blocked = Promise.withResolvers<() => void>()
  const listener = await serve((_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).write(large)
    registerStream(res, () => res.end())
    blocked.resolve(() => res.write('data: late\n\n'))
  })
  const socket = connect(listener.port, '127.0.0.1')
  socket.write(request)
  const late = await blocked.promise
  // One check finds the connection blocked, and the next ones do not.
  await setTimeout(stalledMs / 2)
  let text = ''
  let received = 0
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length
    text = (text + chunk.toString('latin1')).slice(-100)
  })
  while (received < large.length) await setTimeout(10)
  await setTimeout(stalledMs * 2)
  late()
  while (!text.includes('late') && !socket.destroyed) await setTimeout(10)
  t.equal(socket.destroyed, false)
  socket.destroy()
  if (!socket.closed) await once(socket, 'close')
  await listener.close({ graceMs: 0 })
})
