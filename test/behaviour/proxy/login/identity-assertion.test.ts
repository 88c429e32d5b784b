/**
 * The proxy exchanges a user's ID token for an identity assertion at the identity provider, and the assertion for a
 * token at the target's authorization server (id-jag).
 */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { type Log, silentLog } from '../../../../runtime/net/index.ts'
import { resolveProxyConfig, type ProxyInput } from '../../../../runtime/config/index.ts'
import { runProxy } from '../../../../runtime/proxy/index.ts'
import { keepingLog } from '../../../helpers/authserver/authserver.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { fileWith, keyText } from '../../../helpers/proxy/machine-rig.ts'
import { startPlatformWorld, workloadToken } from '../../../helpers/proxy/platform-rig.ts'
import { json, rpc } from '../../../helpers/proxy/rig.ts'

t.setTimeout(120_000)

const assertionType = 'urn:ietf:params:oauth:token-type:id-jag'
let files = 0

interface Changes {
  readonly audience?: string
  readonly resource?: string
  readonly typ?: string
  readonly issuedTokenType?: string
  readonly tokenType?: string
}

interface StartOptions {
  readonly log?: Log
  readonly changes?: Changes
  /** Error code with which the identity provider responds. */
  readonly error?: string
}

/** An identity provider that issues assertions with `changes`, an authorization server that accepts them, and a proxy. */
async function start(
  t: Test,
  input: ProxyInput = {},
  { log = silentLog, changes = {}, error }: StartOptions = {},
) {
  const world = await startPlatformWorld(t)
  const idp = await startLoopback(async ({ form }) => {
    if (error !== undefined) return { status: 400, body: { error } }
    const {
      audience = form.get('audience') ?? '',
      resource = form.get('resource') ?? '',
      typ = 'oauth-id-jag+jwt',
      issuedTokenType = assertionType,
      tokenType = 'N_A',
    } = changes
    const jti = `${decodeJwt(form.get('subject_token') ?? '').jti}-${idp.seen.length}`
    const assertion = await workloadToken(audience, { jti, resource, client_id: 'job' }, typ)
    return { body: { access_token: assertion, issued_token_type: issuedTokenType, token_type: tokenType } }
  })
  t.teardown(() => idp.close())
  const idTokenName = `id-token-${files++}`
  const config = resolveProxyConfig(
    'demo',
    {
      targetUri: world.target.url,
      remoteAuth: true,
      remoteAuthGrant: 'id-jag',
      remoteAuthClientId: 'job',
      remoteAuthClientSecretFile: fileWith('jag-secret', 's3cret'),
      remoteAuthIdpTokenUrl: `${idp.url}/token`,
      remoteAuthIdpClientId: 'desktop',
      remoteAuthIdpClientSecretFile: fileWith('jag-idp-secret', 'idp-s3cret'),
      remoteAuthIdTokenFile: fileWith(idTokenName, await workloadToken('desktop', { jti: 'one' })),
      ...input,
    },
    {},
  )
  const proxy = await runProxy(config, { log, notify: () => t.fail('the user is not prompted') })
  t.teardown(() => proxy.close({ graceMs: 0 }))
  proxy.ready.catch(() => {})
  const call = () => fetch(`${proxy.url}/mcp`, { method: 'POST', headers: json, body: rpc(1) })
  return { world, idp, proxy, call, idTokenName, text: async () => (await call()).text() }
}

await t.test('id-jag: the ID token becomes an assertion, and the assertion an access token', async (t) => {
  const { world, idp, proxy, text } = await start(t)
  await proxy.ready
  t.equal(await text(), 'hello at-one-1')
  t.equal(await text(), 'hello at-one-1', 'calls share the token')
  const [exchange] = idp.seen
  t.equal(idp.seen.length, 1)
  t.match(Object.fromEntries(exchange?.form ?? []), {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
    requested_token_type: assertionType,
    audience: world.issuer,
    resource: world.server,
    scope: 'read',
  })
  const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`
  t.equal(exchange?.headers.authorization, basic('desktop:idp-s3cret'))
  t.same(world.authorizations, [basic('job:s3cret')])
  t.match(Object.fromEntries(world.forms[0] ?? []), {
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    resource: world.server,
    scope: 'read',
  })
})

await t.test('id-jag: each token needs another assertion, from the current ID token', async (t) => {
  const { world, proxy, text, idTokenName } = await start(t)
  await proxy.ready
  t.equal(await text(), 'hello at-one-1')
  fileWith(idTokenName, await workloadToken('desktop', { jti: 'two' }))
  world.rejectedToken = 'at-one-1'
  t.equal(await text(), 'hello at-two-2')
})

await t.test('id-jag: a private key at the identity provider, and a public client', async (t) => {
  const key = {
    remoteAuthIdpClientSecretFile: undefined as never,
    remoteAuthIdpPrivateKeyFile: fileWith('jag-key', keyText('first')),
  }
  const { idp, proxy } = await start(t, key)
  await proxy.ready
  const { form, headers } = idp.seen[0] ?? {}
  t.match(decodeJwt(form?.get('client_assertion') ?? ''), { iss: 'desktop', aud: `${idp.url}/token` })
  t.equal(headers?.authorization, undefined)
  const other = await start(t, { remoteAuthIdpClientSecretFile: undefined as never })
  await other.proxy.ready
  t.equal(other.idp.seen[0]?.form.get('client_id'), 'desktop')
})

await t.test('id-jag: an assertion for something else is not presented', async (t) => {
  const rows: readonly (readonly [Changes, RegExp])[] = [
    [{ audience: 'https://other.example' }, /wrong audience/],
    [{ resource: 'https://other.example' }, /does not grant the requested resource/],
    [{ typ: 'JWT' }, /type of the identity assertion/],
    [{ issuedTokenType: 'urn:ietf:params:oauth:token-type:access_token' }, /not an identity assertion/],
    [{ tokenType: 'Bearer' }, /not an identity assertion/],
  ]
  for (const [changes, message] of rows) {
    const run = await start(t, {}, { changes })
    await t.rejects(run.proxy.ready, { message })
    t.same(run.world.forms, [])
  }
})

await t.test(
  'id-jag: a rejected ID token is reported with the identity provider, and not logged',
  async (t) => {
    const { log, text } = keepingLog()
    const run = await start(t, {}, { log, error: 'invalid_grant' })
    await t.rejects(run.proxy.ready, {
      code: 'BACKEND_AUTH_FAILED',
      message: /the token endpoint of the identity provider refused the request: invalid_grant/,
    })
    t.equal((await run.call()).status, 502)
    t.match(text(), /invalid_grant/)
    t.notMatch(text(), /eyJ|s3cret/)
  },
)
