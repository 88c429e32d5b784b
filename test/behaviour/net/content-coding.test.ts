/**
 * Servers that compress: a component that reads a response requests identity encoding, and names the problem if the
 * response is still compressed. Responses that only pass through the proxy keep their encoding.
 */
import type { IncomingMessage } from 'node:http'
import { gunzipSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { makeDispatcher } from '../../../runtime/net/index.ts'
import { exchangeWithBackend } from '../../../runtime/vmcp/backends/transport/http.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { json, rawRequest, rpc, startRig, startServer, startUpstream } from '../../helpers/proxy/rig.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { initialize, initialized, startStdio } from '../../helpers/proxy/stdio-rig.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

/** RFC 9110 allows this: a request without the header accepts any encoding. */
const likeServers = (req: IncomingMessage): boolean => {
  const accepted = req.headers['accept-encoding']
  return accepted === undefined || /gzip|\*/.test(accepted)
}
const always = (): boolean => true

/** A real backend behind a server that compresses. */
async function startCompressing(t: Test, compresses: (req: IncomingMessage) => boolean) {
  const backend = await startRawBackend()
  const asked: unknown[] = []
  const front = await startServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => void response(Buffer.concat(chunks)))
    async function response(body: Buffer): Promise<void> {
      asked.push(req.headers['accept-encoding'])
      if (req.method === 'GET') return void res.writeHead(405).end()
      const headers = Object.entries(req.headers).flatMap(([name, value]): [string, string][] =>
        typeof value === 'string' && !/^(host|connection|content-length|transfer-encoding)$/.test(name)
          ? [[name, value]]
          : [],
      )
      const got = await fetch(backend.url, {
        method: req.method ?? 'POST',
        headers: [...headers, ['accept-encoding', 'identity']],
        body: body.length > 0 ? body : null,
      })
      const bytes = Buffer.from(await got.arrayBuffer())
      const coded = bytes.length > 0 && compresses(req)
      const session = got.headers.get('mcp-session-id')
      res.writeHead(got.status, {
        'content-type': got.headers.get('content-type') ?? 'text/plain',
        ...(session === null ? {} : { 'mcp-session-id': session }),
        ...(coded ? { 'content-encoding': 'gzip' } : {}),
      })
      res.end(coded ? gzipSync(bytes) : bytes)
    }
  })
  t.teardown(() => Promise.all([front.close(), backend.close()]))
  return { url: `${front.url}/mcp`, origin: front.url, asked, backend }
}

await t.test('vmcp: a backend that would compress is requested without compression', async (t) => {
  const { url, asked } = await startCompressing(t, likeServers)
  const vmcp = await startTestVmcp({ raw: url })
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url, { headers: { 'accept-encoding': 'gzip' } })
  const { response } = await session.request('tools/call', { name: 'raw_echo', arguments: { a: 1 } })
  t.match(response?.result, { content: [{ text: '{"a":1}' }] })
  t.same([...new Set(asked)], ['identity'])
})

await t.test('vmcp: a backend that compresses anyway is reported as such', async (t) => {
  const { url } = await startCompressing(t, always)
  const dispatcher = makeDispatcher()
  t.teardown(() => dispatcher.destroy())
  const call = exchangeWithBackend(dispatcher, {
    method: 'POST',
    url: new URL(url),
    headers: json,
    body: Buffer.from(JSON.stringify(initialize)),
    signal: new AbortController().signal,
  })
  await t.rejects(call, { code: 'BACKEND_PROTOCOL', message: /Content-Encoding: gzip/ })
  const vmcp = await startTestVmcp({ raw: url })
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url)
  t.match((await session.request('tools/list')).response, { error: { message: /backend raw/ } })
})

await t.test('proxy stdio: requests no compression, and reports a compressed response', async (t) => {
  const friendly = await startCompressing(t, likeServers)
  const bridge = startStdio(t, friendly.url)
  bridge.send(initialize)
  t.match(await bridge.message(), { id: 0, result: {} })
  bridge.send(initialized)
  bridge.send(rpc(1, 'tools/call', { name: 'echo', arguments: { b: 2 } }))
  t.match(await bridge.message(), { id: 1, result: { content: [{ text: '{"b":2}' }] } })

  const stubborn = startStdio(t, (await startCompressing(t, always)).url)
  stubborn.send(initialize)
  t.match(await stubborn.message(), { id: 0, error: { message: /Content-Encoding: gzip/ } })
})

await t.test('proxy: responses keep the encoding that the client requested', async (t) => {
  const upstream = await startUpstream((seen, res) => {
    const body = gzipSync(String(seen.headers['accept-encoding']))
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    res.writeHead(200, { ...headers, 'content-length': body.length }).end(body)
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const head = ['POST /mcp HTTP/1.1', 'Host: localhost', 'Accept-Encoding: gzip, br', 'Content-Length: 2']
  const text = await rawRequest(rig.port, head, '{}')
  t.match(text, /content-encoding: gzip/i)
  const body = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1')
  t.equal(gunzipSync(body.subarray(body.indexOf(0x1f))).toString(), 'gzip, br')
})

await t.test('proxy: a stream whose first event the proxy must read is not compressed', async (t) => {
  const upstream = await startUpstream((seen, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.end(
      `event: endpoint\ndata: http://127.0.0.1:${upstream.port}/messages?${seen.headers['accept-encoding']}\n\n`,
    )
  })
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const response = await fetch(`${rig.url}/sse`, {
    headers: { accept: 'text/event-stream', 'accept-encoding': 'gzip' },
  })
  t.equal(await response.text(), 'event: endpoint\ndata: /messages?identity\n\n')
})

await t.test('proxy: a session is reopened even if the client accepts compressed responses', async (t) => {
  const { origin, backend } = await startCompressing(t, likeServers)
  const rig = await startRig(origin)
  t.teardown(() => rig.close())
  const post = async (body: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${rig.url}/mcp`, {
      method: 'POST',
      headers: { ...json, 'accept-encoding': 'gzip', ...headers },
      body,
    })
  const opened = await post(JSON.stringify(initialize))
  const id = opened.headers.get('mcp-session-id') ?? ''
  backend.sessions.clear()
  const called = await post(rpc(1, 'tools/call', { name: 'echo', arguments: { c: 3 } }), {
    'mcp-session-id': id,
  })
  t.match(await called.json(), { id: 1, result: { content: [{ text: '{"c":3}' }] } })
})
