/** HTTP_PROXY, HTTPS_PROXY and NO_PROXY: which requests use a proxy, checked with a real proxy. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { makeDispatcher } from '../../../runtime/net/index.ts'
import { proxyFor } from '../../../runtime/net/outgoing/proxy-environment.ts'

const both = { http: 'http://proxy.example:3128', https: 'http://secure-proxy.example:3128' }

await t.test('proxy environment: the scheme selects the proxy, and loopback is never proxied', async (t) => {
  t.equal(proxyFor('http://mcp.example', both), both.http)
  t.equal(proxyFor('https://mcp.example', both), both.https)
  t.equal(proxyFor('https://mcp.example', { http: both.http }), undefined)
  t.equal(proxyFor('http://mcp.example', { http: 'proxy.example:1' }), 'http://proxy.example:1')
  t.equal(proxyFor('http://mcp.example', {}), undefined)
  for (const host of ['localhost', '127.0.0.1:80', '127.5.5.5', '[::1]:8080', 'a.localhost']) {
    t.equal(proxyFor(`http://${host}`, both), undefined, host)
  }
})

await t.test('proxy environment: exceptions by name, suffix, address, block and port', async (t) => {
  const cases: readonly [string, string, boolean][] = [
    ['*', 'a.example', true],
    ['example', 'a.example', true],
    ['a.example', 'a.example', true],
    ['a.example', 'b.a.example', true],
    ['a.example', 'ba.example', false],
    ['.a.example', 'a.example', false],
    ['.a.example', 'b.a.example', true],
    ['*.a.example', 'b.a.example', true],
    ['*.a.example', 'a.example', false],
    ['A.EXAMPLE.', 'a.example', false],
    ['x, a.example y', 'a.example', true],
    ['a.example:8080', 'a.example', false],
    ['a.example:80', 'a.example', true],
    ['10.0.0.0/8', '10.1.2.3', true],
    ['10.0.0.0/8', '11.1.2.3', false],
    ['10.0.0.0/99', '10.1.2.3', false],
    ['10.1.2.3', '10.1.2.3', true],
    ['[fd00::1]:80', '[fd00::1]', true],
    ['fd00::/8', '[fd12::1]', true],
    ['FD00:0:0::1', '[fd00::1]', true],
    ['[fd00:0::1]:80', '[fd00::1]', true],
  ]
  for (const [except, host, direct] of cases) {
    t.equal(proxyFor(`http://${host}`, { ...both, except }) === undefined, direct, `${except} and ${host}`)
  }
})

await t.test(
  'proxy environment: a dispatcher sends plain http in absolute form through the proxy',
  async (t) => {
    const seen: string[] = []
    const proxy = createServer((req, res) => {
      seen.push(`${req.method} ${req.url} ${String(req.headers['x-mine'])}`)
      res.end('through the proxy')
    })
    proxy.on('connect', (req, socket, head) => {
      seen.push(`CONNECT ${req.url}`)
      const to = connect(Number(req.url?.split(':')[1]), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        to.write(head)
        to.pipe(socket).pipe(to)
      })
      to.on('error', () => socket.destroy())
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const address = proxy.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    const dispatcher = makeDispatcher({
      proxy: { http: `http://127.0.0.1:${port}` },
      origin: 'http://mcp.example',
    })
    t.teardown(async () => {
      await dispatcher.destroy()
      proxy.closeAllConnections()
      proxy.close()
    })
    const response = await dispatcher.request({
      origin: 'http://mcp.example',
      path: '/mcp?a=b',
      method: 'GET',
      headers: ['X-Mine', '1', 'Host', 'mcp.example'],
    })
    t.equal(await response.body.text(), 'through the proxy')
    t.same(seen, ['GET http://mcp.example/mcp?a=b 1'])
  },
)
