/** The proxy gets its token with a token that the platform issued for the workload (jwt-bearer). */
import t, { type Test } from 'tap'
import type { ProxyInput } from '../../../../runtime/config/index.ts'
import { fileWith, startMachine } from '../../../helpers/proxy/machine-rig.ts'
import { type PlatformWorld, startPlatformWorld, workloadToken } from '../../../helpers/proxy/platform-rig.ts'
import type { World } from '../../../helpers/proxy/login-rig.ts'

t.setTimeout(400_000)

let files = 0
const assertionFile = (token: string): string => fileWith(`workload-${files++}`, `${token}\n`)

async function start(t: Test, world: PlatformWorld, token: string, input: ProxyInput = {}) {
  const remoteAuthAssertionFile = assertionFile(token)
  const run = await startMachine(world as unknown as World, {
    remoteAuthGrant: 'jwt-bearer',
    remoteAuthAssertionFile,
    ...input,
  })
  t.teardown(() => run.proxy.close({ graceMs: 0 }))
  return { ...run, remoteAuthAssertionFile, text: async () => (await run.call()).text() }
}

await t.test('workload: a platform token gets a token for the target, without a client', async (t) => {
  const world = await startPlatformWorld(t)
  const assertion = await workloadToken(world.issuer, { jti: 'one' })
  const { proxy, text, lines } = await start(t, world, assertion)
  await proxy.ready
  t.equal(await text(), 'hello at-one')
  t.equal(await text(), 'hello at-one')
  t.same(
    world.forms.map((form) => Object.fromEntries(form)),
    [
      {
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion,
        resource: world.server,
        scope: 'read',
      },
    ],
    'calls share the token, and the request identifies no client',
  )
  t.same(world.authorizations, [undefined])
  t.same(lines, [], 'the user is not prompted')
})

await t.test('workload: a client can authenticate in addition', async (t) => {
  const world = await startPlatformWorld(t)
  const token = await workloadToken(world.issuer)
  const secret = { remoteAuthClientId: 'job', remoteAuthClientSecretFile: fileWith('job-secret', 's3cret') }
  await (await start(t, world, token, secret)).proxy.ready
  await (await start(t, world, token, { remoteAuthClientId: 'job' })).proxy.ready
  t.equal(world.authorizations[0], `Basic ${Buffer.from('job:s3cret').toString('base64')}`)
  t.equal(world.authorizations[1], undefined)
  t.equal(world.forms[1]?.get('client_id'), 'job')
})

await t.test('workload: the file is read again for each token request', async (t) => {
  const world = await startPlatformWorld(t)
  const { proxy, text, remoteAuthAssertionFile } = await start(
    t,
    world,
    await workloadToken(`${world.issuer}/token`, { jti: 'one' }),
  )
  await proxy.ready
  t.equal(await text(), 'hello at-one')
  const name = remoteAuthAssertionFile.slice(remoteAuthAssertionFile.lastIndexOf('/') + 1)
  fileWith(name, await workloadToken(world.issuer, { jti: 'two' }))
  t.equal(await text(), 'hello at-one', 'a valid token stays in use')
  world.rejectedToken = 'at-one'
  t.equal(await text(), 'hello at-two')
})

await t.test('workload: a rejected platform token is reported once, without the token', async (t) => {
  const world = await startPlatformWorld(t)
  const token = await workloadToken(world.issuer, { exp: 1 })
  const { proxy, call } = await start(t, world, `${token.slice(0, -8)}AAAAAAAA`)
  await t.rejects(proxy.ready, { code: 'BACKEND_AUTH_FAILED', message: /invalid_grant/ })
  const response = await call()
  t.equal(response.status, 502)
  t.notMatch(await response.text(), /eyJ/)
  t.equal(world.forms.length, 1, 'neither the request nor another grant is tried')
})

await t.test('workload: a platform token for another server is not sent', async (t) => {
  const honest = await startPlatformWorld(t)
  const malicious = await startPlatformWorld(t)
  const rows: readonly (string | string[])[] = [
    honest.issuer,
    [honest.issuer, malicious.issuer],
    [],
    `${malicious.issuer}/`,
  ]
  for (const audience of rows) {
    const { proxy } = await start(t, malicious, await workloadToken(audience))
    await t.rejects(proxy.ready, {
      code: 'BACKEND_AUTH_FAILED',
      message: /the assertion's audience is not the MCP server's authorization server.* configure the issuer/,
    })
  }
  t.same(malicious.forms, [])
  t.same(honest.forms, [])
})

await t.test('workload: a configured server decides about the audience itself', async (t) => {
  const world = await startPlatformWorld(t, 'https://unused.example')
  const token = await workloadToken('api://custom')
  world.response = { body: { access_token: 'at', token_type: 'Bearer' } }
  for (const input of [{ remoteAuthIssuer: world.issuer }, { remoteAuthTokenUrl: `${world.issuer}/token` }]) {
    const { proxy, text } = await start(t, world, token, input)
    await proxy.ready
    t.equal(await text(), 'hello at')
  }
  t.same(
    world.forms.map((form) => form.get('assertion')),
    [token, token],
  )
})

await t.test('workload: a provider that uses the audience parameter gets it', async (t) => {
  const world = await startPlatformWorld(t)
  const { proxy } = await start(t, world, await workloadToken(world.issuer), { remoteAuthProvider: 'auth0' })
  await proxy.ready
  t.match(Object.fromEntries(world.forms[0] ?? []), { audience: world.server })
  t.notOk(world.forms[0]?.has('resource'))
})

await t.test('workload: during an outage of the authorization server, the token stays in use', async (t) => {
  const world = await startPlatformWorld(t)
  const { proxy, text, call } = await start(t, world, await workloadToken(world.issuer, { jti: 'one' }))
  await proxy.ready
  world.response = { status: 503 }
  world.rejectedToken = 'at-one'
  t.equal((await call()).status, 503)
  world.rejectedToken = undefined
  t.equal(await text(), 'hello at-one')
})
