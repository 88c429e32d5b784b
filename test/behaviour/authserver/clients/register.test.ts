/** Dynamic client registration and its management: metadata, limits, expiry. */
import t from 'tap'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import {
  jsonOf,
  redirectUri,
  refusal,
  type Rig,
  startAuthServer,
  textOf,
} from '../../../helpers/authserver/authserver.ts'
import { startWithClient, TestClient } from '../../../helpers/authserver/test-client.ts'
import { proves } from '../../../helpers/proves.ts'

proves('2.embeddedAuthServer.baselineClientScopes', '2.endpoint.register')

function post(rig: Rig, metadata: unknown, type = 'application/json'): Promise<Response> {
  const body = typeof metadata === 'string' ? metadata : JSON.stringify(metadata)
  return fetch(`${rig.issuer}/oauth/register`, { method: 'POST', headers: { 'content-type': type }, body })
}

t.test('register: the response contains the registration with defaults, and how to manage it', async (t) => {
  const rig = await startAuthServer(t)
  const response = await post(rig, {
    redirect_uris: [redirectUri],
    client_name: 'X',
    contacts: ['a@b'],
    jwks: {},
  })
  t.equal(response.status, 201)
  t.match(Object.fromEntries(response.headers), { 'cache-control': 'no-store', pragma: 'no-cache' })
  const body = await jsonOf(response)
  t.match(body, {
    client_id: /^[0-9a-f-]{36}$/,
    client_name: 'X',
    redirect_uris: [redirectUri],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    scope: 'openid profile email offline_access',
    application_type: 'native',
    registration_client_uri: `${rig.issuer}/oauth/register/${textOf(body['client_id'])}`,
    registration_access_token: /^gh_reg_/,
  })
  t.ok(typeof body['client_id_issued_at'] === 'number')
  for (const member of ['client_secret', 'contacts', 'jwks']) t.notOk(member in body, member)
})

t.test('register: every client gets the default scopes, after the requested ones', async (t) => {
  const rig = await startAuthServer(t, { config: { baselineClientScopes: ['openid', 'offline_access'] } })
  const scope = async (asked: unknown): Promise<unknown> =>
    (await jsonOf(await post(rig, { redirect_uris: [redirectUri], scope: asked })))['scope']
  t.equal(await scope('email'), 'email openid offline_access')
  t.equal(await scope(['email', 'openid']), 'email openid offline_access', 'a list is accepted')
  t.equal(await scope('email unknown'), 'email openid offline_access', 'unsupported scopes are dropped')
  t.equal(await scope(''), 'openid profile email offline_access')
  const client = await TestClient.register(rig, { scope: 'email' })
  const tokens = await client.signIn({ scope: 'openid offline_access' })
  t.match(tokens, { scope: 'openid offline_access', refresh: /^gh_rt_/ })
})

t.test('register: a client that requests no scopes gets the supported ones', async (t) => {
  const rig = await startAuthServer(t, { config: { scopesSupported: ['openid'] } })
  t.match(await jsonOf(await post(rig, { redirect_uris: [redirectUri] })), { scope: 'openid' })
})

t.test('register: unsupported metadata is replaced, as RFC 7591 allows', async (t) => {
  const rig = await startAuthServer(t)
  const body = await jsonOf(
    await post(rig, {
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'client_secret_post',
      grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
      response_types: ['code', 'id_token'],
    }),
  )
  t.match(body, {
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code'],
    response_types: ['code'],
  })
})

t.test('register: names can use any script and joined emoji', async (t) => {
  const rig = await startAuthServer(t)
  const names = [
    'می\u200Cخواهم', // Persian, with a zero-width non-joiner
    'क्\u200Dष', // Devanagari, with a zero-width joiner
    '\u{1F469}\u{1F3FD}\u200D\u{1F4BB} Assistant',
    '\u{1F3F3}\uFE0F\u200D\u{1F308}',
    '\u{1F468}\u200D\u{1F469}\u200D\u{1F467}\u200D\u{1F466}',
    '日本語 クライアント',
    'مساعد',
    'e\u0301',
  ]
  for (const name of names) {
    const response = await post(rig, { redirect_uris: [redirectUri], client_name: name })
    t.equal(response.status, 201, name)
    const client = new TestClient(rig, await jsonOf(response))
    t.equal(client.registration['client_name'], name)
    t.match((await client.authorize()).text, `<bdi>${name}</bdi>`)
  }
})

t.test('register: errors name the member', async (t) => {
  let nowMs = 0
  const rig = await startAuthServer(t, { store: makeMemoryStore({ now: () => nowMs }) })
  const uris = (...list: unknown[]): object => ({ redirect_uris: list })
  const badUris = [
    7,
    '/relative',
    'https://a.example/#f',
    'https://user@a.example/',
    `https://a.example/${'x'.repeat(2048)}`,
    'http://a.example/cb',
    'http://10.0.0.1/cb',
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'blob:https://a.example/1',
    'VBScript:x',
    'about:blank',
    'myapp:/cb',
    'https://a.example/ cb',
    'https://a.example\\@b.example/',
  ]
  const badMembers = [
    { application_type: 7 },
    { client_name: 'x'.repeat(257) },
    { client_name: 'safe\u202Eevil' },
    { client_name: 7 },
    // A joiner without letters to join is invisible, or creates a second name that looks like the first.
    { client_name: 'Good\u200Cle' },
    { client_name: 'Good\u200Dle' },
    { client_name: '\u200D' },
    { client_name: 'می\u200C\u200Cخواهم' },
    { client_name: 'a\u200Bb' },
    { client_name: 'a\u2066b' },
    { client_name: '\u{E0041}b' },
    { client_name: 'a\nb' },
    { software_id: '\u{1F469}\u200D\u{1F4BB}' },
    { grant_types: ['refresh_token'] },
    { grant_types: 'authorization_code' },
    { response_types: ['token'] },
    { scope: 7 },
    { token_endpoint_auth_method: 7 },
    { token_endpoint_auth_method: 'private_key_jwt' },
    { token_endpoint_auth_method: 'client_secret_jwt' },
    { token_endpoint_auth_method: 'tls_client_auth' },
  ]
  const cases: readonly (readonly [unknown, string])[] = [
    ['', 'invalid_client_metadata'],
    ['[]', 'invalid_client_metadata'],
    ['{"redirect_uris":', 'invalid_client_metadata'],
    [{}, 'invalid_redirect_uri'],
    [{ redirect_uris: redirectUri }, 'invalid_redirect_uri'],
    [uris(), 'invalid_redirect_uri'],
    [uris(...Array.from({ length: 11 }, (_, n) => `https://a.example/${n}`)), 'invalid_redirect_uri'],
    ...badUris.map((uri) => [uris(uri), 'invalid_redirect_uri'] as const),
    ...badMembers.map((member) => [{ ...uris(redirectUri), ...member }, 'invalid_client_metadata'] as const),
  ]
  for (const [metadata, error] of cases) {
    nowMs += 60_000
    const response = await post(rig, metadata)
    t.match(response.headers.get('cache-control'), 'no-store')
    t.equal(await refusal(response), `400 ${error}`, JSON.stringify(metadata)?.slice(0, 90))
  }
  t.equal(await refusal(await post(rig, uris(redirectUri), 'text/plain')), '400 invalid_client_metadata')
  t.equal((await post(rig, { ...uris(redirectUri), pad: 'x'.repeat(70_000) })).status, 413)
})

t.test(
  'register: native clients may use loopback and private-use schemes in reverse domain form',
  async (t) => {
    const rig = await startAuthServer(t)
    for (const uri of [
      'http://localhost:7777/cb',
      'http://[::1]/cb',
      'com.example.app:/cb',
      'cursor://anysphere/cb',
      'https://a.example/cb?x=1',
    ]) {
      t.equal((await post(rig, { redirect_uris: [uri] })).status, 201, uri)
    }
  },
)

t.test(
  'register: one caller may register thirty clients a minute, then gets 429 with Retry-After',
  async (t) => {
    const rig = await startAuthServer(t, { store: makeMemoryStore({ now: () => 0 }) })
    const responses = await Promise.all(
      Array.from({ length: 36 }, () => post(rig, { redirect_uris: [redirectUri] })),
    )
    t.equal(responses.filter((response) => response.status === 201).length, 30)
    const refused = responses.find((response) => response.status === 429)
    t.match(refused?.headers.get('retry-after'), /^\d+$/)
    t.match(refused && (await jsonOf(refused)), { error: 'temporarily_unavailable' })
  },
)

t.test('register: a registration without a login expires after a day', async (t) => {
  let aheadMs = 0
  const rig = await startAuthServer(t, { store: makeMemoryStore({ now: () => Date.now() + aheadMs }) })
  const [idle, used] = [await TestClient.register(rig), await TestClient.register(rig)]
  const tokens = await used.signIn()
  aheadMs = 25 * 3_600_000
  t.equal((await fetch(idle.url(), { redirect: 'manual' })).status, 401)
  t.equal((await used.refresh(tokens)).outcome, '200')
})

t.test('register: a confidential client must send its secret with the registered method', async (t) => {
  const { client } = await startWithClient(
    t,
    { config: { registration: { enabled: true, confidentialClients: true } } },
    { token_endpoint_auth_method: 'client_secret_basic' },
  )
  t.match(client.registration, {
    client_secret: /^[\w-]{43}$/,
    client_secret_expires_at: 0,
    token_endpoint_auth_method: 'client_secret_basic',
  })
  const { id } = client
  const secret = textOf(client.registration['client_secret'])
  const done = await client.login()
  const code = {
    grant_type: 'authorization_code',
    code: done.code,
    code_verifier: done.verifier,
    redirect_uri: redirectUri,
  }
  for (const [name, form, basic, outcome] of [
    ['no secret', {}, undefined, '401 invalid_client'],
    ['another method', { client_secret: secret }, undefined, '401 invalid_client'],
    ['another secret', { client_id: undefined }, `${id}:guess`, '401 invalid_client'],
    [
      'two methods',
      { client_id: undefined, client_secret: secret },
      `${id}:${secret}`,
      '400 invalid_request',
    ],
    ['the registered method', { client_id: undefined }, `${id}:${secret}`, '200'],
  ] as const) {
    const headers = basic ? { authorization: `Basic ${Buffer.from(basic).toString('base64')}` } : undefined
    t.equal((await client.token({ ...code, ...form }, headers)).outcome, outcome, name)
  }
})

t.test('manage: reading, replacing and deleting require the registration access token', async (t) => {
  const rig = await startAuthServer(t)
  const client = await TestClient.register(rig, { client_name: 'Before', scope: 'openid email' })
  const token = textOf(client.registration['registration_access_token'])
  const uri = textOf(client.registration['registration_client_uri'])
  const unknownClient = await fetch(uri.replace(client.id, 'nobody'), {
    headers: { authorization: `Bearer ${token}` },
  })
  const refused = [await fetch(uri), await client.manage('GET', undefined, 'guess'), unknownClient]
  for (const response of [...refused, await client.manage('GET', undefined, `${token}x`)]) {
    t.match(response.headers.get('www-authenticate'), /^Bearer/)
    t.equal(await refusal(response), '401 invalid_token')
  }
  t.same(await jsonOf(await client.manage('GET')), client.registration)

  const redirect_uris = ['https://a.example/cb']
  const replaced = await client.manage('PUT', { redirect_uris, client_name: 'After' })
  t.match(await jsonOf(replaced), {
    client_name: 'After',
    redirect_uris,
    scope: 'openid profile email offline_access',
  })
  const otherId = await client.manage('PUT', { client_id: 'other', redirect_uris })
  t.equal(await refusal(otherId), '400 invalid_client_metadata')
  t.equal(await refusal(await client.manage('PUT', {})), '400 invalid_redirect_uri')
  t.equal((await client.manage('POST', {})).status, 405)

  t.equal((await client.manage('DELETE')).status, 204)
  t.equal(await refusal(await client.manage('GET')), '401 invalid_token')
  t.same(
    rig.events.map((event) => event.type),
    ['client_registered', 'client_updated', 'client_deleted'],
  )
})

t.test('manage: deleting a client ends its tokens', async (t) => {
  const { rig, client } = await startWithClient(t)
  const tokens = await client.signIn()
  await client.manage('DELETE')
  t.equal((await client.refresh(tokens)).outcome, '401 invalid_client')
  const headers = { authorization: `Bearer ${tokens.access}` }
  t.equal((await fetch(`${rig.issuer}/oauth/userinfo`, { headers })).status, 401)
})

t.test('manage: scopes that a client drops are no longer issued', async (t) => {
  const { client } = await startWithClient(t)
  const tokens = await client.signIn()
  const waiting = await client.login()
  const scope = 'openid offline_access'
  await client.manage('PUT', { redirect_uris: [redirectUri], scope })
  t.equal((await client.refresh(tokens)).scope, scope)
  t.equal((await client.exchange(waiting)).scope, scope)
})

t.test('manage: an update does not extend an unused registration', async (t) => {
  let aheadMs = 0
  const store = makeMemoryStore({ now: () => Date.now() + aheadMs })
  const { client } = await startWithClient(t, { store })
  const update = (): Promise<Response> => client.manage('PUT', { redirect_uris: [redirectUri] })
  aheadMs = 20 * 3_600_000
  t.equal((await update()).status, 200)
  aheadMs = 25 * 3_600_000
  t.equal((await update()).status, 401, 'it has expired a day after the registration')
})

t.test('manage: updates and registrations share one limit', async (t) => {
  const { client } = await startWithClient(t, { store: makeMemoryStore({ now: () => 0 }) })
  const update = (): Promise<Response> => client.manage('PUT', { redirect_uris: [redirectUri] })
  const responses = await Promise.all(Array.from({ length: 32 }, update))
  t.equal(responses.filter(({ status }) => status === 429).length, 3, 'the registration was the first of 30')
})
