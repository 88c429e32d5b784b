/**
 * Requests that two servers could read differently, or that no honest client sends, are rejected and never forwarded.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { raw, startRig, startUpstream } from '../helpers/proxy/rig.ts'

const upstream = await startUpstream((_seen, res) => res.end('forwarded'))
const rig = await startRig(upstream.url, {
  limits: { headersTimeoutMs: 200, requestTimeoutMs: 400, checkIntervalMs: 50 },
})
t.teardown(() => Promise.all([rig.close(), upstream.close()]))

const host = 'Host: localhost\r\nConnection: close\r\n'

const refused: readonly [string, string, RegExp][] = [
  [
    'both lengths',
    `POST /mcp HTTP/1.1\r\n${host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  [
    'two content lengths',
    `POST /mcp HTTP/1.1\r\n${host}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde`,
    /^HTTP\/1\.1 400 /,
  ],
  ['a list of lengths', `POST /mcp HTTP/1.1\r\n${host}Content-Length: 4, 4\r\n\r\nabcd`, /^HTTP\/1\.1 400 /],
  ['a negative length', `POST /mcp HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n`, /^HTTP\/1\.1 400 /],
  ['a signed length', `POST /mcp HTTP/1.1\r\n${host}Content-Length: +4\r\n\r\nabcd`, /^HTTP\/1\.1 400 /],
  [
    'chunked not last',
    `POST /mcp HTTP/1.1\r\n${host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  [
    'an obfuscated coding',
    `POST /mcp HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  [
    'a bad chunk size',
    `POST /mcp HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nzz\r\nabcd\r\n0\r\n\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  ['a space before the colon', `GET /mcp HTTP/1.1\r\n${host}X-A : 1\r\n\r\n`, /^HTTP\/1\.1 400 /],
  ['a folded header', `GET /mcp HTTP/1.1\r\n${host}X-A: 1\r\n 2\r\n\r\n`, /^HTTP\/1\.1 400 /],
  ['a bare line feed', 'GET /mcp HTTP/1.1\nHost: localhost\nX: y\n\n', /^HTTP\/1\.1 400 /],
  ['a null byte in a header', `GET /mcp HTTP/1.1\r\n${host}X-A: a\0b\r\n\r\n`, /^HTTP\/1\.1 400 /],
  ['no host', 'GET /mcp HTTP/1.1\r\nConnection: close\r\n\r\n', /^HTTP\/1\.1 400 /],
  [
    'two hosts',
    'GET /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    /^HTTP\/1\.1 400 /,
  ],
  [
    'two credentials',
    `GET /mcp HTTP/1.1\r\n${host}Authorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  [
    'two session ids',
    `GET /mcp HTTP/1.1\r\n${host}Mcp-Session-Id: a\r\nMCP-SESSION-ID: b\r\n\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  ['an absolute request target', `GET http://evil.example/mcp HTTP/1.1\r\n${host}\r\n`, /^HTTP\/1\.1 400 /],
  ['an asterisk', `OPTIONS * HTTP/1.1\r\n${host}\r\n`, /^HTTP\/1\.1 400 /],
  ['a space in the target', `GET /a b HTTP/1.1\r\n${host}\r\n`, /^HTTP\/1\.1 400 /],
  ['TRACE', `TRACE /mcp HTTP/1.1\r\n${host}\r\n`, /^HTTP\/1\.1 405 /],
  ['CONNECT', `CONNECT evil.example:443 HTTP/1.1\r\n${host}\r\n`, /^(?:HTTP\/1\.1 4|$)/],
  ['no HTTP at all', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', /^HTTP\/1\.1 400 /],
  ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /^(?:HTTP\/1\.1 400 |$)/],
]

await t.test('malformed: each request is rejected and nothing reaches the target', async (t) => {
  for (const [name, request, expected] of refused) {
    const response = await raw(rig.port, Buffer.from(request, 'latin1'))
    t.match(response, expected, name)
    t.notMatch(response, /HPE_|Error:|node:|\/work|\.ts/, `${name}: no internals`)
  }
  t.same(upstream.seen, [])
})

await t.test('malformed: a second request hidden in a body stays a body', async (t) => {
  const hidden = 'GET /admin HTTP/1.1\r\nHost: localhost\r\n\r\n'
  await raw(rig.port, `POST /mcp HTTP/1.1\r\n${host}Content-Length: ${hidden.length}\r\n\r\n${hidden}`)
  t.same(
    upstream.seen.map((seen) => [seen.url, seen.body]),
    [['/mcp', hidden]],
  )
  upstream.seen.length = 0
})

await t.test(
  'malformed: a chunked body is forwarded with one length, whatever the client wrote',
  async (t) => {
    await raw(
      rig.port,
      `POST /mcp HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n2;ext=1\r\nab\r\n2\r\ncd\r\n0\r\nX-Trailer: 1\r\n\r\n`,
    )
    t.match(upstream.seen, [{ body: 'abcd', headers: { 'content-length': '4' } }])
    t.equal(upstream.seen[0]?.headers['transfer-encoding'], undefined)
    t.equal(upstream.seen[0]?.headers['x-trailer'], undefined)
    upstream.seen.length = 0
  },
)

await t.test('malformed: a truncated body is never forwarded', async (t) => {
  for (const request of [
    `POST /mcp HTTP/1.1\r\n${host}Content-Length: 10\r\n\r\nabc`,
    `POST /mcp HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n5\r\nab`,
  ]) {
    const socket = connect(rig.port, '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.resume().end(request)
    await once(socket, 'close')
  }
  t.same(upstream.seen, [])
})

await t.test('malformed: a header block that is endless or too large is cut off', async (t) => {
  t.match(await raw(rig.port, 'GET /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: '), /^HTTP\/1\.1 408 /)
  t.match(
    await raw(rig.port, 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\na'),
    /^HTTP\/1\.1 408 /,
  )
  const large = `GET /mcp HTTP/1.1\r\n${host}X-Large: ${'x'.repeat(1_100_000)}\r\n\r\n`
  t.match(await raw(rig.port, large), /^(?:HTTP\/1\.1 431 |$)/)
  const fits = `GET /mcp HTTP/1.1\r\n${host}X-Large: ${'x'.repeat(15_000)}\r\n\r\n`
  t.match(await raw(rig.port, fits), /^HTTP\/1\.1 200 /)
  upstream.seen.length = 0
})

await t.test('malformed: pipelined requests are answered in order', async (t) => {
  const response = await raw(
    rig.port,
    `GET /one HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health HTTP/1.1\r\n${host}\r\n`,
  )
  t.match(response, /forwarded[\s\S]*"status":"healthy"/)
})
