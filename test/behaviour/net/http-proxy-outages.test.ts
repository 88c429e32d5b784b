/** HTTP proxies that restart, close the connection, speak another protocol, or never respond. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import { failureText } from '../../helpers/network/failure-text.ts'
import { jsonHost, startIsolatedNetwork } from '../../helpers/network/isolated-network.ts'

await t.test('the error names a proxy that closes the connection or does not speak HTTP', async (t) => {
  for (const [reply, text] of [
    ['', 'connection closed without a response'],
    ['SSH-2.0-OpenSSH\r\n', 'the response is not HTTP'],
  ] as const) {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(reply))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const address = server.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    const fetch = makeFetch({ proxy: { https: `http://127.0.0.1:${port}` } })
    const message = await failureText(fetch('https://mcp.example/'))
    t.match(message, `the HTTP proxy 127.0.0.1:${port} did not open a tunnel to mcp.example:443: ${text}`)
    await fetch.close()
  }
})

for (const scheme of ['http', 'https'])
  await t.test(`${scheme}: requests use new connections after the proxy restarts`, async (t) => {
    const network = await startIsolatedNetwork({ 'mcp.example': jsonHost({ '/': { found: true } }) })
    t.teardown(() => network.close())
    const { proxy, ca } = network
    const fetch = makeFetch({
      proxy: { http: proxy.url, https: proxy.url },
      ca,
      allowHttp: true,
      connections: 2,
    })
    const send = async () => (await fetch(`${scheme}://mcp.example/`)).json()
    await Promise.all([send(), send()])
    t.equal(proxy.connections, 2)
    await proxy.close()
    // After one turn of the event loop, the client has noticed that its connections have closed.
    await setImmediate()
    t.match(await failureText(send()), `could not connect to the HTTP proxy 127.0.0.1:${proxy.port}`)
    await proxy.start()
    const found = true
    t.same(await Promise.all([send(), send(), send()]), [{ found }, { found }, { found }])
    t.ok(proxy.connections > 2)
    await fetch.close()
  })

/** Starts a proxy that accepts connections and reads requests, but sends only `greeting`. */
async function startSilentProxy(t: Test, greeting = '') {
  const sockets = new Set<Socket>()
  const requested = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write(greeting)
      requested.resolve()
    })
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) closed.resolve()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requested: requested.promise,
    closed: closed.promise,
    get connections() {
      return sockets.size
    },
  }
}

await t.test('a proxy that ignores CONNECT causes a timeout, and its socket is closed', async (t) => {
  for (const greeting of ['', 'HTTP/1.1 200 Connection']) {
    const silent = await startSilentProxy(t, greeting)
    const fetch = makeFetch({ proxy: { https: silent.url }, dialTimeoutMs: 100 })
    t.equal(
      await failureText(fetch('https://mcp.example/')),
      `the HTTP proxy 127.0.0.1:${silent.port} did not open a tunnel to mcp.example:443: no response in time (ETIMEDOUT); check HTTPS_PROXY`,
    )
    await silent.closed
    await fetch.close()
  }
})

await t.test('a tunnel without a TLS server causes a timeout, and its socket is closed', async (t) => {
  const silent = await startSilentProxy(t, 'HTTP/1.1 200 Connection established\r\n\r\n')
  const fetch = makeFetch({ proxy: { https: silent.url }, tlsTimeoutMs: 100 })
  t.match(await failureText(fetch('https://mcp.example/')), 'no response in time')
  await silent.closed
  await fetch.close()
})

await t.test('closing a fetch does not wait for connections used only by aborted requests', async (t) => {
  const silent = await startSilentProxy(t)
  const fetch = makeFetch({ proxy: { https: silent.url } })
  const abort = new AbortController()
  const request = fetch('https://mcp.example/', { signal: abort.signal })
  await silent.requested
  abort.abort()
  await t.rejects(request, { name: 'AbortError' })
  await fetch.close()
  t.equal(silent.connections, 1, 'the proxy has still not responded')
})

await t.test('an aborted request to a proxy that does not respond leaves no open socket', async (t) => {
  for (const scheme of ['http', 'https']) {
    const silent = await startSilentProxy(t)
    const options = { proxy: { http: silent.url, https: silent.url }, dialTimeoutMs: 200 }
    const fetch = makeFetch({ ...options, allowHttp: true })
    const abort = new AbortController()
    const request = fetch(`${scheme}://mcp.example/`, { signal: abort.signal })
    await silent.requested
    abort.abort()
    await t.rejects(request, { name: 'AbortError' })
    await silent.closed
    await fetch.close()
  }
})

await t.test('the timeout error of a request names the proxy', async (t) => {
  const silent = await startSilentProxy(t)
  const fetch = makeFetch({ proxy: { https: silent.url }, timeoutMs: 100 })
  await t.rejects(fetch('https://mcp.example/'), {
    code: 'TIMED_OUT',
    message: `mcp.example did not respond within 100 ms (through the HTTP proxy 127.0.0.1:${silent.port})`,
  })
  await fetch.close()
})
