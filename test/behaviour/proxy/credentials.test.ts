/** Bearer token, injected headers, token exchange and incoming OIDC, alone and together, through the whole proxy. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { type ProxyInput, resolveProxyConfig } from '../../../runtime/config/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { startOidcProvider } from '../../helpers/authserver/oidc-provider.ts'
import { startPassingTime } from '../../helpers/outgoing/passing-time.ts'
import { proves } from '../../helpers/proves.ts'
import { json, rpc, startUpstream } from '../../helpers/proxy/rig.ts'

const dir = mkdtempSync(join(tmpdir(), 'credentials-'))

/** Echoes the headers that it received. */
const target = await startUpstream((seen, res) => {
  if (seen.headers.authorization === 'Bearer refused')
    res.writeHead(401, { 'WWW-Authenticate': 'Bearer realm="target"' }).end()
  else res.end(JSON.stringify(seen.headers))
})
t.teardown(() => target.close())

async function start(
  t: { teardown(fn: () => Promise<void>): void },
  input: ProxyInput,
  env: Record<string, string> = {},
) {
  const config = resolveProxyConfig('demo', { targetUri: target.url, ...input }, env)
  const proxy = await runProxy(config, { log: silentLog, notify() {} })
  t.teardown(() => proxy.close({ graceMs: 0 }))
  await proxy.ready
  const call = (headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${proxy.url}/mcp`, { method: 'POST', headers: { ...json, ...headers }, body: rpc(5) })
  return {
    proxy,
    call,
    seen: async (headers?: Record<string, string>): Promise<object> => {
      const value: unknown = await (await call(headers)).json()
      return typeof value === 'object' && value !== null ? value : {}
    },
  }
}

await t.test(
  "bearer: the fixed token replaces the client's token, and a rejection is 502 without a challenge",
  async (t) => {
    proves(
      '1.flag.remote-auth-bearer-token',
      '1.flag.remote-auth-bearer-token-file',
      '1.auth.outgoing.bearer',
      '1.does.secrets',
    )
    const typed = await start(t, { remoteAuthBearerToken: 'typed-token' })
    t.match(await typed.seen({ authorization: 'Bearer client' }), { authorization: 'Bearer typed-token' })

    const path = join(dir, 'token')
    writeFileSync(path, 'file-token\n')
    const file = await start(t, { remoteAuthBearerTokenFile: path })
    t.match(await file.seen(), { authorization: 'Bearer file-token' })

    const variable = await start(t, {}, { GATEHOUSE_REMOTE_AUTH_BEARER_TOKEN: 'refused' })
    const response = await variable.call()
    t.equal(response.status, 502)
    t.equal(response.headers.get('www-authenticate'), null)
    t.match(await response.json(), { jsonrpc: '2.0', id: 5, error: { code: -32603 } })
  },
)

await t.test(
  'inject: plain and secret headers replace the client’s, and override the bearer token',
  async (t) => {
    proves(
      '1.does.inject',
      '1.flag.remote-forward-headers',
      '1.flag.remote-forward-headers-secret',
      '1.auth.outgoing.headers',
    )
    const { seen } = await start(
      t,
      {
        remoteForwardHeaders: ['X-Plain=a=b, c', 'Authorization=Basic abc'],
        remoteForwardHeadersSecret: ['X-Api-Key=api-key'],
        remoteAuthBearerToken: 'token',
      },
      { GATEHOUSE_SECRET_API_KEY: 'k3y' },
    )
    const headers = await seen({ 'x-plain': 'client', 'X-API-KEY': 'client', 'x-other': 'stays' })
    t.match(headers, {
      'x-plain': 'a=b, c',
      'x-api-key': 'k3y',
      authorization: 'Basic abc',
      'x-other': 'stays',
    })
  },
)

await t.test('exchange: the client’s token is exchanged, once per token, with all parameters', async (t) => {
  proves(
    '1.flag.token-exchange-url',
    '1.flag.token-exchange-audience',
    '1.flag.token-exchange-client-id',
    '1.flag.token-exchange-client-secret',
    '1.flag.token-exchange-client-secret-file',
    '1.flag.token-exchange-header-name',
    '1.flag.token-exchange-header-name.default',
    '1.flag.token-exchange-scopes',
    '1.flag.token-exchange-subject-token-type',
    '1.auth.outgoing.token-exchange',
  )
  const sts = await startLoopback(({ form }) =>
    form.get('subject_token') === 'bad'
      ? { status: 400, body: { error: 'invalid_grant' } }
      : {
          body: {
            access_token: `exchanged-${form.get('subject_token')}`,
            token_type: 'Bearer',
            issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
            expires_in: 300,
          },
        },
  )
  t.teardown(() => sts.close())
  const secretFile = join(dir, 'exchange-secret')
  writeFileSync(secretFile, 's3cret')
  const options = {
    tokenExchangeUrl: `${sts.url}/token`,
    tokenExchangeAudience: 'backend',
    tokenExchangeClientId: 'proxy',
    tokenExchangeClientSecretFile: secretFile,
    tokenExchangeScopes: ['a,b'],
    tokenExchangeSubjectTokenType: 'jwt',
  }
  const { seen, call } = await start(t, options)
  t.match(await seen({ authorization: 'Bearer one' }), { authorization: 'Bearer exchanged-one' })
  await seen({ authorization: 'Bearer one' })
  t.equal(sts.seen.length, 1, 'kept for the next request')
  t.same(Object.fromEntries(sts.seen[0]?.form ?? []), {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: 'one',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    audience: 'backend',
    scope: 'a b',
  })
  t.equal(sts.seen[0]?.headers.authorization, `Basic ${Buffer.from('proxy:s3cret').toString('base64')}`)

  const before = target.seen.length
  t.equal((await call()).status, 401, 'without a token to exchange, the request is rejected')
  t.equal((await call({ authorization: 'Bearer bad' })).status, 401)
  t.equal(target.seen.length, before)

  const header = await start(t, { ...options, tokenExchangeHeaderName: 'X-Exchanged' })
  const headers = await header.seen({ authorization: 'Bearer two' })
  t.match(headers, { 'x-exchanged': 'Bearer exchanged-two' })
  t.notOk('authorization' in headers, 'the original token is not sent')

  const { tokenExchangeClientSecretFile: _file, ...rest } = options
  const typed = await start(t, { ...rest, tokenExchangeClientSecret: 'typed' })
  await typed.seen({ authorization: 'Bearer three' })
  t.equal(sts.seen.at(-1)?.headers.authorization, `Basic ${Buffer.from('proxy:typed').toString('base64')}`)
})

await t.test('exchange: an unreachable service is 503, and the request is not forwarded', async (t) => {
  const { call } = await start(t, { tokenExchangeUrl: 'http://127.0.0.1:1/token' })
  const before = target.seen.length
  const response = await call({ authorization: 'Bearer x' })
  t.equal(response.status, 503)
  t.match(response.headers.get('retry-after'), /^\d+$/)
  t.equal(target.seen.length, before)
})

await t.test(
  'incoming: only tokens of the issuer for this resource are accepted, and they are not forwarded',
  async (t) => {
    proves(
      '1.does.protect',
      '1.scenario.incoming',
      '1.auth.incoming',
      '1.auth.incoming.jwks-discovered',
      '1.auth.incoming.jwks-url',
      '1.flag.oidc-issuer',
      '1.flag.oidc-audience',
      '1.flag.oidc-jwks-url',
      '1.flag.oidc-scopes',
      '1.flag.oidc-scopes.default',
      '1.flag.resource-url',
      '1.endpoint.protected-resource',
    )
    const resource = 'http://gateway.example/mcp'
    const idp = await startOidcProvider({
      clients: [
        {
          client_id: 'c',
          token_endpoint_auth_method: 'none',
          redirect_uris: ['http://localhost/cb'],
          application_type: 'native',
        },
      ],
      resources: { [resource]: {}, 'https://other.example': {} },
    })
    t.teardown(() => idp.close())
    const good = await idp.accessToken({ clientId: 'c', resource })
    const other = await idp.accessToken({ clientId: 'c', resource: 'https://other.example' })
    const { seen, call, proxy } = await start(t, {
      oidcIssuer: idp.issuer,
      resourceUrl: resource,
      oidcScopes: ['read', 'write'],
    })
    const headers = await seen({ authorization: `Bearer ${good}` })
    t.notOk('authorization' in headers, 'the token for this proxy is not forwarded')
    const anonymous = await call()
    t.equal(anonymous.status, 401)
    t.equal(
      anonymous.headers.get('www-authenticate'),
      `Bearer realm="${idp.issuer}", resource_metadata="http://gateway.example/.well-known/oauth-protected-resource/mcp", scope="read write"`,
    )
    t.equal((await call({ authorization: `Bearer ${other}` })).status, 401)

    const document = await (await fetch(`${proxy.url}/.well-known/oauth-protected-resource/mcp`)).json()
    t.same(document, {
      resource,
      authorization_servers: [idp.issuer],
      bearer_methods_supported: ['header'],
      scopes_supported: ['read', 'write'],
    })
    for (const path of ['/.well-known/oauth-protected-resource/other', '/.well-known/openid-configuration']) {
      const missing = await fetch(proxy.url + path)
      t.equal(missing.status, 404)
      t.same(await missing.json(), { error: 'not_found' })
    }
    t.equal((await fetch(`${proxy.url}/health`)).status, 200, 'health needs no token')

    const byKeys = await start(t, { oidcJwksUrl: `${idp.issuer}/jwks`, oidcAudience: resource })
    t.ok('host' in (await byKeys.seen({ authorization: `Bearer ${good}` })))
    t.equal((await byKeys.call({ authorization: `Bearer ${other}` })).status, 401)
    const derived: unknown = await (
      await fetch(`${byKeys.proxy.url}/.well-known/oauth-protected-resource`)
    ).json()
    t.match(derived, { resource: `${byKeys.proxy.url}/mcp`, scopes_supported: ['openid'] })
  },
)

await t.test('incoming: opaque tokens are introspected', async (t) => {
  proves(
    '1.auth.incoming.introspection',
    '1.flag.oidc-introspection-url',
    '1.flag.oidc-client-id',
    '1.flag.oidc-client-secret',
  )
  const idp = await startLoopback(({ form }) => ({
    body:
      form.get('token') === 'good'
        ? { active: true, sub: 'alice', aud: 'me', exp: 4_102_444_800 }
        : { active: false },
  }))
  t.teardown(() => idp.close())
  const { call } = await start(t, {
    oidcIntrospectionUrl: `${idp.url}/introspect`,
    oidcAudience: 'me',
    oidcClientId: 'proxy',
    oidcClientSecret: 'shh',
  })
  t.equal((await call({ authorization: 'Bearer good' })).status, 200)
  t.equal(idp.seen[0]?.headers.authorization, `Basic ${Buffer.from('proxy:shh').toString('base64')}`)
  t.equal((await call({ authorization: 'Bearer bad' })).status, 401)
})

await t.test('both: clients are authenticated, and the target gets the proxy’s own credential', async (t) => {
  proves('1.scenario.bidirectional')
  const idp = await startLoopback(() => ({
    body: { active: true, sub: 'alice', aud: 'me', exp: 4_102_444_800 },
  }))
  t.teardown(() => idp.close())
  const { seen, call } = await start(t, {
    oidcIntrospectionUrl: `${idp.url}/introspect`,
    oidcAudience: 'me',
    remoteAuthBearerToken: 'own',
  })
  t.match(await seen({ authorization: 'Bearer client' }), { authorization: 'Bearer own' })
  t.equal((await call()).status, 401)
})

await t.test('incoming: the client’s token is forwarded only on request', async (t) => {
  const idp = await startLoopback(() => ({
    body: { active: true, sub: 'alice', aud: 'me', exp: 4_102_444_800 },
  }))
  t.teardown(() => idp.close())
  const oidc = { oidcIntrospectionUrl: `${idp.url}/introspect`, oidcAudience: 'me' }
  const { seen } = await start(t, { ...oidc, passAuthorization: true })
  t.match(await seen({ authorization: 'Bearer client' }), { authorization: 'Bearer client' })
})

await t.test(
  'exchange: a token that the target rejects is replaced once, and the request is repeated',
  async (t) => {
    const issued = ['refused', 'good']
    const sts = await startLoopback(() => ({
      body: {
        access_token: issued.shift(),
        token_type: 'Bearer',
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        expires_in: 300,
      },
    }))
    t.teardown(() => sts.close())
    const pass = startPassingTime(t)
    const { seen, call } = await start(t, { tokenExchangeUrl: `${sts.url}/token` })
    const client = { authorization: 'Bearer one' }
    t.equal((await call(client)).status, 502)
    t.equal(sts.seen.length, 1, 'a token that is only a few seconds old is not replaced')
    pass(10_000)
    t.match(await seen(client), { authorization: 'Bearer good' })
    t.equal(sts.seen.length, 2)
  },
)
