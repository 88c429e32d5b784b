/** Request bodies are limited by their declared length and by counted bytes, before anything reaches the target. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { Pool } from 'undici'
import { fakeAuthenticator, raw, startRig, startUpstream } from '../helpers/proxy/rig.ts'

const upstream = await startUpstream((seen, res) => res.end(String(seen.body.length)))
const rig = await startRig(upstream.url)
t.teardown(() => Promise.all([rig.close(), upstream.close()]))
const limit = 8_388_608

await t.test('body limit: exactly 8 MiB passes, one more byte is 413', async (t) => {
  const exact = await fetch(`${rig.url}/mcp`, { method: 'POST', body: Buffer.alloc(limit, 0x61) })
  t.equal(exact.status, 200)
  t.equal(await exact.text(), String(limit))
  const before = upstream.seen.length
  const over = await fetch(`${rig.url}/mcp`, { method: 'POST', body: Buffer.alloc(limit + 1, 0x61) })
  t.equal(over.status, 413)
  t.match(await over.json(), { status: 413, title: 'Request Entity Too Large' })
  t.equal(upstream.seen.length, before)
})

await t.test('body limit: a chunked body is cut at the limit', async (t) => {
  const before = upstream.seen.length
  const socket = connect(rig.port, '127.0.0.1')
  socket.on('error', () => {})
  let response = ''
  socket.setEncoding('latin1').on('data', (part: string) => {
    response += part
  })
  socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
  const mebibyte = `100000\r\n${'a'.repeat(1 << 20)}\r\n`
  // An endless body, which only the proxy can stop.
  const closed = new Promise((resolve) => socket.once('close', resolve))
  while (!socket.destroyed && socket.writable) {
    if (socket.write(mebibyte)) continue
    await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
  }
  t.match(response, /^HTTP\/1\.1 413 /)
  t.equal(upstream.seen.length, before)
})

await t.test(
  'body limit: a client that sends Expect gets the rejection before it sends the body',
  async (t) => {
    const declared = await raw(
      rig.port,
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: ${limit + 1}\r\n\r\n`,
    )
    t.match(declared, /^HTTP\/1\.1 413 /, 'no 100 before the rejection')

    const socket = connect(rig.port, '127.0.0.1')
    socket.setEncoding('latin1')
    socket.write(
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n',
    )
    const [interim] = await once(socket, 'data')
    t.match(interim, /^HTTP\/1\.1 100 Continue/)
    socket.write('{}')
    const [response] = await once(socket, 'data')
    t.match(response, /^HTTP\/1\.1 200 /)
    socket.destroy()
  },
)

/** Sends the whole request before it reads, as Python's urllib does. Resolves with the response, rejects on a reset. */
async function sendThenRead(port: number, head: readonly string[], body: Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const failed = Promise.withResolvers<never>()
  socket.on('error', failed.reject)
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await Promise.race([new Promise((resolve) => socket.write(body, resolve)), failed.promise])
  let text = ''
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part
  })
  await Promise.race([once(socket, 'end'), failed.promise])
  return text
}

const big = Buffer.alloc(5 * limit, 0x61)
const declared = `Content-Length: ${big.length}`

await t.test('body limit: a client that sends everything before it reads gets the 413', async (t) => {
  for (const connection of ['close', 'keep-alive']) {
    const head = ['POST /mcp HTTP/1.1', 'Host: localhost', `Connection: ${connection}`, declared]
    const response = await sendThenRead(rig.port, head, big)
    t.match(response, /^HTTP\/1\.1 413 /, connection)
    t.match(response, /\r\nconnection: close\r\n/i, `${connection}: the connection is not reused`)
    t.match(response, /Request Entity Too Large/, `${connection}: the body is complete`)
  }
})

await t.test('body limit: every early rejection reaches a client that closes', async (t) => {
  const allowed = Buffer.alloc(limit, 0x61)
  const declared = `Content-Length: ${limit}`
  const early: Readonly<Record<string, readonly string[]>> = {
    403: [
      'POST /mcp HTTP/1.1',
      'Host: localhost',
      'Origin: https://evil.example',
      'Connection: close',
      declared,
    ],
    404: ['POST /.well-known/x HTTP/1.1', 'Host: localhost', 'Connection: close', declared],
    405: ['TRACE /mcp HTTP/1.1', 'Host: localhost', 'Connection: close', declared],
  }
  for (const [status, head] of Object.entries(early)) {
    t.match(await sendThenRead(rig.port, head, allowed), new RegExp(`^HTTP/1\\.1 ${status} `), status)
  }
})

await t.test('body limit: rejections by the HTTP parser reach the client too', async (t) => {
  const malformed = ['POST /mcp HTTP/1.1', 'Host: localhost', 'Content-Length: 1', 'Content-Length: 2']
  t.match(await sendThenRead(rig.port, malformed, big), /^HTTP\/1\.1 400 /)
  const long = ['POST /mcp HTTP/1.1', 'Host: localhost', `X-Long: ${'a'.repeat(3 << 20)}`]
  t.match(await sendThenRead(rig.port, long, big), /^HTTP\/1\.1 431 /)
})

await t.test('body limit: the next request of a pooled client succeeds', async (t) => {
  const pool = new Pool(rig.url, { connections: 1 })
  t.teardown(() => pool.destroy())
  const post = async (body: Buffer): Promise<number> => {
    const response = await pool.request({ method: 'POST', path: '/mcp', body })
    await response.body.dump()
    return response.statusCode
  }
  const fetched = async (body: Buffer): Promise<number> => {
    const response = await fetch(`${rig.url}/mcp`, { method: 'POST', body })
    await response.arrayBuffer()
    return response.status
  }
  for (let round = 0; round < 3; round++) {
    t.equal(await post(big), 413)
    t.equal(await post(Buffer.from('{}')), 200)
    t.equal(await fetched(big), 413)
    t.equal(await fetched(Buffer.from('{}')), 200)
  }
})

await t.test('body limit: it applies before authentication', async (t) => {
  let asked = 0
  const guarded = await startRig(upstream.url, {
    incoming: () =>
      fakeAuthenticator(() => {
        asked++
      }),
  })
  t.teardown(() => guarded.close())
  const response = await fetch(`${guarded.url}/mcp`, { method: 'POST', body: Buffer.alloc(limit + 1) })
  t.equal(response.status, 413)
  t.equal(asked, 0)
})
