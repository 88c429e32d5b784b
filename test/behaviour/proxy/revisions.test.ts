/** Requests that the proxy itself rejects: batches, and stateless requests that contradict themselves. */
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { json, rawRequest, startRig, startUpstream } from '../../helpers/proxy/rig.ts'

const upstream = await startUpstream((_seen, res) => res.end('forwarded'))
const rig = await startRig(upstream.url)
t.teardown(() => Promise.all([rig.close(), upstream.close()]))

const meta = (version: unknown, more: Record<string, unknown> = {}): string =>
  JSON.stringify({
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
    ...more,
  })

function stateless(id: string, metaJson: string): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":{"_meta":${metaJson}}}`
}

async function send(
  body: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const response = await fetch(`${rig.url}/mcp`, { method: 'POST', headers: { ...json, ...headers }, body })
  return { status: response.status, text: await response.text() }
}

const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }

await t.test('revision: a valid stateless request passes', async (t) => {
  t.same(await send(stateless('1', meta('2026-07-28')), modern), { status: 200, text: 'forwarded' })
})

await t.test(
  'revision: each contradiction is 400 with its code, the id byte for byte, and not forwarded',
  async (t) => {
    const before = upstream.seen.length
    const big = '12345678901234567890'
    const cases: readonly [string, string, Record<string, string>, number][] = [
      [
        'header differs from the body',
        stateless(big, meta('2026-07-28')),
        { ...modern, 'mcp-protocol-version': '2025-11-25' },
        -32020,
      ],
      ['header absent', stateless(big, meta('2026-07-28')), { 'mcp-method': 'tools/list' }, -32020],
      [
        'revision unknown',
        stateless(big, meta('2099-01-01')),
        { ...modern, 'mcp-protocol-version': '2099-01-01' },
        -32022,
      ],
      ['no version in the body', stateless(big, '{"io.modelcontextprotocol/clientInfo":{}}'), modern, -32602],
      [
        'method header differs',
        stateless(big, meta('2026-07-28')),
        { ...modern, 'mcp-method': 'tools/call' },
        -32020,
      ],
    ]
    for (const [name, body, headers, code] of cases) {
      const { status, text } = await send(body, headers)
      t.equal(status, 400, name)
      t.match(text, `"id":${big},"error":{"code":${code},`, name)
    }
    t.equal(upstream.seen.length, before)
  },
)

await t.test('revision: GET and DELETE do not exist in the stateless revision', async (t) => {
  for (const method of ['GET', 'HEAD', 'DELETE']) {
    const response = await fetch(`${rig.url}/mcp`, {
      method,
      headers: { 'mcp-protocol-version': '2026-07-28' },
    })
    t.equal(response.status, 405, method)
    t.equal(response.headers.get('allow'), 'POST, OPTIONS')
  }
})

/** Arrays after a prefix that some parsers skip, or in a charset that some parsers decode. */
const disguised: readonly Buffer[] = [
  Buffer.from('\ufeff[]'),
  Buffer.from('\v[]'),
  Buffer.from('\f \0\u0085\u00a0\u1680\u2003\u2028\u205f\u3000\u200b\ufeff[]'),
  Buffer.from('\ufeff[]', 'utf16le'),
  Buffer.from('[]', 'utf16le'),
  Buffer.from('\ufeff[]', 'utf16le').swap16(),
  Buffer.from('\u00a0\u0085[]', 'latin1'),
]

await t.test('batch: an array is rejected whatever its content, path or type, without an id', async (t) => {
  const before = upstream.seen.length
  const bodies = ['[]', ' \r\n\t[{"jsonrpc":"2.0","id":1,"method":"ping"}]', '[not json', ...disguised]
  for (const body of bodies) {
    for (const type of ['application/json', 'text/plain']) {
      const response = await fetch(`${rig.url}/any/path`, {
        method: 'PUT',
        headers: { 'content-type': type },
        body,
      })
      t.equal(response.status, 400)
      t.same(await response.json(), {
        jsonrpc: '2.0',
        error: { code: -32600, message: 'JSON-RPC batches are not supported' },
      })
    }
  }
  t.equal(upstream.seen.length, before)
})

await t.test('batch: a compressed body is rejected unread, because it could be a batch', async (t) => {
  const before = upstream.seen.length
  for (const coding of ['gzip', 'GZIP', 'identity, br', 'deflate', 'x']) {
    const response = await fetch(`${rig.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': coding },
      body: gzipSync('[]'),
    })
    t.equal(response.status, 415, coding)
    t.equal(response.headers.get('accept-encoding'), 'identity')
    t.match(await response.json(), { title: /Content-Encoding/ })
  }
  const framed = await rawRequest(
    rig.port,
    ['POST /mcp HTTP/1.1', 'Host: localhost', 'Transfer-Encoding: gzip, chunked'],
    '2\r\n[]\r\n0\r\n\r\n',
  )
  t.match(framed, /^HTTP\/1\.1 501 /, 'a transfer coding')
  t.equal(upstream.seen.length, before)
  t.same(await send('{"a":1}', { 'content-encoding': 'identity' }), { status: 200, text: 'forwarded' })
})

await t.test('body: JSON after an invalid prefix is rejected', async (t) => {
  const before = upstream.seen.length
  for (const type of [
    'application/json',
    'Application/JSON; charset=utf-7',
    'application/json-rpc',
    'a/b+json',
  ]) {
    for (const body of ['+AFs-]', '/**/[]', '#\n[]', ")]}'\n[]", '\ufeff{}', '\v{}', '-[]']) {
      const response = await fetch(`${rig.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': type },
        body,
      })
      t.equal(response.status, 400, `${type} ${body}`)
      t.match(await response.json(), { jsonrpc: '2.0', error: { code: -32700 } })
    }
  }
  t.equal(upstream.seen.length, before)
})

await t.test('body: content that is not JSON-RPC is forwarded', async (t) => {
  for (const body of ['{"a":1}', '{broken', 'plain', '{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}']) {
    t.same(await send(body), { status: 200, text: 'forwarded' }, body)
    t.equal(upstream.seen.at(-1)?.body, body)
  }
})
