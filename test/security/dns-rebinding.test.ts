/** Web pages and rebound names cannot reach a proxy that does not allow them. */
import t from 'tap'
import type { LogFields } from '../../runtime/net/index.ts'
import { silentLog } from '../../runtime/net/index.ts'
import { fakeAuthenticator, json, rawRequest, rpc, startRig, startUpstream } from '../helpers/proxy/rig.ts'
import { proves } from '../helpers/proves.ts'

proves(
  '1.flag.allowed-origins',
  '1.flag.allowed-origins.loopback',
  '1.flag.allowed-origins.warning',
  '1.error.public-bind-warning',
  '1.flag.host',
)

const upstream = await startUpstream((_seen, res) => {
  res.writeHead(200, { 'Access-Control-Allow-Origin': '*', Vary: 'Accept' })
  res.end('forwarded')
})
t.teardown(() => upstream.close())

const denied = '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Origin not allowed"}}'

async function withOrigin(url: string, origin: string): Promise<Response> {
  return fetch(`${url}/mcp`, { method: 'POST', headers: { ...json, origin }, body: rpc(1) })
}

await t.test('origin: a loopback bind allows only its own three origins', async (t) => {
  const rig = await startRig(upstream.url)
  t.teardown(() => rig.close())
  for (const origin of [
    `http://localhost:${rig.port}`,
    `http://127.0.0.1:${rig.port}`,
    `http://[::1]:${rig.port}`,
    `HTTP://LOCALHOST:${rig.port}`,
  ]) {
    t.equal((await withOrigin(rig.url, origin)).status, 200, origin)
  }
  const before = upstream.seen.length
  for (const origin of [
    'https://evil.example',
    'null',
    '*',
    `https://localhost:${rig.port}`,
    'http://localhost',
    `http://localhost:${rig.port}.evil.example`,
    `http://user@localhost:${rig.port}`,
    `http://localhost:${rig.port}/path`,
    'file://',
    '',
  ]) {
    const response = await withOrigin(rig.url, origin)
    t.equal(response.status, 403, JSON.stringify(origin))
    t.equal(await response.text(), denied)
  }
  t.match(
    await rawRequest(rig.port, [
      'GET /mcp HTTP/1.1',
      'Host: localhost',
      `Origin: http://localhost:${rig.port}`,
      `Origin: http://localhost:${rig.port}`,
    ]),
    /^HTTP\/1\.1 403 /,
    'two origins',
  )
  t.equal(upstream.seen.length, before, 'nothing was forwarded')
})

await t.test('origin: explicit values replace the defaults, and default ports are normalized', async (t) => {
  const rig = await startRig(upstream.url, {
    allowedOrigins: ['https://app.example:443', 'http://other.example/path'],
  })
  t.teardown(() => rig.close())
  t.equal((await withOrigin(rig.url, 'https://app.example')).status, 200)
  t.equal((await withOrigin(rig.url, 'https://APP.example:443')).status, 200)
  t.equal((await withOrigin(rig.url, 'http://other.example')).status, 200)
  t.equal((await withOrigin(rig.url, `http://localhost:${rig.port}`)).status, 403)
})

await t.test('origin: all malformed entries are reported at the start', async (t) => {
  const wrong = [
    'null',
    '*',
    'example.com',
    'https://a.b,https://c.d',
    'a.b,c.d',
    'https://*.b',
    'http://a:*',
    '',
  ]
  await t.rejects(startRig(upstream.url, { allowedOrigins: ['https://ok.example', ...wrong] }), {
    code: 'INVALID_CONFIG',
    message: new RegExp(wrong.map((entry) => RegExp.escape(JSON.stringify(entry))).join(', ')),
  })
  const right = [
    'http://[::1]:80',
    'https://xn--bcher-kva.example',
    'chrome-extension://abc',
    'http://a_b.internal',
  ]
  const rig = await startRig(upstream.url, { allowedOrigins: right })
  t.teardown(() => rig.close())
  for (const origin of right) t.equal((await withOrigin(rig.url, origin)).status, 200, origin)
})

await t.test('origin: preflights of allowed origins are answered before authentication', async (t) => {
  let asked = 0
  const rig = await startRig(upstream.url, {
    incoming: () =>
      fakeAuthenticator(() => {
        asked++
      }),
  })
  t.teardown(() => rig.close())
  const origin = `http://localhost:${rig.port}`
  const before = upstream.seen.length
  const preflight = (from: string, more: Record<string, string> = {}): Promise<Response> =>
    fetch(`${rig.url}/mcp`, {
      method: 'OPTIONS',
      headers: { origin: from, 'access-control-request-method': 'POST', ...more },
    })
  const yes = await preflight(origin)
  t.equal(yes.status, 204)
  t.equal(yes.headers.get('access-control-allow-origin'), origin)
  t.match(
    yes.headers.get('access-control-allow-headers'),
    /Authorization, DPoP, Content-Type, Accept, Mcp-Session-Id/,
  )
  t.equal(yes.headers.get('vary'), 'Origin, Access-Control-Request-Headers')
  t.equal(yes.headers.get('access-control-allow-credentials'), null)
  const names = 'content-type,Mcp-Param-Region, mcp-param-a_b ,x-evil,mcp-param-,mcp-paramx,*,mcp-param-a b'
  const asking = await preflight(origin, { 'access-control-request-headers': names })
  t.match(
    asking.headers.get('access-control-allow-headers'),
    /Last-Event-ID, mcp-param-region, mcp-param-a_b$/,
  )
  t.equal(asked, 0)
  t.equal(upstream.seen.length, before)
  t.equal((await preflight('https://evil.example')).status, 403)

  const call = await withOrigin(rig.url, origin)
  t.equal(call.headers.get('access-control-allow-origin'), origin, 'from the proxy, not from the target')
  t.equal(call.headers.get('vary'), 'Accept, Origin')
  t.match(call.headers.get('access-control-expose-headers'), /Mcp-Session-Id/)
})

await t.test('host: a loopback bind serves loopback names only, with or without Origin', async (t) => {
  const rig = await startRig(upstream.url, { allowedHosts: new Set(['gateway.example']) })
  t.teardown(() => rig.close())
  const status = async (host: string): Promise<string> =>
    (await rawRequest(rig.port, ['GET /mcp HTTP/1.1', `Host: ${host}`])).slice(9, 12)
  for (const host of [
    'localhost',
    `localhost:${rig.port}`,
    '127.0.0.1:1',
    '127.8.9.10',
    '[::1]',
    '[::1]:80',
    'LocalHost',
    'gateway.example:443',
  ]) {
    t.equal(await status(host), '200', host)
  }
  for (const host of [
    'evil.example',
    'evil.example:80',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    'localhost@evil.example',
    '',
  ]) {
    t.match(await status(host), /40[03]/, host)
  }
})

await t.test('host: a public bind without allowed origins checks neither, and logs it', async (t) => {
  const warnings: [string, LogFields | undefined][] = []
  const log = {
    ...silentLog,
    warn: (message: string, fields?: LogFields) => void warnings.push([message, fields]),
  }
  const rig = await startRig(upstream.url, { host: '0.0.0.0', log })
  t.teardown(() => rig.close())
  t.match(warnings, [[/--allowed-origins/, { host: '0.0.0.0', port: rig.port, hint: /--allowed-origins/ }]])
  t.equal((await withOrigin(`http://127.0.0.1:${rig.port}`, 'https://any.example')).status, 200)

  warnings.length = 0
  const told = await startRig(upstream.url, { host: '0.0.0.0', log, allowedOrigins: ['https://app.example'] })
  t.teardown(() => told.close())
  t.same(warnings, [])
  t.equal((await withOrigin(`http://127.0.0.1:${told.port}`, 'https://any.example')).status, 403)
})

await t.test('host: built-in routes need no origin', async (t) => {
  const rig = await startRig(upstream.url)
  t.teardown(() => rig.close())
  const health = await fetch(`${rig.url}/health`, { headers: { origin: 'https://evil.example' } })
  t.equal(health.status, 200)
  t.match(await health.json(), { status: 'healthy', timestamp: /^\d{4}-\d\d-\d\dT.*Z$/ })
})
