/** The size of a request body is bounded by declaration and by count, before anything reaches the target. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { fakeAuthenticator, raw, startRig, startUpstream } from '../helpers/proxy-rig.ts'

const upstream = await startUpstream((seen, res) => res.end(String(seen.body.length)))
const rig = await startRig(upstream.url)
t.teardown(() => Promise.all([rig.close(), upstream.close()]))
const limit = 8_388_608

await t.test('body limit: exactly 8 MiB passes, one byte more is 413', async (t) => {
  const exact = await fetch(`${rig.url}/mcp`, { method: 'POST', body: Buffer.alloc(limit, 0x61) })
  t.equal(exact.status, 200)
  t.equal(await exact.text(), String(limit))
  const before = upstream.seen.length
  const over = await fetch(`${rig.url}/mcp`, { method: 'POST', body: Buffer.alloc(limit + 1, 0x61) })
  t.equal(over.status, 413)
  t.match(await over.json(), { status: 413, title: 'Request Entity Too Large' })
  t.equal(upstream.seen.length, before)
})

await t.test('body limit: a chunked body is cut when it passes the limit', async (t) => {
  const before = upstream.seen.length
  const socket = connect(rig.port, '127.0.0.1')
  socket.on('error', () => {})
  let answer = ''
  socket.setEncoding('latin1').on('data', (part: string) => {
    answer += part
  })
  socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
  const mebibyte = `100000\r\n${'a'.repeat(1 << 20)}\r\n`
  // Endless: only the proxy can stop it.
  while (!socket.destroyed && socket.writable) {
    if (socket.write(mebibyte)) continue
    await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
  }
  t.match(answer, /^HTTP\/1\.1 413 /)
  t.equal(upstream.seen.length, before)
})

await t.test('body limit: a client that asks first is told before it sends', async (t) => {
  const declared = await raw(
    rig.port,
    `POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: ${limit + 1}\r\n\r\n`,
  )
  t.match(declared, /^HTTP\/1\.1 413 /, 'no 100 before the refusal')

  const socket = connect(rig.port, '127.0.0.1')
  socket.setEncoding('latin1')
  socket.write(
    'POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n',
  )
  const [interim] = await once(socket, 'data')
  t.match(interim, /^HTTP\/1\.1 100 Continue/)
  socket.write('{}')
  const [answer] = await once(socket, 'data')
  t.match(answer, /^HTTP\/1\.1 200 /)
  socket.destroy()
})

await t.test('body limit: it holds before authentication', async (t) => {
  let asked = 0
  const guarded = await startRig(upstream.url, {
    incoming: () =>
      fakeAuthenticator(() => {
        asked++
      }),
  })
  t.teardown(() => guarded.close())
  const answer = await fetch(`${guarded.url}/mcp`, { method: 'POST', body: Buffer.alloc(limit + 1) })
  t.equal(answer.status, 413)
  t.equal(asked, 0)
})
