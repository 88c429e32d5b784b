/** A target that violates HTTP, sends wrong lengths or never ends cannot harm the proxy or other clients. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import t from 'tap'
import { json, rawRequest, rpc, startRig } from '../../helpers/proxy/rig.ts'

/** A TCP server that answers every request head with these bytes. */
async function startTcp(
  response: (socket: Socket, head: string) => void,
): Promise<{ url: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', (data: Buffer) => response(socket, data.toString('latin1')))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const broken: readonly [string, string][] = [
  ['no HTTP', 'garbage\r\n\r\n'],
  ['a bad status', 'HTTP/1.1 abc OK\r\n\r\n'],
  ['a header without a colon', 'HTTP/1.1 200 OK\r\nbroken header\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['a bad chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ['an unasked upgrade', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['nothing', ''],
  ['half a head', 'HTTP/1.1 200 OK\r\nContent-'],
]

await t.test('target: broken responses become a clean 502, or a truncated body', async (t) => {
  for (const [name, bytes] of broken) {
    const target = await startTcp((socket) => socket.end(bytes))
    const rig = await startRig(target.url, { headersTimeoutMs: 1000 })
    let outcome: string
    try {
      const response = await fetch(`${rig.url}/mcp`, { method: 'POST', headers: json, body: rpc(7) })
      const text = await response.text()
      outcome = `${response.status}`
      if (response.status >= 500) {
        t.match(JSON.parse(text), { jsonrpc: '2.0', id: 7, error: { code: -32603 } }, name)
        t.notMatch(text, /HPE|UND_ERR|ECONN|Parse|socket/i, `${name}: no internals`)
      }
    } catch {
      outcome = 'broken off'
    }
    t.match(outcome, /^(?:502|504|broken off)$/, `${name}: ${outcome}`)
    await rig.close()
    await target.close()
  }
})

await t.test('target: line breaks in its headers cannot split the client’s response', async (t) => {
  const target = await startTcp((socket) =>
    socket.end('HTTP/1.1 200 OK\r\nX-A: one\rSet-Cookie: evil=1\r\nContent-Length: 2\r\n\r\nok'),
  )
  const rig = await startRig(target.url)
  t.teardown(() => Promise.all([rig.close(), target.close()]))
  const response = await rawRequest(rig.port, ['GET /mcp HTTP/1.1', 'Host: localhost'])
  t.notMatch(response, /^Set-Cookie: evil/im)
})

await t.test('target: a response longer than declared is cut at its length', async (t) => {
  const target = await startTcp((socket) =>
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nevil'),
  )
  const rig = await startRig(target.url)
  t.teardown(() => Promise.all([rig.close(), target.close()]))
  const response = await rawRequest(rig.port, ['GET /mcp HTTP/1.1', 'Host: localhost'])
  t.match(response, /\r\n\r\nok$/)
  t.notMatch(response, /evil/)
})

await t.test('target: a redirect, a challenge or a cookie cannot send the proxy elsewhere', async (t) => {
  let hits = 0
  const elsewhere = await startTcp((socket) => {
    hits++
    socket.end()
  })
  const target = await startTcp((socket) =>
    socket.end(`HTTP/1.1 307 Go\r\nLocation: ${elsewhere.url}/mcp\r\nContent-Length: 0\r\n\r\n`),
  )
  const rig = await startRig(target.url)
  t.teardown(() => Promise.all([rig.close(), target.close(), elsewhere.close()]))
  const response = await fetch(`${rig.url}/mcp`, {
    method: 'POST',
    headers: json,
    body: rpc(1),
    redirect: 'manual',
  })
  t.equal(response.status, 502)
  t.equal(hits, 0)
})

await t.test('target: an endless first event is forwarded, not buffered', async (t) => {
  const target = await startTcp((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ')
    const pump = (): void => {
      if (!socket.destroyed && socket.write('x'.repeat(65_536))) setImmediate(pump)
      else socket.once('drain', pump)
    }
    pump()
  })
  const rig = await startRig(target.url)
  t.teardown(() => Promise.all([rig.close(), target.close()]))
  const response = await fetch(`${rig.url}/sse`)
  let received = 0
  for await (const chunk of response.body ?? []) {
    received += chunk.length
    if (received > 1 << 20) break
  }
  t.ok(received > 1 << 20)
})
