/** Several processes on one port share the login, the sessions and the metrics, and are replaced when they die. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { descendantsOf, freePort, startGatehouse } from '../../helpers/gatehouse.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { startOidcProvider, walk } from '../../helpers/authserver/oidc-provider.ts'
import { json, rpc, startUpstream } from '../../helpers/proxy/rig.ts'

const started = /^Transparent proxy started for server (\S+) on port (\d+) -> (\S+)$/m

await t.test('workers: one port, one metrics page, a clean exit', async (t) => {
  const target = await startUpstream((_seen, res) => res.end('hello'))
  t.teardown(() => target.close())
  const metricsPort = await freePort()
  const run = startGatehouse([
    'proxy',
    '--target-uri',
    target.url,
    '--workers',
    '2',
    '--metrics-port',
    String(metricsPort),
    'demo',
  ])
  const [, , port] = await run.waitFor(started)
  t.equal(descendantsOf(run.child.pid ?? 0).length, 2)
  // Each request uses a new connection, so that both processes get some.
  for (let i = 0; i < 8; i++) {
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
      method: 'POST',
      headers: { ...json, connection: 'close' },
      body: rpc(i),
    })
    t.equal(await response.text(), 'hello')
  }
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  t.match(metrics, 'gatehouse_proxy_requests_total{method="POST",status="200"} 8')
  t.match(metrics, 'gatehouse_proxy_rpc_requests_total{method="tools/call"} 8')
  t.equal(await run.interrupt(), 0)
})

await t.test('workers: a process that dies is replaced, and the other processes continue', async (t) => {
  const target = await startUpstream((_seen, res) => res.end('hello'))
  t.teardown(() => target.close())
  const run = startGatehouse(['proxy', '--target-uri', target.url, '--workers', '2', 'demo'])
  const [, , port] = await run.waitFor(started)
  const before = descendantsOf(run.child.pid ?? 0)
  process.kill(before[0] ?? 0, 'SIGKILL')
  await run.waitFor(/a worker exited unexpectedly and is being replaced/)
  t.equal((await fetch(`http://127.0.0.1:${port}/mcp`)).status, 200)
  while (descendantsOf(run.child.pid ?? 0).length < 2) await new Promise((resolve) => setImmediate(resolve))
  t.equal(await run.interrupt(), 0)
})

await t.test(
  'workers: every process accepts a session opened by another one, bound to its caller',
  async (t) => {
    const idp = await startLoopback(({ form }) => ({
      body: { active: true, sub: form.get('token'), aud: 'me', exp: 4_102_444_800 },
    }))
    const target = await startUpstream((seen, res) => {
      if (seen.body.includes('initialize')) res.setHeader('Mcp-Session-Id', 'one')
      res.setHeader('Content-Type', 'application/json')
      res.end('{"jsonrpc":"2.0","id":1,"result":{}}')
    })
    t.teardown(() => Promise.all([idp.close(), target.close()]))
    const run = startGatehouse([
      'proxy',
      '--target-uri',
      target.url,
      '--workers',
      '2',
      '--oidc-introspection-url',
      `${idp.url}/i`,
      '--oidc-audience',
      'me',
      'demo',
    ])
    const [, , port] = await run.waitFor(started)
    const call = (who: string, body: string, more: Record<string, string> = {}): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}/mcp`, {
        method: 'POST',
        headers: { ...json, connection: 'close', authorization: `Bearer ${who}`, ...more },
        body,
      })
    t.equal((await call('alice', rpc(0, 'initialize'))).status, 200)
    for (let i = 0; i < 6; i++) {
      t.equal((await call('alice', rpc(i), { 'mcp-session-id': 'one' })).status, 200)
      t.equal((await call('mallory', rpc(i), { 'mcp-session-id': 'one' })).status, 404)
    }
    t.equal(await run.interrupt(), 0)
  },
)

await t.test('workers: one login serves all processes', async (t) => {
  const target = await startUpstream((seen, res) => res.end(seen.headers.authorization))
  const idp = await startOidcProvider({ resources: { [target.url]: {} } })
  t.teardown(() => Promise.all([idp.close(), target.close()]))
  const run = startGatehouse(
    [
      'proxy',
      '--target-uri',
      target.url,
      '--workers',
      '2',
      '--remote-auth',
      '--remote-auth-issuer',
      idp.issuer,
      '--remote-auth-skip-browser',
      '--remote-auth-callback-port',
      '0',
      'demo',
    ],
    { ...process.env, GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'workers-')) },
  )
  const [, url = ''] = await run.waitFor(/Please open this URL in your browser: (\S+)\n/)
  await fetch(await walk(url, 'http://localhost:'))
  const [, , port] = await run.waitFor(started)
  const tokens = new Set<string>()
  for (let i = 0; i < 6; i++) {
    tokens.add(
      await (await fetch(`http://127.0.0.1:${port}/mcp`, { headers: { connection: 'close' } })).text(),
    )
  }
  t.equal(tokens.size, 1)
  t.match([...tokens][0], /^Bearer eyJ/)
  t.equal(idp.requests.filter((path) => path === '/token').length, 1)
  t.equal(await run.interrupt(), 0)
})

await t.test('workers: a port that is in use ends it with an error', async (t) => {
  const target = await startUpstream((_seen, res) => res.end())
  t.teardown(() => target.close())
  const run = startGatehouse([
    'proxy',
    '--target-uri',
    target.url,
    '--workers',
    '2',
    '--port',
    String(target.port),
    'demo',
  ])
  await t.rejects(run.waitFor(started), { message: /code 1[\s\S]*--port: \d+ on 127.0.0.1 is in use/ })
})
