/** Dynamic client registration and its management: what is taken, narrowed, refused, limited, forgotten. */
import t from 'tap'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import {
  authorizeUrl,
  jsonOf,
  login,
  pkce,
  redeem,
  refresh,
  refusal,
  redirectUri,
  registerClient,
  type Rig,
  startAuthServer,
  textOf,
  tokenRequest,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { proves } from '../../../helpers/proves.ts'

proves('2.embeddedAuthServer.baselineClientScopes', '2.endpoint.register')

function post(rig: Rig, metadata: unknown, type = 'application/json'): Promise<Response> {
  const body = typeof metadata === 'string' ? metadata : JSON.stringify(metadata)
  return fetch(`${rig.issuer}/oauth/register`, { method: 'POST', headers: { 'content-type': type }, body })
}

t.test(
  'register: the response says what was registered, defaults filled in, and how to manage it',
  async (t) => {
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
  },
)

t.test('register: the baseline is in every client, requested scopes first', async (t) => {
  const rig = await startAuthServer(t, { config: { baselineClientScopes: ['openid', 'offline_access'] } })
  const scope = async (asked: unknown): Promise<unknown> =>
    (await jsonOf(await post(rig, { redirect_uris: [redirectUri], scope: asked })))['scope']
  t.equal(await scope('email'), 'email openid offline_access')
  t.equal(await scope(['email', 'openid']), 'email openid offline_access', 'a list is understood')
  t.equal(await scope('email unknown'), 'email openid offline_access', 'unsupported scopes are left out')
  t.equal(await scope(''), 'openid profile email offline_access')
  const clientId = await registerClient(rig, { scope: 'email' })
  const done = await login(rig, { client_id: clientId, scope: 'openid offline_access' })
  t.match(await tokensOf(await redeem(rig, done)), {
    scope: 'openid offline_access',
    refresh_token: /^gh_rt_/,
  })
})

t.test('register: with narrow supported scopes a client that asks for none gets those', async (t) => {
  const rig = await startAuthServer(t, { config: { scopesSupported: ['openid'] } })
  t.match(await jsonOf(await post(rig, { redirect_uris: [redirectUri] })), { scope: 'openid' })
})

t.test('register: what cannot be supported is replaced, as RFC 7591 allows', async (t) => {
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

t.test('register: names are written in every script, joined emoji included', async (t) => {
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
    const { client_name: echoed, client_id: id } = await jsonOf(response)
    t.equal(echoed, name)
    const page = await new Browser().open(
      authorizeUrl(rig, { client_id: textOf(id), code_challenge: pkce().challenge }),
    )
    t.match(page.text, `<bdi>${name}</bdi>`)
  }
})

t.test('register: refusals name the member', async (t) => {
  const rig = await startAuthServer(t, {
    config: { registration: { enabled: true, confidentialClients: false } },
  })
  const uris = (...list: unknown[]): object => ({ redirect_uris: list })
  const cases: readonly (readonly [unknown, string])[] = [
    ['', 'invalid_client_metadata'],
    ['[]', 'invalid_client_metadata'],
    ['{"redirect_uris":', 'invalid_client_metadata'],
    [{}, 'invalid_redirect_uri'],
    [{ redirect_uris: redirectUri }, 'invalid_redirect_uri'],
    [uris(), 'invalid_redirect_uri'],
    [uris(...Array.from({ length: 11 }, (_, n) => `https://a.example/${n}`)), 'invalid_redirect_uri'],
    [uris(7), 'invalid_redirect_uri'],
    [uris('/relative'), 'invalid_redirect_uri'],
    [uris('https://a.example/#f'), 'invalid_redirect_uri'],
    [uris('https://user@a.example/'), 'invalid_redirect_uri'],
    [uris(`https://a.example/${'x'.repeat(2048)}`), 'invalid_redirect_uri'],
    [uris('http://a.example/cb'), 'invalid_redirect_uri'],
    [uris('http://10.0.0.1/cb'), 'invalid_redirect_uri'],
    [uris('javascript:alert(1)'), 'invalid_redirect_uri'],
    [uris('data:text/html,x'), 'invalid_redirect_uri'],
    [uris('file:///etc/passwd'), 'invalid_redirect_uri'],
    [uris('blob:https://a.example/1'), 'invalid_redirect_uri'],
    [uris('VBScript:x'), 'invalid_redirect_uri'],
    [uris('about:blank'), 'invalid_redirect_uri'],
    [uris('myapp:/cb'), 'invalid_redirect_uri'],
    [uris('https://a.example/ cb'), 'invalid_redirect_uri'],
    [uris('https://a.example\\@b.example/'), 'invalid_redirect_uri'],
    [{ ...uris(redirectUri), application_type: 7 }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: 'x'.repeat(257) }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: 'safe\u202Eevil' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: 7 }, 'invalid_client_metadata'],
    // A joiner where nothing is joined hides, or makes a second name that looks like the first.
    [{ ...uris(redirectUri), client_name: 'Good\u200Cle' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: 'Good\u200Dle' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: '\u200D' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: 'می\u200C\u200Cخواهم' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: 'a\u200Bb' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: 'a\u2066b' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: '\u{E0041}b' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), client_name: 'a\nb' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), software_id: '\u{1F469}\u200D\u{1F4BB}' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), grant_types: ['refresh_token'] }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), grant_types: 'authorization_code' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), response_types: ['token'] }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), scope: 7 }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), token_endpoint_auth_method: 7 }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), token_endpoint_auth_method: 'private_key_jwt' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), token_endpoint_auth_method: 'client_secret_jwt' }, 'invalid_client_metadata'],
    [{ ...uris(redirectUri), token_endpoint_auth_method: 'tls_client_auth' }, 'invalid_client_metadata'],
  ]
  for (const [metadata, error] of cases) {
    const fresh = await startAuthServer(t)
    const response = await post(fresh, metadata)
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

t.test('register: one caller gets thirty a minute, then 429 with Retry-After', async (t) => {
  const rig = await startAuthServer(t, { store: makeMemoryStore({ now: () => 0 }) })
  const responses = await Promise.all(
    Array.from({ length: 36 }, () => post(rig, { redirect_uris: [redirectUri] })),
  )
  t.equal(responses.filter((response) => response.status === 201).length, 30)
  const refused = responses.find((response) => response.status === 429)
  t.match(refused?.headers.get('retry-after'), /^\d+$/)
  t.match(refused && (await jsonOf(refused)), { error: 'temporarily_unavailable' })
})

t.test('register: unused for a day, a registration is forgotten; used, it stays', async (t) => {
  let aheadMs = 0
  const rig = await startAuthServer(t, { store: makeMemoryStore({ now: () => Date.now() + aheadMs }) })
  const idle = await registerClient(rig)
  const done = await login(rig)
  const { refresh_token: token } = await tokensOf(await redeem(rig, done))
  aheadMs = 25 * 3_600_000
  const url = authorizeUrl(rig, { client_id: idle, code_challenge: pkce().challenge })
  t.equal((await fetch(url, { redirect: 'manual' })).status, 401)
  t.equal((await refresh(rig, done.clientId, token)).status, 200)
})

t.test(
  'register: confidential clients get a secret when they are switched on, and must use it as registered',
  async (t) => {
    const rig = await startAuthServer(t, {
      config: { registration: { enabled: true, confidentialClients: true } },
    })
    const body = await jsonOf(
      await post(rig, { redirect_uris: [redirectUri], token_endpoint_auth_method: 'client_secret_basic' }),
    )
    t.match(body, {
      client_secret: /^[\w-]{43}$/,
      client_secret_expires_at: 0,
      token_endpoint_auth_method: 'client_secret_basic',
    })
    const clientId = textOf(body['client_id'])
    const secret = textOf(body['client_secret'])
    const done = await login(rig, { client_id: clientId })
    t.equal(await refusal(await redeem(rig, done)), '401 invalid_client', 'no secret')
    t.equal(
      await refusal(await redeem(rig, done, { client_secret: secret })),
      '401 invalid_client',
      'wrong method',
    )
    const form = {
      grant_type: 'authorization_code',
      code: done.code,
      code_verifier: done.verifier,
      redirect_uri: redirectUri,
    }
    const basic = (pair: string): Record<string, string> => ({
      authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
    })
    t.equal(await refusal(await tokenRequest(rig, form, basic(`${clientId}:guess`))), '401 invalid_client')
    t.equal(
      await refusal(
        await tokenRequest(rig, { ...form, client_secret: secret }, basic(`${clientId}:${secret}`)),
      ),
      '400 invalid_request',
    )
    t.equal((await tokenRequest(rig, form, basic(`${clientId}:${secret}`))).status, 200)
  },
)

t.test('manage: read, replace, delete with the registration access token only', async (t) => {
  const rig = await startAuthServer(t)
  const body = await jsonOf(
    await post(rig, { redirect_uris: [redirectUri], client_name: 'Before', scope: 'openid email' }),
  )
  const uri = textOf(body['registration_client_uri'])
  const token = textOf(body['registration_access_token'])
  const call = (method: string, bearer: string | undefined, metadata?: object): Promise<Response> =>
    fetch(uri, {
      method,
      headers: {
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        'content-type': 'application/json',
      },
      ...(metadata === undefined ? {} : { body: JSON.stringify(metadata) }),
    })
  for (const bearer of [undefined, 'guess', `${token}x`]) {
    const refused = await call('GET', bearer)
    t.match(refused.headers.get('www-authenticate'), /^Bearer/)
    t.equal(await refusal(refused), '401 invalid_token')
  }
  const unknown = await fetch(`${rig.issuer}/oauth/register/nobody`, {
    headers: { authorization: `Bearer ${token}` },
  })
  t.equal(await refusal(unknown), '401 invalid_token', 'an unknown client looks the same')
  t.same(await jsonOf(await call('GET', token)), body)

  const replaced = await call('PUT', token, {
    client_id: body['client_id'],
    redirect_uris: ['https://a.example/cb'],
    client_name: 'After',
  })
  t.match(await jsonOf(replaced), {
    client_name: 'After',
    redirect_uris: ['https://a.example/cb'],
    scope: 'openid profile email offline_access',
  })
  t.equal(
    await refusal(await call('PUT', token, { client_id: 'other', redirect_uris: [redirectUri] })),
    '400 invalid_client_metadata',
  )
  t.equal(
    await refusal(await call('PUT', token, { client_id: body['client_id'] })),
    '400 invalid_redirect_uri',
  )
  t.equal((await call('POST', token, {})).status, 405)

  t.equal((await call('DELETE', token)).status, 204)
  t.equal(await refusal(await call('GET', token)), '401 invalid_token')
  t.same(
    rig.events.map((event) => event.type),
    ['client_registered', 'client_updated', 'client_deleted'],
  )
})

t.test('manage: deleting a client ends its tokens', async (t) => {
  const rig = await startAuthServer(t)
  const body = await jsonOf(await post(rig, { redirect_uris: [redirectUri] }))
  const clientId = textOf(body['client_id'])
  const tokens = await tokensOf(await redeem(rig, await login(rig, { client_id: clientId })))
  const authorization = `Bearer ${textOf(body['registration_access_token'])}`
  await fetch(textOf(body['registration_client_uri']), { method: 'DELETE', headers: { authorization } })
  t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '401 invalid_client')
  const me = await fetch(`${rig.issuer}/oauth/userinfo`, {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  })
  t.equal(me.status, 401)
})

t.test('manage: scopes that a client gives up are not issued any more', async (t) => {
  const rig = await startAuthServer(t)
  const body = await jsonOf(await post(rig, { redirect_uris: [redirectUri] }))
  const clientId = textOf(body['client_id'])
  const tokens = await tokensOf(await redeem(rig, await login(rig, { client_id: clientId })))
  const waiting = await login(rig, { client_id: clientId })
  await fetch(textOf(body['registration_client_uri']), {
    method: 'PUT',
    headers: {
      authorization: `Bearer ${textOf(body['registration_access_token'])}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      client_id: clientId,
      redirect_uris: [redirectUri],
      scope: 'openid offline_access',
    }),
  })
  t.equal((await tokensOf(await refresh(rig, clientId, tokens.refresh_token))).scope, 'openid offline_access')
  t.equal((await tokensOf(await redeem(rig, waiting))).scope, 'openid offline_access')
})

t.test(
  'register: an update does not prolong a registration that nobody used, and counts as one',
  async (t) => {
    let ahead = 0
    const rig = await startAuthServer(t, { store: makeMemoryStore({ now: () => Date.now() + ahead }) })
    const body = await jsonOf(await post(rig, { redirect_uris: [redirectUri] }))
    const update = (): Promise<Response> =>
      fetch(textOf(body['registration_client_uri']), {
        method: 'PUT',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${textOf(body['registration_access_token'])}`,
        },
        body: JSON.stringify({ client_id: body['client_id'], redirect_uris: [redirectUri] }),
      })
    ahead = 20 * 3_600_000
    t.equal((await update()).status, 200)
    ahead = 25 * 3_600_000
    t.equal((await update()).status, 401, 'a day after the registration it is gone')
  },
)

t.test('register: updates share the limit of registrations', async (t) => {
  const rig = await startAuthServer(t, { store: makeMemoryStore({ now: () => 0 }) })
  const body = await jsonOf(await post(rig, { redirect_uris: [redirectUri] }))
  const statuses: number[] = []
  for (let n = 0; n < 32; n++) {
    const response = await fetch(textOf(body['registration_client_uri']), {
      method: 'PUT',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${textOf(body['registration_access_token'])}`,
      },
      body: JSON.stringify({ client_id: body['client_id'], redirect_uris: [redirectUri] }),
    })
    statuses.push(response.status)
  }
  t.same([statuses.indexOf(429), statuses.at(-1)], [29, 429])
})
