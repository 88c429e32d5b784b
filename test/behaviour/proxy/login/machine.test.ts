/** The proxy gets a token for itself (client_credentials): no browser, at a real provider, with a secret or a key. */
import type { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import type { ProxyInput } from '../../../../runtime/config/index.ts'
import { startGatehouse } from '../../../helpers/gatehouse.ts'
import { startOidcProvider } from '../../../helpers/authserver/oidc-provider.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import {
  fileWith,
  keyText,
  machineProvider,
  machineSecret,
  startMachine,
  startMachineWorld,
  tokenRequests,
} from '../../../helpers/proxy/machine-rig.ts'
import { startUpstream } from '../../../helpers/proxy/rig.ts'
import type { World } from '../../../helpers/proxy/login-rig.ts'

t.setTimeout(400_000)

const withSecret: ProxyInput = {
  remoteAuthClientId: 'job',
  remoteAuthClientSecretFile: fileWith('secret', `${machineSecret}\n`),
}
const withKey: ProxyInput = {
  remoteAuthClientId: 'signer',
  remoteAuthPrivateKeyFile: fileWith('key', keyText('first')),
}

async function start(
  t: Test,
  input: ProxyInput,
  env: Record<string, string> = {},
  options: Parameters<typeof startMachineWorld>[0] = {},
) {
  const world = await startMachineWorld(options)
  const run = await startMachine(world, input, env)
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await world.close()
  })
  return { world, ...run }
}

await t.test('machine: a secret gets a token for the target, without a browser', async (t) => {
  const { world, proxy, lines, claims } = await start(t, withSecret)
  await proxy.ready
  t.match(await claims(), { client_id: 'job', aud: world.resource, scope: 'read' })
  await claims()
  t.equal(tokenRequests(world), 1, 'calls share the token')
  t.same(lines, [], 'the user is not prompted')
  const used = world.idp.requests.filter((path) => path.startsWith('/auth') || path.startsWith('/reg'))
  t.same(used, [])
})

await t.test('machine: a private key gets a token: PEM, JWK and PS256', async (t) => {
  const rows: readonly (readonly [ProxyInput, string | undefined])[] = [
    [withKey, 'first'],
    [{ ...withKey, remoteAuthPrivateKeyFile: fileWith('pem', keyText('second', 'pem')) }, undefined],
    [
      {
        remoteAuthClientId: 'rsa',
        remoteAuthPrivateKeyFile: fileWith('rsa', keyText('rsa', 'pem')),
        remoteAuthSigningAlg: 'PS256',
      },
      undefined,
    ],
  ]
  for (const [input, kid] of rows) {
    const { proxy, claims } = await start(t, input)
    await proxy.ready
    const found = await claims()
    t.match(found, { client_id: input.remoteAuthClientId })
    t.equal(found['kid'], kid)
  }
})

await t.test('machine: the grant and the secret can come from variables', async (t) => {
  const { proxy, claims } = await start(
    t,
    { remoteAuthGrant: undefined as never, remoteAuthClientId: 'job' },
    {
      GATEHOUSE_REMOTE_AUTH_GRANT: 'client_credentials',
      GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: machineSecret,
    },
  )
  await proxy.ready
  t.match(await claims(), { client_id: 'job' })
})

await t.test('machine: an issuer, scopes and a resource can be configured', async (t) => {
  const world = await startMachineWorld()
  const run = await startMachine(world, {
    ...withSecret,
    remoteAuthIssuer: `${world.idp.issuer}/`,
    remoteAuthScopes: ['write'],
    remoteAuthResource: 'https://api.example',
  })
  const plain = await startMachine(world, { ...withSecret, remoteAuthIssuer: world.idp.issuer })
  t.teardown(async () => {
    await Promise.all([run.proxy.close({ graceMs: 0 }), plain.proxy.close({ graceMs: 0 })])
    await world.close()
  })
  await run.proxy.ready
  t.match(await run.claims(), { scope: 'write', aud: 'https://api.example' })
  await plain.proxy.ready
  const claims = await plain.claims()
  t.equal(claims.aud, world.target.url, 'the target URI by default')
  t.equal(claims['scope'], undefined, 'no identity scopes are requested')
})

await t.test('machine: a configured token endpoint is the audience of the assertion', async (t) => {
  const world = await startMachineWorld()
  const run = await startMachine(world, { ...withKey, remoteAuthTokenUrl: `${world.idp.issuer}/token` })
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await world.close()
  })
  await run.proxy.ready
  t.match(await run.claims(), { kid: 'first' })
  t.notOk(
    world.idp.requests.some((path) => path.startsWith('/.well-known')),
    'no metadata is read',
  )
})

/** Makes the target reject every request with `challenge` until the provider has issued another token. */
function rejectUntilNextToken(world: World, status = 401, challenge = 'Bearer error="invalid_token"'): void {
  const provider = world.idp.provider as unknown as EventEmitter
  world.response = { status, challenge }
  provider.once('grant.success', () => (world.response = undefined))
}

await t.test('machine: a token that the target rejects is replaced once, and by one request', async (t) => {
  const { world, proxy, call, claims } = await start(t, withSecret)
  await proxy.ready
  const old = (await claims()).jti
  rejectUntilNextToken(world)
  const responses = await Promise.all([call(), call(), call()])
  t.same(
    responses.map(({ status }) => status),
    [200, 200, 200],
    'clients see no rejection',
  )
  t.equal(tokenRequests(world), 2, 'concurrent calls fetch one token')
  t.not((await claims()).jti, old)
  world.response = { status: 401, challenge: 'Bearer error="invalid_token"' }
  t.equal((await call()).status, 502, 'a target that rejects the new token does not get another one')
  t.equal(tokenRequests(world), 2)
})

await t.test('machine: a replaced key or secret file applies to the next token', async (t) => {
  const path = fileWith('rotated', keyText('first'))
  const { world, proxy, claims } = await start(t, { ...withKey, remoteAuthPrivateKeyFile: path })
  await proxy.ready
  t.match(await claims(), { kid: 'first' })
  fileWith('rotated', keyText('second'))
  rejectUntilNextToken(world)
  t.match(await claims(), { kid: 'second' })

  const secret = fileWith('rotated-secret', machineSecret)
  const other = await start(t, { ...withSecret, remoteAuthClientSecretFile: secret })
  await other.proxy.ready
  fileWith('rotated-secret', 'unknown')
  other.world.response = { status: 401, challenge: 'Bearer error="invalid_token"' }
  const response = await other.call()
  t.equal(response.status, 502)
  t.match(await response.text(), /invalid_client/)
})

await t.test('machine: an unusable key file keeps the previous key', async (t) => {
  const path = fileWith('broken', keyText('first'))
  const { world, proxy, claims } = await start(t, { ...withKey, remoteAuthPrivateKeyFile: path })
  await proxy.ready
  fileWith('broken', '-----BEGIN PRIVATE KEY-----\nhalf')
  rejectUntilNextToken(world)
  t.match(await claims(), { kid: 'first' })
})

await t.test('machine: a provider that rejects the client is reported with its code', async (t) => {
  const rows: readonly ProxyInput[] = [
    { remoteAuthClientId: 'job', remoteAuthClientSecretFile: fileWith('wrong', 'wrong') },
    { ...withKey, remoteAuthPrivateKeyFile: fileWith('unknown', keyText('unknown', 'pem')) },
  ]
  for (const input of rows) {
    const { proxy, call } = await start(t, input)
    await t.rejects(proxy.ready, { code: 'BACKEND_AUTH_FAILED', message: /invalid_client/ })
    const response = await call()
    t.equal(response.status, 502)
    t.notMatch(await response.text(), /wrong|eyJ/, 'the credential is not shown')
  }
})

await t.test('machine: while the token endpoint is down, clients get 503', async (t) => {
  let isDown = false
  const { world, proxy, call } = await start(
    t,
    withSecret,
    {},
    {
      intercept(req, res) {
        if (!isDown || req.url !== '/token') return false
        res.writeHead(503).end()
        return true
      },
    },
  )
  await proxy.ready
  isDown = true
  world.response = { status: 401, challenge: 'Bearer error="invalid_token"' }
  const response = await call()
  t.equal(response.status, 503)
  t.match(response.headers.get('retry-after'), /^\d+$/)
  world.response = undefined
  t.equal((await call()).status, 200, 'the token that the target accepts again is still used')
})

await t.test('machine: more scopes are requested when the target requires them', async (t) => {
  const { world, proxy, call, claims } = await start(t, withSecret)
  await proxy.ready
  const challenge = 'Bearer error="insufficient_scope", scope="read write"'
  rejectUntilNextToken(world, 403, challenge)
  t.match(await claims(), { scope: 'read write' })
  world.response = { status: 403, challenge }
  t.equal((await call()).status, 403, 'scopes that have been requested are not requested again')
})

/** A target that names `issuer` and `scopes`, and accepts every token. */
async function startTarget(t: Test, issuer: () => string, scopes: readonly string[]) {
  const target = await startUpstream((seen, res) => {
    if (seen.url.startsWith('/.well-known/oauth-protected-resource')) {
      res.setHeader('Content-Type', 'application/json')
      const document = { authorization_servers: [issuer()], scopes_supported: scopes }
      res.end(JSON.stringify({ resource: `http://${seen.headers.host}/mcp`, ...document }))
    } else if (seen.headers.authorization === undefined) {
      res.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
    } else res.end('ok')
  })
  t.teardown(() => target.close())
  return target
}

await t.test('machine: user scopes are not requested even if the target lists them', async (t) => {
  const listed = ['openid', 'profile', 'email', 'offline_access', 'read']
  const target = await startTarget(t, () => idp.issuer, listed)
  const idp = await startOidcProvider({ ...machineProvider, resources: { [`${target.url}/mcp`]: {} } })
  const world = { idp, target, resource: '', response: undefined, close: () => idp.close() }
  const run = await startMachine(world, withSecret)
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await idp.close()
  })
  await run.proxy.ready
  t.equal((await run.call()).status, 200)
})

await t.test('machine: a server without PKCE is used, because no user logs in', async (t) => {
  const idp = await startLoopback((seen) => ({
    body: seen.path.startsWith('/.well-known/')
      ? { issuer: idp.url, token_endpoint: `${idp.url}/token` }
      : { access_token: 'at', token_type: 'Bearer' },
  }))
  t.teardown(() => idp.close())
  const target = await startTarget(t, () => idp.url, [])
  const world = { target } as unknown as World
  for (const input of [withSecret, { ...withSecret, remoteAuthIssuer: idp.url }]) {
    const run = await startMachine(world, input)
    t.teardown(() => run.proxy.close({ graceMs: 0 }))
    await run.proxy.ready
    t.equal((await run.call()).status, 200)
    const request = idp.seen.findLast(({ path }) => path === '/token')
    t.equal(request?.form.get('grant_type'), 'client_credentials')
    t.notOk(request?.form.has('scope'), 'without a user, no identity scopes are requested')
  }
})

await t.test('machine: the secret never goes to a guessed endpoint', async (t) => {
  const target = await startUpstream((seen, res) => {
    if (seen.url.startsWith('/.well-known')) res.writeHead(404).end()
    else res.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
  })
  t.teardown(() => target.close())
  const run = await startMachine({ target } as unknown as World, withSecret)
  t.teardown(() => run.proxy.close({ graceMs: 0 }))
  await t.rejects(run.proxy.ready, { message: /names an authorization server\. Configure the issuer/ })
  t.notOk(target.seen.some(({ url }) => url.includes('token')))
})

await t.test('machine: worker processes share one token, and no log contains a credential', async (t) => {
  const world = await startMachineWorld()
  t.teardown(() => world.close())
  const flags = ['--remote-auth', '--remote-auth-grant', 'client_credentials', '--workers', '2', '--debug']
  const run = startGatehouse(
    ['proxy', '--target-uri', world.target.url, ...flags, '--remote-auth-client-id', 'job', 'demo'],
    { ...process.env, GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: machineSecret },
  )
  const [, port] = await run.waitFor(/^Transparent proxy started .* on port (\d+) /m)
  const call = async (): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, { headers: { connection: 'close' } })
    return response.text()
  }
  const found = new Set([await call(), await call(), await call(), await call()])
  t.equal(found.size, 1)
  t.match([...found][0], /^hello eyJ/)
  rejectUntilNextToken(world)
  t.match(await call(), /^hello eyJ/)
  t.equal(tokenRequests(world), 2)
  t.equal(await run.interrupt(), 0)
  t.match(run.output(), /"level":"debug"/)
  t.notMatch(run.output(), /eyJ/)
  t.notMatch(run.output(), machineSecret)
})

await t.test('machine: without --remote-auth, an open target gets no token', async (t) => {
  const open = await startUpstream((seen, res) => res.end(`open ${seen.headers.authorization ?? 'nothing'}`))
  t.teardown(() => open.close())
  const run = await startMachine({ target: open } as unknown as World, { ...withSecret, remoteAuth: false })
  t.teardown(() => run.proxy.close({ graceMs: 0 }))
  await run.proxy.ready
  t.equal(await (await run.call()).text(), 'open nothing')
})
