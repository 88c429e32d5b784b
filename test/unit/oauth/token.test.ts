/** Token requests: the request for each grant, and which responses are accepted. */
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import {
  clientCredentialsGrant,
  codeGrant,
  introspect,
  isTransient,
  jwtBearerGrant,
  type OAuthClient,
  refreshGrant,
  type ServerMetadata,
  tokenExchangeGrant,
  tokenRefusal,
} from '../../../runtime/oauth/index.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'

const fetch = makeFetch()
t.teardown(() => fetch.close())

const good: PeerResponse = { body: { access_token: 'at', token_type: 'Bearer', expires_in: 60 } }

async function peer(t: Test, ...responses: readonly PeerResponse[]) {
  let count = 0
  const server = await startLoopback(() => responses[Math.min(count++, responses.length - 1)] ?? good)
  t.teardown(() => server.close())
  const metadata: ServerMetadata = { issuer: server.url, token_endpoint: `${server.url}/token` }
  const client: OAuthClient = { clientId: 'c' }
  return { server, base: { server: metadata, client, fetch, now: () => 1_000 } }
}

const sent = (server: { seen: readonly { form: URLSearchParams }[] }, index = 0) =>
  Object.fromEntries(server.seen[index]?.form ?? [])

await t.test('grants: every grant sends its own form', async (t) => {
  const { server, base } = await peer(t, good)
  await codeGrant({
    ...base,
    code: 'k',
    redirectUri: 'http://localhost/cb',
    codeVerifier: 'v',
    resource: 'r',
  })
  await refreshGrant({ ...base, refreshToken: 'rt', scopes: ['a', 'b'] })
  await clientCredentialsGrant({ ...base, audience: 'aud', scopes: [] })
  await tokenExchangeGrant({
    ...base,
    subjectToken: 's',
    subjectTokenType: 'urn:t',
    audience: 'aud',
    scopes: ['x'],
  })
  await jwtBearerGrant({ ...base, assertion: 'jwt', extra: { requested_token_use: 'on_behalf_of' } })
  t.same(
    server.seen.map((_, index) => sent(server, index)),
    [
      {
        grant_type: 'authorization_code',
        code: 'k',
        redirect_uri: 'http://localhost/cb',
        code_verifier: 'v',
        resource: 'r',
        client_id: 'c',
      },
      { grant_type: 'refresh_token', refresh_token: 'rt', scope: 'a b', client_id: 'c' },
      { grant_type: 'client_credentials', audience: 'aud', client_id: 'c' },
      {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: 's',
        subject_token_type: 'urn:t',
        audience: 'aud',
        scope: 'x',
        client_id: 'c',
      },
      {
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: 'jwt',
        requested_token_use: 'on_behalf_of',
        client_id: 'c',
      },
    ],
  )
})

await t.test(
  'client authentication: the listed method, otherwise Basic with encoded parts, then once more in the body',
  async (t) => {
    const client = { clientId: 'a:b', clientSecret: 'c d%' }
    const plain = await peer(t, good)
    await clientCredentialsGrant({ ...plain.base, client })
    t.equal(
      plain.server.seen[0]?.headers.authorization,
      `Basic ${Buffer.from('a%3Ab:c+d%25').toString('base64')}`,
    )
    const dashed = await peer(t, good)
    await clientCredentialsGrant({ ...dashed.base, client: { clientId: 'my-app_1.0', clientSecret: 's~' } })
    t.equal(
      dashed.server.seen[0]?.headers.authorization,
      `Basic ${Buffer.from('my-app_1.0:s%7E').toString('base64')}`,
      'not escaped further than forms are: some servers do not decode',
    )
    const open = await peer(t, good)
    const publicOnly = { ...open.base.server, token_endpoint_auth_methods_supported: ['none'] }
    await clientCredentialsGrant({ ...open.base, server: publicOnly, client })
    t.equal(open.server.seen[0]?.headers.authorization, undefined)
    t.match(sent(open.server), { client_id: 'a:b', client_secret: undefined })
    const post = await peer(t, good)
    const server = { ...post.base.server, token_endpoint_auth_methods_supported: ['client_secret_post'] }
    await clientCredentialsGrant({ ...post.base, server, client })
    t.equal(post.server.seen[0]?.headers.authorization, undefined)
    t.match(sent(post.server), { client_id: 'a:b', client_secret: 'c d%' })
    const guessed = await peer(t, { status: 401, body: { error: 'invalid_client' } }, good)
    t.equal((await clientCredentialsGrant({ ...guessed.base, client })).accessToken, 'at')
    t.match(sent(guessed.server, 1), { client_secret: 'c d%' })
    const fixed = await peer(t, { status: 401, body: { error: 'invalid_client' } }, good)
    await t.rejects(
      clientCredentialsGrant({ ...fixed.base, client: { ...client, authMethod: 'client_secret_basic' } }),
      {
        name: 'OAuthClientError',
        error: 'invalid_client',
      },
    )
    const none = { ...post.base.server, token_endpoint_auth_methods_supported: ['private_key_jwt'] }
    await t.rejects(clientCredentialsGrant({ ...post.base, server: none, client }), {
      name: 'OAuthClientError',
      kind: 'protocol',
    })
  },
)

await t.test(
  'responses: lifetime as number or string, kept refresh token, unverified id_token',
  async (t) => {
    const { base } = await peer(t, {
      body: { access_token: 'at', token_type: 'bearer', expires_in: '90', id_token: 'x.y.z', scope: 'a' },
    })
    const tokens = await refreshGrant({ ...base, refreshToken: 'old' })
    t.match(tokens, {
      accessToken: 'at',
      expiresAt: 91_000,
      refreshToken: 'old',
      idToken: 'x.y.z',
      scope: 'a',
    })
    const silent = await peer(t, { body: { access_token: 'at', token_type: 'bearer' } })
    t.equal((await clientCredentialsGrant(silent.base)).expiresAt, undefined)
    const untyped = await peer(t, { body: { access_token: 'at' } })
    t.match(await clientCredentialsGrant(untyped.base), { accessToken: 'at', tokenType: 'bearer' })
  },
)

await t.test('responses: a mapping is applied before any check', async (t) => {
  const { base } = await peer(t, { body: { ok: true, authed: { token: 'at' } } })
  const map = (body: Readonly<Record<string, unknown>>) => {
    const inner = body['authed']
    return {
      access_token: typeof inner === 'object' && inner && 'token' in inner ? inner.token : '',
      token_type: 'bearer',
    }
  }
  t.equal((await clientCredentialsGrant({ ...base, map })).accessToken, 'at')
})

const bad: readonly (readonly [string, PeerResponse, object])[] = [
  [
    'an OAuth error',
    { status: 400, body: { error: 'invalid_grant', error_description: 'x' } },
    { kind: 'refused', error: 'invalid_grant' },
  ],
  [
    'an OAuth error with status 200',
    { body: { error: 'invalid_scope' } },
    { kind: 'refused', error: 'invalid_scope' },
  ],
  ['a status without an error', { status: 403, body: 'no' }, { kind: 'refused', error: undefined }],
  ['an outage', { status: 502, body: 'no' }, { kind: 'unreachable' }],
  [
    'too many requests',
    { status: 429, headers: { 'retry-after': '3' }, body: 'no' },
    { kind: 'unreachable', retryAfterSec: 3 },
  ],
  [
    'an outage reported as an error',
    { status: 400, body: { error: 'temporarily_unavailable' } },
    { kind: 'unreachable' },
  ],
  ['a cut connection', 'cut', { kind: 'unreachable' }],
  ['a redirect', { status: 307, headers: { location: 'https://evil.example/' } }, { kind: 'refused' }],
  ['a web page', { headers: { 'content-type': 'text/html' }, body: '<p>' }, { kind: 'protocol' }],
  ['a list', { body: [] }, { kind: 'protocol' }],
  ['no access token', { body: { token_type: 'bearer' } }, { kind: 'protocol' }],
  ['an empty access token', { body: { access_token: '', token_type: 'bearer' } }, { kind: 'protocol' }],
  ['an unknown token type', { body: { access_token: 'at', token_type: 'mac' } }, { kind: 'protocol' }],
]

for (const [title, response, expected] of bad) {
  await t.test(`responses: ${title} is an error of its kind`, async (t) => {
    const { base } = await peer(t, response)
    const failure = await clientCredentialsGrant(base).then(
      () => undefined,
      (error: unknown) => error,
    )
    t.match(failure, { name: 'OAuthClientError', ...expected })
    t.notMatch(String(failure), /evil|<p>/, 'the message contains no text from the server')
  })
}

await t.test('errors: a rejected grant and an outage are distinguished', async (t) => {
  const refused = await peer(t, { status: 400, body: { error: 'invalid_grant' } })
  const failure = await clientCredentialsGrant(refused.base).then(
    () => undefined,
    (error: unknown) => error,
  )
  t.equal(tokenRefusal(failure), 'grant')
  t.notOk(isTransient(failure))
})

await t.test('tokenTypes: an assertion of type N_A is accepted only on request', async (t) => {
  const { base } = await peer(t, {
    body: { access_token: 'jag', token_type: 'N_A', issued_token_type: 'urn:jag' },
  })
  const options = { ...base, subjectToken: 's', subjectTokenType: 'urn:t' }
  await t.rejects(tokenExchangeGrant(options), { name: 'OAuthClientError', kind: 'protocol' })
  const tokens = await tokenExchangeGrant({ ...options, tokenTypes: ['n_a'] })
  t.equal(tokens.issuedTokenType, 'urn:jag')
})

await t.test('introspect: form, credentials, inactive tokens, and invalid responses', async (t) => {
  const { server, base } = await peer(
    t,
    { body: { active: true, sub: 'a' } },
    { body: { active: false } },
    { body: { sub: 'a' } },
    { status: 401, body: {} },
  )
  const url = `${server.url}/introspect`
  const client = { clientId: 'rs', clientSecret: 's' }
  t.match(await introspect(url, 'tok', { fetch: base.fetch, client }), { sub: 'a' })
  t.same(sent(server), { token: 'tok', token_type_hint: 'access_token' })
  t.match(server.seen[0]?.headers.authorization, /^Basic /)
  t.equal(await introspect(url, 'tok', { fetch }), undefined)
  t.equal(server.seen[1]?.headers.authorization, undefined)
  t.notOk(server.seen[1]?.form.has('client_id'))
  await t.rejects(introspect(url, 'tok', { fetch }), { name: 'OAuthClientError', kind: 'protocol' })
  await t.rejects(introspect(url, 'tok', { fetch }), { name: 'OAuthClientError', kind: 'refused' })
})

await t.test('responses: optional members that are null or empty are absent', async (t) => {
  for (const empty of [null, '']) {
    const { base } = await peer(t, {
      body: {
        access_token: 'at',
        token_type: 'Bearer',
        refresh_token: empty,
        id_token: empty,
        scope: empty,
        issued_token_type: empty,
        expires_in: empty,
      },
    })
    const tokens = await refreshGrant({ ...base, refreshToken: 'rt' })
    t.equal(tokens.refreshToken, 'rt', 'the old token is kept')
    t.equal(tokens.idToken, undefined)
    t.equal(tokens.expiresAt, undefined)
    t.equal(tokens.issuedTokenType, undefined)
  }
  const { base } = await peer(t, { body: { access_token: '', token_type: 'Bearer' } })
  await t.rejects(refreshGrant({ ...base, refreshToken: 'rt' }), {
    kind: 'protocol',
    message: /access_token/,
  })
  const { base: odd } = await peer(t, {
    body: { access_token: 'at', token_type: 'Bearer', refresh_token: 7 },
  })
  await t.rejects(refreshGrant({ ...odd, refreshToken: 'rt' }), {
    kind: 'protocol',
    message: /refresh_token/,
  })
})

await t.test('errors: a secret that the server repeats is masked in every grant', async (t) => {
  const repeat: PeerResponse = {
    status: 400,
    body: { error: 'secret-123', error_description: 'secret-123 and refresh-123 and subject-123' },
  }
  const { base } = await peer(t, repeat)
  const options = { ...base, client: { clientId: 'c', clientSecret: 'secret-123' } }
  const requests = [
    clientCredentialsGrant(options),
    refreshGrant({ ...options, refreshToken: 'refresh-123' }),
    tokenExchangeGrant({ ...options, subjectToken: 'subject-123', subjectTokenType: 'urn:t' }),
    jwtBearerGrant({ ...options, assertion: 'subject-123' }),
    codeGrant({
      ...options,
      code: 'subject-123',
      redirectUri: 'http://localhost/cb',
      codeVerifier: 'refresh-123',
    }),
  ]
  const own = ['secret-123', 'refresh-123', 'subject-123', 'subject-123', 'subject-123']
  for (const [index, request] of requests.entries()) {
    const error: unknown = await request.catch((failure: unknown) => failure)
    const text = inspect(error, { depth: 9 })
    t.match(error, { kind: 'refused' })
    t.notMatch(text, /secret-123/)
    t.notOk(text.includes(own[index] ?? ''))
  }
})
