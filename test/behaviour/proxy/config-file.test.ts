/**
 * `gatehouse proxy --config`: the file that hooks write, for forwarding targets, stdio targets and all other settings.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import {
  loadProxyFile,
  needsVirtualServer,
  resolveProxyFile,
  virtualServerOf,
} from '../../../runtime/config/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { program, runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { json, rpc, startUpstream } from '../../helpers/proxy/rig.ts'
import { startRedis } from '../../helpers/redis.ts'

const dir = mkdtempSync(join(tmpdir(), 'proxy-file-'))
let files = 0
function write(content: unknown): string {
  const path = join(dir, `proxy-${files++}.yaml`)
  writeFileSync(path, typeof content === 'string' ? content : stringify(content))
  return path
}

const target = await startUpstream((seen, res) => {
  if (seen.url === '/gone' || seen.headers['mcp-session-id'] === 'lost') res.writeHead(404).end()
  else if (seen.body.includes('"initialize"')) {
    res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'shared' })
    res.end('{"jsonrpc":"2.0","id":0,"result":{}}')
  } else if (seen.headers.accept === 'text/event-stream') {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.end('event: endpoint\ndata: /messages?session_id=1\n\n')
  } else res.end(JSON.stringify({ url: seen.url, headers: seen.headers }))
})
t.teardown(() => target.close())

async function start(
  t: { teardown(fn: () => Promise<void>): void },
  content: Record<string, unknown>,
  env: Record<string, string> = {},
) {
  const file = loadProxyFile(write({ name: 'demo', targetUri: target.url, ...content }))
  const config = resolveProxyFile('demo', file, { host: '127.0.0.1', port: '0' }, env)
  const proxy = await runProxy(config, { log: silentLog, notify() {}, secret: (name) => env[name] })
  t.teardown(() => proxy.close({ graceMs: 0 }))
  await proxy.ready
  return proxy
}

await t.test('file: the path of the target replaces the client’s path', async (t) => {
  const proxy = await start(t, { targetUri: `${target.url}/base/mcp?key=1` })
  const seen: unknown = await (await fetch(`${proxy.url}/mcp?a=b`)).json()
  t.match(seen, { url: '/base/mcp?key=1&a=b' })
  t.match(await (await fetch(`${proxy.url}/mcp/?a=b`)).json(), { url: '/base/mcp?key=1&a=b' })
})

await t.test(
  'file: the deprecated HTTP+SSE transport has two paths and a prefix for its endpoint event',
  async (t) => {
    const proxy = await start(t, {
      targetUri: `${target.url}/old/sse`,
      transport: 'sse',
      proxyMode: 'sse',
      endpointPrefix: '/team/a',
    })
    const stream = await fetch(`${proxy.url}/sse`, { headers: { accept: 'text/event-stream' } })
    t.match(await stream.text(), 'data: /team/a/messages?session_id=1')
    t.equal(target.seen.at(-1)?.url, '/old/sse')
    await (await fetch(`${proxy.url}/sse/`, { headers: { accept: 'text/event-stream' } })).text()
    t.equal(target.seen.at(-1)?.url, '/old/sse', 'with a slash at the end, too')
    t.match(
      await (await fetch(`${proxy.url}/messages?session_id=1`, { method: 'POST', body: '{}' })).json(),
      {
        url: '/messages?session_id=1',
      },
    )
  },
)

await t.test(
  'file: a trusted X-Forwarded-Prefix sets the prefix, and an untrusted one is ignored',
  async (t) => {
    for (const trustProxyHeaders of [true, false]) {
      const proxy = await start(t, { transport: 'sse', proxyMode: 'sse', trustProxyHeaders })
      const stream = await fetch(`${proxy.url}/sse`, {
        headers: { accept: 'text/event-stream', 'x-forwarded-prefix': '/team/b' },
      })
      t.match(await stream.text(), trustProxyHeaders ? 'data: /team/b/messages' : 'data: /messages')
    }
  },
)

await t.test('file: headers, strategies and secrets come from the named variables', async (t) => {
  const proxy = await start(
    t,
    {
      headerForward: {
        addPlaintextHeaders: { 'X-Plain': 'a' },
        addHeadersFromSecret: { 'X-Secret': 'HEADER_FORWARD_X_DEMO' },
      },
      outgoingAuth: {
        type: 'header_injection',
        headerInjection: { headerName: 'X-Api-Key', headerValueEnv: 'API_KEY' },
      },
    },
    { GATEHOUSE_SECRET_HEADER_FORWARD_X_DEMO: 's', API_KEY: 'k' },
  )
  t.match(await (await fetch(`${proxy.url}/mcp`)).json(), {
    headers: { 'x-plain': 'a', 'x-secret': 's', 'x-api-key': 'k' },
  })
})

await t.test('file: incoming tokens are checked as configured, including the single subject', async (t) => {
  const idp = await startLoopback(({ form }) => ({
    body: { active: true, sub: form.get('token'), aud: 'me', exp: 4_102_444_800 },
  }))
  t.teardown(() => idp.close())
  const proxy = await start(
    t,
    {
      oidc: {
        introspectionUrl: `${idp.url}/i`,
        audience: 'me',
        clientId: 'c',
        clientSecretEnv: 'SECRET',
        subject: 'alice',
        resource: 'http://demo.example/mcp',
      },
    },
    { SECRET: 'shh' },
  )
  const status = async (token: string): Promise<number> =>
    (await fetch(`${proxy.url}/mcp`, { headers: { authorization: `Bearer ${token}` } })).status
  t.equal(await status('alice'), 200)
  t.equal(await status('bob'), 401)
  t.equal(idp.seen[0]?.headers.authorization, `Basic ${Buffer.from('c:shh').toString('base64')}`)
  t.match(await (await fetch(`${proxy.url}/.well-known/oauth-protected-resource/mcp`)).json(), {
    resource: 'http://demo.example/mcp',
  })
})

await t.test('file: addresses of the target are checked when they are dialed', async (t) => {
  for (const targetAddresses of ['private', 'public']) {
    const proxy = await start(t, { targetAddresses })
    t.equal((await fetch(`${proxy.url}/mcp`)).status, 502, `${targetAddresses} excludes loopback`)
  }
})

await t.test('file: replicas share sessions in Redis, bound to their caller', async (t) => {
  const redis = await startRedis()
  const idp = await startLoopback(({ form }) => ({
    body: { active: true, sub: form.get('token'), aud: 'me', exp: 4_102_444_800 },
  }))
  t.teardown(() => Promise.all([redis.stop(), idp.close()]))
  const content = {
    oidc: { introspectionUrl: `${idp.url}/i`, audience: 'me' },
    sessionStorage: { provider: 'redis', address: `127.0.0.1:${redis.port}`, keyPrefix: 'demo:' },
  }
  const env = { VMCP_SESSION_HMAC_SECRET: 'x'.repeat(32) }
  const [one, two] = [await start(t, content, env), await start(t, content, env)]
  const call = (proxy: { url: string }, who: string, body: string, id?: string): Promise<Response> =>
    fetch(`${proxy.url}/mcp`, {
      method: 'POST',
      headers: {
        ...json,
        authorization: `Bearer ${who}`,
        ...(id === undefined ? {} : { 'mcp-session-id': id }),
      },
      body,
    })
  await call(one, 'alice', rpc(0, 'initialize'))
  let status = 404
  // The record is written concurrently with the response, so a replica may be asked too early.
  for (let i = 0; i < 50 && status === 404; i++) status = (await call(two, 'alice', rpc(1), 'shared')).status
  t.equal(status, 200)
  t.equal((await call(two, 'mallory', rpc(1), 'shared')).status, 404)
})

await t.test(
  'file: all errors are reported at once, and settings that cannot be served are rejected',
  async (t) => {
    const bad = await runGatehouse([
      'proxy',
      '--config',
      write({ name: 'demo', targetUri: 'ftp://x', port: 70000, nonsense: 1 }),
      'demo',
    ])
    t.equal(bad.code, 2)
    t.match(bad.stderr, /targetUri[\s\S]*port[\s\S]*nonsense|nonsense[\s\S]*port/)
    t.equal((await runGatehouse(['proxy', '--config', join(dir, 'absent.yaml'), 'demo'])).code, 2)
    t.equal((await runGatehouse(['proxy', '--config', write('a: [1'), 'demo'])).code, 2)
    const stdioWithPrefix = await runGatehouse([
      'proxy',
      '--config',
      write({ name: 'demo', stdio: { command: 'x' }, endpointPrefix: '/team' }),
      'demo',
    ])
    t.equal(stdioWithPrefix.code, 2)
    t.match(stdioWithPrefix.stderr, /endpointPrefix: not supported for a stdio target/)
  },
)

await t.test(
  'file: policies, filters, limits, audit and telemetry make it a virtual server of one backend',
  async (t) => {
    const file = loadProxyFile(
      write({
        name: 'demo',
        targetUri: target.url,
        oidc: { issuer: 'https://id.example', audience: 'me', clientId: 'c', clientSecretFile: write('shh') },
        authz: { type: 'cedar', policies: ['permit(principal, action, resource);'] },
        audit: { enabled: true, component: 'demo' },
        tools: { filter: ['a'], overrides: { b: { name: 'a' } } },
        headerForward: { addPlaintextHeaders: { 'X-Plain': 'a' } },
      }),
    )
    t.same(needsVirtualServer(file), ['authz', 'audit', 'tools'])
    const anonymousClient = write({
      name: 'demo',
      targetUri: target.url,
      oidc: { issuer: 'https://id.example', audience: 'me' },
      audit: { enabled: true },
    })
    t.match(virtualServerOf(loadProxyFile(anonymousClient), {}).config, {
      incomingAuth: { oidc: { audience: 'me', clientId: 'me' } },
    })
    const off = loadProxyFile(write({ name: 'demo', targetUri: target.url, audit: { enabled: false } }))
    t.same(needsVirtualServer(off), [], 'without auditing, no body is read')
    const { config, env } = virtualServerOf(file, { KEEP: '1' })
    t.match(config, {
      name: 'demo',
      incomingAuth: { type: 'oidc', oidc: { issuer: 'https://id.example' }, authz: { type: 'cedar' } },
      aggregation: { conflictResolution: 'priority', tools: [{ workload: 'demo', filter: ['a'] }] },
      backends: [{ name: 'demo', url: `${target.url}/mcp`, transport: 'streamable-http' }],
      audit: { enabled: true },
    })
    t.match(env, {
      KEEP: '1',
      GATEHOUSE_PROXY_OIDC_CLIENT_SECRET: 'shh',
      GATEHOUSE_HEADER_FORWARD_DEMO: '{"addPlaintextHeaders":{"X-Plain":"a"}}',
    })
  },
)

await t.test('file: a stdio target is served over HTTP until a signal', async (t) => {
  const path = write({
    name: 'demo',
    stdio: {
      command: process.execPath,
      args: ['node_modules/@modelcontextprotocol/server-everything/dist/index.js'],
    },
  })
  const run = startGatehouse(['proxy', '--config', path, '--host', '127.0.0.1', '--port', '0', 'demo'])
  const [, port] = await run.waitFor(/Stdio server demo started on port (\d+)/)
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: json,
    body: rpc(1, 'initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    }),
  })
  t.equal(response.status, 200)
  t.match(await response.text(), /serverInfo/)
  t.equal(await run.interrupt(), 0)
})

await t.test('file: the command forwards with the file, and flags override it', async (t) => {
  const path = write({ name: 'demo', targetUri: target.url, host: '0.0.0.0', port: 1 })
  const child = spawn(
    process.execPath,
    [program, 'proxy', `--config=${path}`, '--host=127.0.0.1', '--port=0', 'demo'],
    { stdio: 'pipe' },
  )
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data')
  const port = /on port (\d+)/.exec(String(line))?.[1]
  t.equal((await fetch(`http://127.0.0.1:${port}/x`)).status, 200)
  child.kill('SIGTERM')
  await once(child, 'exit')
})
