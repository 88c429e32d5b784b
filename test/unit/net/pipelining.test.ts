/**
 * Pipelined requests: a moderate number is answered in order; a client that sends too many is disconnected and logged.
 */
import { connect } from 'node:net'
import t from 'tap'
import { listen, silentLog } from '../../../runtime/net/index.ts'

const request = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'

async function serve({ responds }: { readonly responds: boolean }) {
  const begun: number[] = []
  const told: string[] = []
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    log: { ...silentLog, warn: (message) => void told.push(message) },
    handler(req, res) {
      begun.push(1)
      req.resume()
      if (responds) setImmediate(() => res.end('served'))
    },
  })
  const socket = connect(listener.port, '127.0.0.1')
  socket.on('error', () => {})
  return { begun, told, listener, socket }
}

t.test('pipelining: too many requests without a response close the connection', async (t) => {
  const { begun, told, listener, socket } = await serve({ responds: false })
  t.teardown(() => listener.close({ graceMs: 0 }))
  socket.write(request.repeat(50_000))
  await new Promise((resolve) => socket.once('close', resolve))
  t.ok(begun.length < 3_000, `${begun.length} have begun`)
  t.same(told, ['connection closed: the client sent too many requests without waiting for responses'])
})

t.test('pipelining: several hundred requests get their responses, repeatedly', async (t) => {
  const { told, listener, socket } = await serve({ responds: true })
  t.teardown(() => listener.close({ graceMs: 0 }))
  let received = ''
  socket.setEncoding('latin1')
  for (let round = 1; round <= 10; round++) {
    socket.write(request.repeat(300))
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      received += String(chunk)
      if (received.split('\r\n\r\nserved').length - 1 === round * 300) break
    }
  }
  t.equal(received.split('\r\n\r\nserved').length - 1, 3_000)
  t.same(told, [])
  socket.destroy()
})
