/** Outgoing connections through an HTTP proxy: tunnels, pooling, streams, trust, the address rule, and errors. */
import type { LookupAddress } from 'node:dns'
import { createServer } from 'node:net'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { type LookupAll, makeDispatcher, makeFetch } from '../../../runtime/net/index.ts'
import { failureText } from '../../helpers/network/failure-text.ts'
import {
  type Host,
  jsonHost,
  type NetworkOptions,
  startIsolatedNetwork,
} from '../../helpers/network/isolated-network.ts'

const echo: Host = ({ method, path, headers, body }, res) =>
  res.end(JSON.stringify({ method, path, host: headers.host, leaked: headers['proxy-authorization'], body }))

async function network(t: Test, hosts: Record<string, Host>, options: NetworkOptions = {}) {
  const made = await startIsolatedNetwork(hosts, options)
  t.teardown(() => made.close())
  const both = { http: made.proxy.url, https: made.proxy.url }
  const withCredentials = (text: string) => made.proxy.url.replace('//', `//${text}@`)
  return { ...both, made, proxy: made.proxy, ca: made.ca, both, withCredentials }
}

const nowhere: LookupAll = (hostname, _options, done) =>
  done(Object.assign(new Error(`no ${hostname}`), { code: 'ENOTFOUND' }), [])

const to =
  (...addresses: string[]): LookupAll =>
  (hostname, _options, done) =>
    hostname === '127.0.0.1'
      ? done(null, [{ address: hostname, family: 4 }])
      : done(
          null,
          addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
        )

await t.test('https: tunnels are kept alive, and the target sees no proxy header', async (t) => {
  const { both, proxy, ca, made } = await network(t, { 'mcp.example': echo })
  const fetch = makeFetch({ proxy: both, ca, connections: 1 })
  for (let i = 0; i < 3; i++) {
    const response = await fetch('https://mcp.example/mcp?a=b', { method: 'POST', body: 'hello' })
    t.same(await response.json(), { method: 'POST', path: '/mcp?a=b', host: 'mcp.example', body: 'hello' })
  }
  t.same(proxy.asked, ['CONNECT mcp.example:443'])
  t.equal(proxy.connections, 1)
  t.equal(made.direct, 0)
  await fetch.close()
})

await t.test('http: requests use the absolute form on one connection', async (t) => {
  const { both, proxy, made } = await network(t, { 'mcp.example': echo })
  const fetch = makeFetch({ proxy: both, allowHttp: true, connections: 1 })
  for (let i = 0; i < 3; i++) {
    const response = await fetch('http://mcp.example/mcp?a=b', { method: 'POST', body: 'hello' })
    t.match(await response.json(), { path: '/mcp?a=b', host: 'mcp.example', body: 'hello' })
  }
  t.same(new Set(proxy.asked), new Set(['POST http://mcp.example/mcp?a=b']))
  t.equal(proxy.connections, 1)
  t.equal(made.direct, 0)
  await fetch.close()
})

for (const scheme of ['http', 'https']) {
  await t.test(`${scheme}: an event stream arrives piece by piece`, async (t) => {
    let send = (_text: string): void => {}
    const { both, ca } = await network(t, {
      'mcp.example': (_request, res) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        send = (text) => void res.write(text)
        send('data: 1\n\n')
      },
    })
    const dispatcher = makeDispatcher({ proxy: both, ca, headersTimeoutMs: 0 })
    const { body } = await dispatcher.request({ origin: `${scheme}://mcp.example`, path: '/', method: 'GET' })
    const pieces: string[] = []
    for await (const chunk of body) {
      pieces.push(String(chunk))
      if (pieces.length === 3) break
      send(`data: ${pieces.length + 1}\n\n`)
    }
    t.same(pieces, ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n'])
    await dispatcher.destroy()
  })
}

await t.test('a private authority is trusted for the target and for a proxy that serves TLS', async (t) => {
  const { both, ca, proxy } = await network(t, { 'mcp.example': echo }, { tlsProxy: true })
  const material = { ca }
  const fetch = makeFetch({ proxy: both, tls: () => material, allowHttp: true })
  t.equal((await fetch('https://mcp.example/')).status, 200)
  t.equal((await fetch('http://mcp.example/')).status, 200)
  t.same(proxy.asked, ['CONNECT mcp.example:443', 'GET http://mcp.example/'])
  await fetch.close()
  const untrusting = makeFetch({ proxy: both })
  t.match(
    await failureText(untrusting('https://mcp.example/')),
    `could not connect to the HTTP proxy 127.0.0.1:${proxy.port}: TLS handshake failed`,
  )
  await untrusting.close()
  const careless = makeFetch({ proxy: both, tls: () => ({ insecureSkipVerify: true }) })
  t.match(
    await failureText(careless('https://mcp.example/')),
    'TLS handshake failed',
    'insecureSkipVerify applies only to the target',
  )
  await careless.close()
})

await t.test('credentials are percent-decoded for the proxy and appear in no message', async (t) => {
  const options = { credentials: 'ann:p@ss:word' }
  const { proxy, ca, withCredentials, both } = await network(t, { 'mcp.example': echo }, options)
  const url = withCredentials('ann:p%40ss%3Aword')
  const fetch = makeFetch({ proxy: { http: url, https: url }, ca, allowHttp: true })
  for (const scheme of ['http', 'https'])
    t.same(
      await (await fetch(`${scheme}://mcp.example/`)).json(),
      { method: 'GET', path: '/', host: 'mcp.example', body: '' },
      `${scheme}: the target sees no credentials of the proxy`,
    )
  await fetch.close()
  const wrongUrl = withCredentials('ann:wrong')
  const wrong = makeFetch({ proxy: { http: wrongUrl, https: wrongUrl }, ca, allowHttp: true })
  const none = makeFetch({ proxy: both, ca, allowHttp: true })
  for (const [scheme, variable] of [
    ['http', 'HTTP_PROXY'],
    ['https', 'HTTPS_PROXY'],
  ] as const) {
    t.equal(
      await failureText(wrong(`${scheme}://mcp.example/`)),
      `the HTTP proxy 127.0.0.1:${proxy.port} rejected the credentials in ${variable} (407); correct them`,
    )
    t.equal(
      await failureText(none(`${scheme}://mcp.example/`)),
      `the HTTP proxy 127.0.0.1:${proxy.port} requires credentials (407); add a user and password to ${variable}`,
    )
  }
  await Promise.all([wrong.close(), none.close()])
})

await t.test('errors name the proxy and the next step', async (t) => {
  const { both, ca, proxy } = await network(t, {})
  const fetch = makeFetch({ proxy: both, ca })
  t.equal(
    await failureText(fetch('https://unknown.example/')),
    `the HTTP proxy 127.0.0.1:${proxy.port} could not connect to unknown.example:443 (502); check the host name, or add it to NO_PROXY if it is reachable directly`,
  )
  await fetch.close()
  const forbidding = await network(t, { 'mcp.example': echo }, { status: 403 })
  const refused = makeFetch({ proxy: forbidding.both, ca: forbidding.ca })
  t.match(
    await failureText(refused('https://mcp.example/')),
    'refused to connect to mcp.example:443 (403); allow the host',
  )
  await refused.close()
  const gone = makeFetch({ proxy: { https: 'http://user:secret@127.0.0.1:9' } })
  t.equal(
    await failureText(gone('https://mcp.example/')),
    'could not connect to the HTTP proxy 127.0.0.1:9: connection refused (ECONNREFUSED); check HTTPS_PROXY',
  )
  await gone.close()
  const unknown = makeFetch({ proxy: { https: 'proxy.corp.example:3128' }, lookup: nowhere })
  t.equal(
    await failureText(unknown('https://mcp.example/')),
    'could not connect to the HTTP proxy proxy.corp.example:3128: name resolution failed (ENOTFOUND); check HTTPS_PROXY',
  )
  await unknown.close()
  for (const value of ['socks5://127.0.0.1:1080', 'http://', 'http://user:secret@bad host']) {
    const broken = makeFetch({ proxy: { https: value } })
    t.equal(
      await failureText(broken('https://mcp.example/')),
      'invalid HTTPS_PROXY: expected an http or https URL such as http://proxy.example.com:3128',
    )
    await broken.close()
  }
})

const refusedAddress = 'refused to connect to '

await t.test(
  'URLs that another server named: only names of allowed addresses go through the proxy',
  async (t) => {
    const { both, ca, proxy } = await network(t, { 'idp.example': jsonHost({ '/': { found: true } }) })
    const guarded = (lookup: LookupAll, more: object = {}) =>
      makeFetch({ guard: true, proxy: { ...both, ...more }, ca, lookup, allowHttp: true })
    const known = guarded(to('93.184.216.34'))
    t.same(await (await known('https://idp.example/')).json(), { found: true })
    for (const host of [
      '10.0.0.1',
      '169.254.169.254',
      '[::ffff:10.0.0.1]',
      'intranet',
      'idp.team.svc',
      'idp.team.svc.cluster.local',
      'idp.team.svc.corp.example',
      'printer.local',
      'metadata.google.internal',
    ])
      for (const scheme of ['http', 'https'])
        t.match(await failureText(known(`${scheme}://${host}/`)), refusedAddress, `${scheme} ${host}`)
    await known.close()
    for (const addresses of [['10.0.0.1'], ['93.184.216.34', '10.0.0.1'], ['fd00::1']]) {
      const fetch = guarded(to(...addresses))
      t.match(await failureText(fetch('https://idp.example/')), refusedAddress, addresses.join())
      t.match(await failureText(fetch('http://idp.example/')), refusedAddress, addresses.join())
      await fetch.close()
    }
    const before = proxy.asked.length
    const unresolved = guarded(nowhere)
    t.match(await failureText(unresolved('https://idp.example/')), 'set GATEHOUSE_PROXY_RESOLVES_NAMES=true')
    await unresolved.close()
    t.equal(proxy.asked.length, before, 'the proxy received no request')
    const permitted = guarded(nowhere, { resolvesNames: true })
    t.same(await (await permitted('https://idp.example/')).json(), { found: true })
    t.match(await failureText(permitted('https://intranet/')), refusedAddress, 'a local name stays rejected')
    await permitted.close()
    const resolvedInside = guarded(to('10.0.0.1'), { resolvesNames: true })
    t.match(
      await failureText(resolvedInside('https://idp.example/')),
      refusedAddress,
      'a known address stays rejected',
    )
    await resolvedInside.close()
  },
)

await t.test(
  'URLs of the operator: the proxy resolves the name, and known private addresses stay rejected',
  async (t) => {
    const { both, ca } = await network(t, { 'mcp.example': jsonHost({ '/': { found: true } }) })
    for (const operatorUrls of ['all', ['https://mcp.example/mcp']] as const) {
      const fetch = makeFetch({ guard: 'public', operatorUrls, proxy: both, ca, lookup: nowhere })
      t.same(await (await fetch('https://mcp.example/')).json(), { found: true })
      await fetch.close()
      const inside = makeFetch({ guard: 'public', operatorUrls, proxy: both, ca, lookup: to('10.0.0.1') })
      t.match(await failureText(inside('https://mcp.example/')), refusedAddress)
      await inside.close()
    }
  },
)

await t.test('names of the local network, NO_PROXY and loopback are reached directly', async (t) => {
  const { both, proxy, made } = await network(t, { 'mcp.example': echo })
  const server = createServer((socket) => {
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ndirect'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const fetch = makeFetch({
    proxy: { ...both, except: '.corp.example' },
    allowHttp: true,
    lookup: to('127.0.0.1'),
  })
  for (const host of [
    'webhook',
    'webhook.team.svc',
    'webhook.team.svc.cluster.local',
    'webhook.team.svc.corp.internal',
    'git.corp.example',
    '127.0.0.1',
  ])
    t.equal(await (await fetch(`http://${host}:${port}/`)).text(), 'direct', host)
  t.same(proxy.asked, [])
  t.equal(made.direct, 0)
  await fetch.close()
})
