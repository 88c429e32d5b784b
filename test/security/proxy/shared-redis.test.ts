/** Proxies that share one Redis: a session only goes to the target that opened it. */
import { readFileSync } from 'node:fs'
import { makeCaller, silentLog } from '../../../runtime/net/index.ts'
import t, { type Test } from 'tap'
import { loadProxyFile, resolveProxyFile } from '../../../runtime/config/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { fakeAuthenticator, json, rpc, startUpstream } from '../../helpers/proxy/rig.ts'
import { missingRedis, startRedis, until } from '../../helpers/redis.ts'

t.setTimeout(120_000)

const recorded = JSON.parse(
  readFileSync(new URL('../../fixtures/previous-build.json', import.meta.url), 'utf8'),
)

/** Opens one session and recognizes it forever. */
async function startTarget(t: Test) {
  const upstream = await startUpstream((seen, res) => {
    const opens = seen.body.includes('"initialize"')
    res.writeHead(200, {
      'Content-Type': 'application/json',
      ...(opens && { 'Mcp-Session-Id': 'the-session' }),
    })
    res.end('{"jsonrpc":"2.0","id":0,"result":{}}')
  })
  t.teardown(() => upstream.close())
  return upstream
}

const incoming = () =>
  fakeAuthenticator((exchange) => {
    const subject = exchange.req.headers.authorization?.slice(7) ?? ''
    exchange.caller = makeCaller({ issuer: 'https://issuer.example', subject, claims: {} })
  })

t.test('proxies on a shared Redis', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())

  async function start(
    t: Test,
    name: string,
    targetUri: string,
    storage: Record<string, unknown> = {},
    env: Record<string, string> = {},
  ) {
    const content = {
      name,
      targetUri,
      sessionStorage: { provider: 'redis', address: redis.addr, ...storage },
    }
    const file = loadProxyFile(fileOf(t, content))
    const config = resolveProxyFile(name, file, { host: '127.0.0.1', port: '0' }, env)
    const proxy = await runProxy(config, {
      log: silentLog,
      notify() {},
      secret: (variable) => env[variable],
      incoming,
    })
    t.teardown(() => proxy.close({ graceMs: 0 }))
    await proxy.ready
    return proxy
  }

  function fileOf(t: Test, content: unknown): string {
    const dir = t.testdir({ 'proxy.yaml': JSON.stringify(content) })
    return `${dir}/proxy.yaml`
  }

  async function status(url: string, body: string, id?: string): Promise<number> {
    const headers = {
      ...json,
      authorization: 'Bearer ada',
      ...(id !== undefined && { 'mcp-session-id': id }),
    }
    return (await fetch(`${url}/mcp`, { method: 'POST', headers, body })).status
  }

  /** Opens the session and waits until it is stored. */
  async function open(url: string): Promise<void> {
    redis.cli('flushall')
    await status(url, rpc(0, 'initialize'))
    await until(() => redis.cli('keys', '*') !== '')
  }

  await t.test('two proxies without a prefix share nothing', async (t) => {
    const [first, second] = [await startTarget(t), await startTarget(t)]
    const one = await start(t, 'one', first.url)
    const replica = await start(t, 'one', first.url)
    const two = await start(t, 'two', second.url)
    await open(one.url)
    t.match(redis.cli('keys', '*'), /^gatehouse:proxy:one:/)
    t.equal(await status(replica.url, rpc(1), 'the-session'), 200)
    const before = second.seen.length
    t.equal(await status(two.url, rpc(1), 'the-session'), 404)
    t.equal(second.seen.length, before, 'the other target never sees the id')
  })

  await t.test('a proxy whose target moves to another address loses its sessions', async (t) => {
    const [first, second] = [await startTarget(t), await startTarget(t)]
    const storage = { keyPrefix: 'team:' }
    const before = await start(t, 'one', first.url, storage)
    await open(before.url)
    t.match(redis.cli('keys', '*'), /^team:proxy:/)
    const moved = await start(t, 'one', second.url, storage)
    const path = await start(t, 'one', `${first.url}/other/mcp`, storage)
    for (const proxy of [moved, path]) t.equal(await status(proxy.url, rpc(1), 'the-session'), 404)
    t.notMatch(second.seen, [{ method: 'POST' }])
  })

  for (const kind of ['plain', 'sealed'] as const) {
    await t.test(
      `a ${kind} session of the previous build: not found, and the client opens another`,
      async (t) => {
        const { redis: values, session } = recorded[`proxy-${kind}`]
        const target = await startTarget(t)
        redis.cli('flushall')
        for (const [key, value] of Object.entries<string>(values)) redis.cli('set', key, value)
        const env = kind === 'sealed' ? { VMCP_SESSION_HMAC_SECRET: recorded.secret } : {}
        for (const storage of [{}, { keyPrefix: 'gatehouse' }]) {
          const proxy = await start(t, 'one', target.url, storage, env)
          t.equal(await status(proxy.url, rpc(1), session), 404)
          t.equal(await status(proxy.url, rpc(0, 'initialize')), 200)
          t.equal(await status(proxy.url, rpc(1), 'the-session'), 200)
        }
      },
    )
  }
})
