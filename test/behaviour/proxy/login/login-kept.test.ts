/** Logins that are stored for the next start, on disk, encrypted. */
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { offeredLogin, resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { Secret } from '../../../../runtime/observe/index.ts'
import { runProxy } from '../../../../runtime/proxy/index.ts'
import { startLogin, startWorld } from '../../../helpers/proxy/login-rig.ts'
import { walk } from '../../../helpers/authserver/oidc-provider.ts'
import { json, rpc, startUpstream } from '../../../helpers/proxy/rig.ts'

await t.test('login: it is stored for the next start, encrypted and readable by the user only', async (t) => {
  const world = await startWorld()
  const dir = mkdtempSync(join(tmpdir(), 'kept-'))
  const first = await startLogin(world, { remoteAuth: true }, { GATEHOUSE_STATE_DIR: dir })
  await first.browse()
  await first.proxy.ready
  await first.proxy.close({ graceMs: 0 })
  for (const name of readdirSync(dir)) {
    t.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name)
    t.notMatch(readFileSync(join(dir, name), 'latin1'), /eyJ|refresh|clientId/, `${name} is not readable`)
  }
  const again = await startLogin(world, { remoteAuth: true }, { GATEHOUSE_STATE_DIR: dir })
  await again.proxy.ready
  t.same(again.lines, [], 'the user was not prompted')
  t.equal((await again.call()).status, 200)
  await again.proxy.close({ graceMs: 0 })

  const wrong = await startLogin(
    world,
    { remoteAuth: true },
    { GATEHOUSE_STATE_DIR: dir, GATEHOUSE_SECRETS_PASSWORD: 'other' },
  )
  await wrong.loginUrl()
  t.pass('a login that cannot be read counts as absent')
  await wrong.proxy.close({ graceMs: 0 })

  const registrations = world.idp.requests.filter((path) => path === '/reg').length
  const ephemeral = await startLogin(
    world,
    { remoteAuth: true, remoteAuthEphemeral: true },
    { GATEHOUSE_STATE_DIR: dir },
  )
  await ephemeral.loginUrl()
  t.equal(world.idp.requests.filter((path) => path === '/reg').length, registrations + 1)
  await ephemeral.proxy.close({ graceMs: 0 })
  await world.close()
})

await t.test('login: a public target that names a private authorization server is rejected', async (t) => {
  // Loopback targets are allowed here; test/security covers the rule itself.
  const world = await startWorld()
  t.teardown(() => world.close())
  const liar = await startUpstream((seen, res) => {
    if (seen.url?.startsWith('/.well-known/oauth-protected-resource')) {
      res.setHeader('Content-Type', 'application/json')
      res.end(
        JSON.stringify({
          resource: 'https://other.example/mcp',
          authorization_servers: [world.idp.issuer],
        }),
      )
    } else res.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
  })
  const run = await startLogin({ ...world, target: liar }, { remoteAuth: true })
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await liar.close()
  })
  await t.rejects(run.proxy.ready, { message: /another resource/ })
})

await t.test(
  'login: an optional login is offered, and does not delay clients that bring a token',
  async (t) => {
    const world = await startWorld()
    const plain = resolveProxyConfig('demo', { targetUri: world.target.url }, {})
    const env = { GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'login-')) }
    const offered = offeredLogin(plain, env)
    if (!offered) throw new Error('nothing was offered')
    const url = Promise.withResolvers<string>()
    const proxy = await runProxy(
      { ...plain, remote: { ...offered, skipBrowser: true, callbackPort: 0 } },
      {
        log: silentLog,
        notify(line) {
          const found = /https?:\/\/\S+/.exec(line)?.[0]
          if (found !== undefined) url.resolve(found)
        },
      },
    )
    t.teardown(async () => {
      await proxy.close({ graceMs: 0 })
      await world.close()
    })
    await proxy.ready
    const call = (headers: Record<string, string> = {}): Promise<Response> =>
      fetch(`${proxy.url}/mcp`, { method: 'POST', headers: { ...json, ...headers }, body: rpc(1) })
    const page = await url.promise
    t.equal((await call()).status, 503, 'without a token the request waits for the login')
    const own = await call({ authorization: 'Bearer own' })
    t.equal(own.status, 401)
    t.match(
      own.headers.get('www-authenticate'),
      /resource_metadata/,
      'the target’s response reaches the client',
    )
    await fetch(await walk(page, 'http://localhost:'))
    let status = 503
    while (status === 503) status = (await call()).status
    t.equal(status, 200)

    t.equal(offeredLogin({ ...plain, inject: [{ name: 'authorization' }] }, env), undefined)
    t.equal(
      offeredLogin({ ...plain, remote: { kind: 'bearer', token: () => new Secret('x') } }, env),
      undefined,
    )
  },
)
