/** Redirects of the target to another origin: MCP requests get 502 with the reason, all others are relayed. */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { resolveProxyConfig } from '../../../runtime/config/index.ts'
import { parseTarget } from '../../../runtime/config/proxy/target.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { runStdio } from '../../../runtime/proxy/stdio-client/run.ts'
import { json, rpc, startRig, startUpstream, type Upstream } from '../../helpers/proxy/rig.ts'

async function redirecting(t: Test, location: string, status = 307): Promise<Upstream> {
  const upstream = await startUpstream((_seen, res) =>
    res.writeHead(status, { Location: location }).end('moved'),
  )
  t.teardown(() => upstream.close())
  return upstream
}

async function startProxy(t: Test, upstream: Upstream, path?: string) {
  const target = { ...parseTarget(upstream.url), ...(path === undefined ? {} : { path }) }
  const rig = await startRig(upstream.url, { target })
  t.teardown(() => rig.close())
  return rig
}

const requests: readonly (readonly [string, string, RequestInit])[] = [
  ['a message', '/any/path', { method: 'POST', headers: json, body: rpc(1) }],
  ['a notification', '/any/path', { method: 'POST', headers: json, body: '{"jsonrpc":"2.0","method":"x"}' }],
  ['the event stream', '/any/path', { headers: { accept: 'text/event-stream' } }],
  ['the end of a session', '/any/path', { method: 'DELETE', headers: { 'mcp-session-id': 'a' } }],
  ['a message in an unknown form', '/mcp', { method: 'POST', body: 'hello' }],
]

for (const [what, path, init] of requests)
  await t.test(`${what} is not redirected to another origin`, async (t) => {
    for (const status of [300, 301, 302, 303, 307, 308]) {
      const upstream = await redirecting(t, 'https://elsewhere.example/login?token=secret', status)
      const rig = await startProxy(t, upstream)
      const response = await fetch(rig.url + path, { ...init, redirect: 'manual' })
      const body = await response.text()
      t.equal(response.status, 502)
      t.equal(response.headers.get('location'), null)
      t.match(body, `the target redirects to https://elsewhere.example (status ${status})`)
      t.match(body, '--target-uri')
      t.notMatch(body, 'secret')
      t.equal(upstream.seen.length, 1)
    }
  })

await t.test('every form of a location outside the proxy is rejected', async (t) => {
  for (const location of [
    '//elsewhere.example/mcp',
    '/\\elsewhere.example/mcp',
    'https:elsewhere.example',
    'http:elsewhere.example/mcp',
    'cursor://open',
    'http://user:pass@[::1]/x',
  ]) {
    const rig = await startProxy(t, await redirecting(t, location))
    const response = await fetch(`${rig.url}/mcp`, { ...requests[0]?.[2], redirect: 'manual' })
    t.equal(response.status, 502, location)
    t.notMatch(await response.text(), 'pass@')
  }
})

await t.test('an absolute address of the target that cannot be followed is rejected', async (t) => {
  const upstream: Upstream = await startUpstream((_seen, res) =>
    res.writeHead(303, { Location: `${upstream.url}/other` }).end(),
  )
  t.teardown(() => upstream.close())
  const rig = await startProxy(t, upstream)
  const response = await fetch(`${rig.url}/mcp`, { ...requests[0]?.[2], redirect: 'manual' })
  t.equal(response.status, 502)
  t.match(await response.text(), 'it cannot be followed')
})

await t.test('with a path in the target URL, every request is an MCP request', async (t) => {
  const rig = await startProxy(t, await redirecting(t, 'https://elsewhere.example/'), '/api')
  t.equal((await fetch(`${rig.url}/x`, { redirect: 'manual' })).status, 502)
})

await t.test('redirects of pages and other documents are relayed', async (t) => {
  const location = 'https://elsewhere.example/x'
  const rig = await startProxy(t, await redirecting(t, location, 302))
  for (const path of ['/authorize', '/assets/logo.png']) {
    const headers = { 'mcp-protocol-version': '2025-11-25', accept: 'application/json' }
    const response = await fetch(rig.url + path, { headers, redirect: 'manual' })
    t.equal(response.status, 302)
    t.equal(response.headers.get('location'), location)
  }
})

await t.test('proxy stdio: the client gets the reason', async (t) => {
  const upstream = await redirecting(t, 'https://elsewhere.example/mcp')
  const input = new PassThrough()
  const output = new PassThrough()
  const config = resolveProxyConfig('demo', { targetUri: upstream.url }, {})
  const done = runStdio({ config, path: '/mcp', input, output, log: silentLog, version: '0', notify() {} })
  input.end(`${rpc(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} })}\n`)
  await done
  output.end()
  t.match(await text(output), 'the target redirects to https://elsewhere.example')
})
