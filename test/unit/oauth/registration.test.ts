/** Dynamic registration and client-id metadata documents. */
import t, { type Test } from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import { fetchClientDocument, registerClient } from '../../../runtime/oauth/index.ts'
import { clientDocumentUrlViolation } from '../../../runtime/oauth/metadata/client-document.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'

const fetch = makeFetch({ maxRedirects: 0 })
t.teardown(() => fetch.close())

async function peer(t: Test, response: PeerResponse) {
  const server = await startLoopback(() => response)
  t.teardown(() => server.close())
  return server
}

const metadata = { redirect_uris: ['http://localhost:8666/callback'], client_name: 'x' }

await t.test(
  'registerClient: sends JSON with the initial access token, and reads the registered client',
  async (t) => {
    const server = await peer(t, {
      status: 201,
      body: {
        client_id: 'id',
        client_secret: 'sec',
        client_secret_expires_at: 100,
        scope: ['a', 'b'],
        token_endpoint_auth_method: 'client_secret_post',
        registration_client_uri: 'https://idp.example/r/id',
      },
    })
    const got = await registerClient(server.url, metadata, { fetch, initialAccessToken: 'iat' })
    t.match(got, {
      clientId: 'id',
      clientSecret: 'sec',
      clientSecretExpiresAt: 100_000,
      scopes: ['a', 'b'],
      authMethod: 'client_secret_post',
    })
    t.same(JSON.parse(server.seen[0]?.body ?? ''), metadata)
    t.equal(server.seen[0]?.headers.authorization, 'Bearer iat')
  },
)

await t.test(
  'registerClient: a secret without an end does not expire, and scope may be a string',
  async (t) => {
    const server = await peer(t, {
      body: { client_id: 'id', client_secret: 's', client_secret_expires_at: 0, scope: 'a  b' },
    })
    const got = await registerClient(server.url, metadata, { fetch })
    t.equal(got.clientSecretExpiresAt, undefined)
    t.same(got.scopes, ['a', 'b'])
  },
)

await t.test('registerClient: errors distinguish whether the endpoint supports registration', async (t) => {
  for (const status of [404, 405, 501])
    await t.rejects(registerClient((await peer(t, { status })).url, metadata, { fetch }), {
      name: 'OAuthClientError',
      kind: 'absent',
    })
  const refused = await peer(t, { status: 400, body: { error: 'invalid_redirect_uri' } })
  await t.rejects(registerClient(refused.url, metadata, { fetch }), {
    name: 'OAuthClientError',
    error: 'invalid_redirect_uri',
  })
  for (const body of [{}, { client_id: 'x', token_endpoint_auth_method: 'tls_client_auth' }])
    await t.rejects(registerClient((await peer(t, { body })).url, metadata, { fetch }), {
      name: 'OAuthClientError',
      kind: 'protocol',
    })
  const moved = await peer(t, { status: 307, headers: { location: '/elsewhere' } })
  await t.rejects(registerClient(moved.url, metadata, { fetch }), {
    name: 'OAuthClientError',
    kind: 'refused',
  })
  t.equal(moved.seen.length, 1, 'redirects are not followed')
})

await t.test('client document: requirements for a client_id that is a URL', async (t) => {
  for (const good of ['https://app.example/client.json', 'https://app.example/c?v=1', 'http://127.0.0.1:1/c'])
    t.equal(clientDocumentUrlViolation(good), undefined, good)
  for (const bad of [
    'abc',
    'https://app.example',
    'https://app.example/',
    'http://app.example/c',
    'https://u@app.example/c',
    'https://app.example/c#f',
    'https://app.example/a/../c',
    'https://app.example/a/%2E%2e/c',
    'ftp://app.example/c',
  ])
    t.type(clientDocumentUrlViolation(bad), 'string', bad)
})

await t.test('client document: fetched from the client_id itself, whose URL it must contain', async (t) => {
  const server = await startLoopback(({ path }) => {
    if (path === '/moved') return { status: 302, headers: { location: '/c' } }
    return { body: { ...metadata, client_id: `${server.url}/c`, token_endpoint_auth_method: 'none' } }
  })
  t.teardown(() => server.close())
  const document = await fetchClientDocument(`${server.url}/c`, { fetch })
  t.match(document, { client_id: `${server.url}/c`, token_endpoint_auth_method: 'none' })
  await t.rejects(fetchClientDocument(`${server.url}/d`, { fetch }), {
    name: 'OAuthClientError',
    kind: 'protocol',
  })
  await t.rejects(fetchClientDocument(`${server.url}/moved`, { fetch }), {
    name: 'OAuthClientError',
    kind: 'refused',
  })
})

await t.test('registration: optional members that are null or empty are absent', async (t) => {
  for (const empty of [null, '']) {
    const server = await peer(t, {
      status: 201,
      body: {
        client_id: 'c',
        client_secret: empty,
        token_endpoint_auth_method: empty,
        registration_access_token: empty,
        registration_client_uri: empty,
        client_secret_expires_at: empty,
        scope: null,
      },
    })
    const made = await registerClient(`${server.url}/reg`, metadata, { fetch })
    t.equal(made.clientId, 'c')
    t.equal(made.clientSecret, undefined)
    t.equal(made.authMethod, undefined)
  }
})
