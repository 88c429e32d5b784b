/**
 * Tokens of the proxy's login that are bound to a key, with the embedded authorization server and a server that checks
 * proofs.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t from 'tap'
import type { Exchange } from '../../../../runtime/net/index.ts'
import { persistInDirectory } from '../../../../runtime/outgoing/login/persisted.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { keepingLog } from '../../../helpers/authserver/authserver.ts'
import { startGatehouse } from '../../../helpers/gatehouse.ts'
import { makeDpopClient } from '../../../helpers/oauth/dpop-client.ts'
import {
  boundSecret,
  type BoundWorld,
  callWhoami,
  lastCall,
  off,
  optional,
  required,
  startBoundProxy,
  startBoundWorld,
} from '../../../helpers/proxy/bound-rig.ts'
import {
  machineSecret,
  startMachine,
  startMachineWorld,
  fileWith,
} from '../../../helpers/proxy/machine-rig.ts'

t.setTimeout(240_000)

const machine = { remoteAuthGrant: 'client_credentials', remoteAuthClientId: 'job' }
const thumbprint = (claims: object): unknown => ('cnf' in claims ? claims.cnf : undefined)

/** Rejects the next request to the MCP endpoint. */
function rejectNext(world: BoundWorld, challenge: string): void {
  world.intercept = ({ res }) => {
    world.intercept = undefined
    res.writeHead(401, { 'www-authenticate': challenge }).end()
    return true
  }
}

await t.test('user: a bound token, a new proof for each request, and nonces of both servers', async (t) => {
  const world = await startBoundWorld(t)
  const proxy = await startBoundProxy(t, world, {})
  await proxy.ready
  t.match(new URL(proxy.logins[0] ?? '').searchParams.get('dpop_jkt'), /^[\w-]{43}$/, 'the code is bound')
  const before = world.calls.length
  t.match(await proxy.call(), { status: 200, text: /"text":"/ })
  t.equal(world.calls.length - before, 2, 'one retry for the first nonce')
  t.match(await proxy.call(), { status: 200 })
  t.equal(world.calls.length - before, 3, 'the nonce is used again')
  const proofs = world.calls.slice(before).map(({ headers }) => decodeJwt(String(headers['dpop'])))
  t.equal(new Set(proofs.map(({ jti }) => jti)).size, 3)
  const { scheme, claims, dpop } = lastCall(world)
  t.equal(scheme, 'DPoP')
  t.match(thumbprint(claims), { jkt: new URL(proxy.logins[0] ?? '').searchParams.get('dpop_jkt') })
  t.match(decodeProtectedHeader(dpop), { alg: 'ES256', typ: 'dpop+jwt' })
  t.equal(proxy.logins.length, 1)
})

await t.test('user: a restart keeps the key, and a renewal uses it again', async (t) => {
  const world = await startBoundWorld(t)
  const stateDir = t.testdir({})
  const first = await startBoundProxy(t, world, {}, { stateDir })
  await first.ready
  await first.call()
  const before = lastCall(world)
  const second = await startBoundProxy(t, world, {}, { stateDir })
  await second.ready
  t.match(await second.call(), { status: 200 })
  t.equal(lastCall(world).token, before.token)
  rejectNext(world, 'DPoP error="invalid_token"')
  t.match(await second.call(), { status: 200 })
  const renewed = lastCall(world)
  t.not(renewed.token, before.token)
  t.same(thumbprint(renewed.claims), thumbprint(before.claims))
  t.equal(first.logins.length + second.logins.length, 1)

  await t.test('the key is sealed, and the token is useless without it', async (t) => {
    const files = readdirSync(stateDir).map((name) => readFileSync(join(stateDir, name), 'latin1'))
    t.notOk(files.some((text) => text.includes('P-256') || text.includes(renewed.token)))
    const thief = await makeDpopClient()
    const nonce = String(decodeJwt(renewed.dpop)['nonce'])
    const authorization = `DPoP ${renewed.token}`
    const stolen: readonly Record<string, string>[] = [
      { authorization: `Bearer ${renewed.token}` },
      { authorization, dpop: renewed.dpop },
      { authorization, dpop: await thief.proof('POST', world.resource, renewed.token, { nonce }) },
    ]
    for (const headers of stolen) t.equal((await callWhoami(world.resource, headers)).status, 401)
  })

  await t.test('a login whose stored key is damaged is not used', async (t) => {
    const persisted = persistInDirectory(stateDir, undefined, silentLog)
    const name = JSON.stringify(['login', world.origin, null, null, null, null, null])
    const kept = persisted.read(name) as { proofKey: object }
    t.match(kept.proofKey, { crv: 'P-256' })
    persisted.write(name, { ...kept, proofKey: { ...kept.proofKey, d: undefined } })
    const third = await startBoundProxy(t, world, {}, { stateDir })
    await third.ready
    t.equal(third.logins.length, 1)
  })
})

await t.test('machine: bound to a key of this process, also with configured endpoints', async (t) => {
  const world = await startBoundWorld(t)
  for (const more of [
    {},
    { remoteAuthTokenUrl: `${world.origin}/oauth/token`, remoteAuthResource: world.resource },
  ]) {
    const proxy = await startBoundProxy(t, world, { ...machine, ...more })
    await proxy.ready
    t.match(await proxy.call(), { status: 200, text: /client:job/ })
    const first = lastCall(world)
    rejectNext(world, 'DPoP error="invalid_token"')
    t.match(await proxy.call(), { status: 200 })
    t.not(lastCall(world).token, first.token)
    t.same(thumbprint(lastCall(world).claims), thumbprint(first.claims))
  }
})

await t.test('a server that accepts both: bound by default, a bearer token with off', async (t) => {
  const world = await startBoundWorld(t, { server: optional })
  for (const [mode, scheme] of [
    ['auto', 'DPoP'],
    ['off', 'Bearer'],
    ['required', 'DPoP'],
  ] as const) {
    for (const input of [machine, {}]) {
      const proxy = await startBoundProxy(t, world, { ...input, remoteAuthDpop: mode })
      await proxy.ready
      t.match(await proxy.call(), { status: 200 })
      t.equal(lastCall(world).scheme, scheme, mode)
      t.equal(lastCall(world).dpop !== '', mode !== 'off')
    }
  }
})

await t.test(
  'a server without DPoP gets bearer tokens, even if its authorization server can bind them',
  async (t) => {
    const world = await startBoundWorld(t, { server: optional, resource: off })
    for (const input of [machine, {}]) {
      const proxy = await startBoundProxy(t, world, input)
      await proxy.ready
      t.match(await proxy.call(), { status: 200 })
      t.match(lastCall(world), { scheme: 'Bearer', dpop: '' })
    }
  },
)

await t.test(
  'a server that requires bound tokens only on the first request: a renewal gets a bound token',
  async (t) => {
    const world = await startBoundWorld(t, { server: optional, resource: required })
    const configured = { remoteAuthIssuer: world.origin, remoteAuthResource: world.resource }
    for (const input of [machine, { remoteAuthScopes: ['openid', 'offline_access'] }]) {
      const proxy = await startBoundProxy(t, world, { ...input, ...configured })
      await proxy.ready
      t.match(await proxy.call(), { status: 200 })
      t.equal(lastCall(world).scheme, 'DPoP')
      t.ok(proxy.logins.length <= 1, 'the user signs in once')
    }
  },
)

await t.test('required: an unbound token is never sent', async (t) => {
  const world = await startMachineWorld({ features: { dPoP: { enabled: false } } })
  const run = await startMachine(world, {
    remoteAuthClientId: 'job',
    remoteAuthClientSecretFile: fileWith('dpop-secret', machineSecret),
    remoteAuthDpop: 'required',
  })
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await world.close()
  })
  await t.rejects(run.proxy.ready, { code: 'BACKEND_AUTH_FAILED', message: /not bound to the key/ })
  t.equal((await run.call()).status, 502)
  t.notOk(world.target.seen.some(({ headers }) => headers.authorization !== undefined))
})

await t.test('off: a server that demands bound tokens is reported', async (t) => {
  const world = await startBoundWorld(t)
  const proxy = await startBoundProxy(t, world, { ...machine, remoteAuthDpop: 'off' })
  await t.rejects(proxy.ready, { message: /invalid_dpop_proof/ })
})

await t.test(
  'a server that never accepts a nonce: the number of requests is bounded, and no login follows',
  async (t) => {
    const world = await startBoundWorld(t)
    const demand = (challenge: string) => (exchange: Exchange) => {
      exchange.res
        .writeHead(401, { 'www-authenticate': challenge, 'dpop-nonce': `n${world.calls.length}` })
        .end()
      return true
    }
    for (const input of [machine, {}]) {
      const proxy = await startBoundProxy(t, world, input)
      await proxy.ready
      const [before, tokens] = [world.calls.length, world.tokenRequests()]
      world.intercept = demand('DPoP error="use_dpop_nonce"')
      const { status, text } = await proxy.call()
      t.equal(status, 502)
      t.match(text, /rejects the DPoP proof: use_dpop_nonce/)
      t.equal(world.calls.length - before, 2)
      world.intercept = demand('DPoP error="invalid_dpop_proof"')
      t.match(await proxy.call(), { status: 502, text: /check the clock/ })
      t.equal(world.tokenRequests(), tokens, 'another token would not help')
      t.equal(proxy.logins.length, input === machine ? 0 : 1)
      world.intercept = undefined
      t.match(await proxy.call(), { status: 200 })
    }
  },
)

await t.test('the client’s own proof does not reach the server', async (t) => {
  const world = await startBoundWorld(t, { server: optional })
  for (const mode of ['auto', 'off']) {
    const proxy = await startBoundProxy(t, world, { ...machine, remoteAuthDpop: mode })
    await proxy.ready
    t.match(await proxy.call({ authorization: 'DPoP own', dpop: 'own-proof' }), { status: 200 })
    t.not(lastCall(world).dpop, 'own-proof', mode)
  }
})

await t.test('a lost session is reopened with new proofs', async (t) => {
  const sessions = new Set<string>()
  const world = await startBoundWorld(t, {
    async serve({ req, res }) {
      const id = req.headers['mcp-session-id']
      let body = ''
      for await (const chunk of req) body += String(chunk)
      const send = (status: number, more: object = {}, text = '') =>
        void res.writeHead(status, { 'content-type': 'application/json', ...more }).end(text)
      if (body.includes('"initialize"')) {
        const opened = `s${sessions.size}`
        sessions.add(opened)
        send(
          200,
          { 'mcp-session-id': opened },
          '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}',
        )
      } else if (!sessions.has(String(id))) send(404)
      else if (body.includes('notifications/')) send(202)
      else send(200, {}, '{"jsonrpc":"2.0","id":1,"result":{"ok":true}}')
    },
  })
  const proxy = await startBoundProxy(t, world, machine)
  await proxy.ready
  const post = (body: object, headers: Record<string, string> = {}) =>
    fetch(`${proxy.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    })
  const opened = await post({ id: 1, method: 'initialize', params: {} })
  const id = opened.headers.get('mcp-session-id') ?? ''
  t.equal(id, 's0')
  sessions.delete(id)
  sessions.add('other')
  const before = world.calls.length
  const response = await post({ id: 2, method: 'tools/list' }, { 'mcp-session-id': id })
  t.equal(response.status, 200)
  const proofs = world.calls.slice(before).map(({ headers }) => decodeJwt(String(headers['dpop'])).jti)
  t.equal(proofs.length, 4, 'the call, initialize, initialized, and the call again')
  t.equal(new Set(proofs).size, 4)
})

await t.test('worker processes share the key, and no log contains it', async (t) => {
  const world = await startBoundWorld(t)
  const run = startGatehouse(
    [
      'proxy',
      '--target-uri',
      world.origin,
      '--remote-auth',
      '--remote-auth-grant',
      'client_credentials',
    ].concat(['--remote-auth-client-id', 'job', '--workers', '2', '--debug', 'demo']),
    { ...process.env, GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: boundSecret },
  )
  const [, port] = await run.waitFor(/^Transparent proxy started .* on port (\d+) /m)
  const keys = new Set<string>()
  for (let i = 0; i < 6; i++) {
    const { status } = await callWhoami(`http://127.0.0.1:${port}/mcp`, { connection: 'close' })
    t.equal(status, 200)
    keys.add(JSON.stringify(decodeProtectedHeader(lastCall(world).dpop).jwk))
  }
  t.equal(keys.size, 1)
  t.equal(await run.interrupt(), 0)
  t.notMatch(run.output(), /eyJ|P-256/)
})

await t.test('logs contain no token and no proof', async (t) => {
  const world = await startBoundWorld(t)
  const { log, text } = keepingLog()
  const proxy = await startBoundProxy(t, world, {}, { log })
  await proxy.ready
  await proxy.call()
  rejectNext(world, 'DPoP error="invalid_token"')
  await proxy.call()
  t.match(text(), /signed in to the target/)
  t.notMatch(text(), /eyJ|P-256/)
})
