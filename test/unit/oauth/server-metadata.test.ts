/** Discovery of authorization servers: order of documents, exact issuer, clear errors. */
import t, { type Test } from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import { discoverServer, missingEndpoint, refreshGrant, typedServer } from '../../../runtime/oauth/index.ts'
import { serverMetadataUrls } from '../../../runtime/oauth/urls.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'

const fetch = makeFetch()
t.teardown(() => fetch.close())

/** Starts a server with these documents, keyed by path; `$` stands for its own URL. */
async function serve(t: Test, documents: Record<string, PeerResponse>) {
  const server = await startLoopback(({ path }) => {
    const response = documents[path] ?? { status: 404, body: 'no' }
    return response === 'cut' ? 'cut' : JSON.parse(JSON.stringify(response).replaceAll('$', server.url))
  })
  t.teardown(() => server.close())
  return server
}

const full = { issuer: '$', authorization_endpoint: '$/a', token_endpoint: '$/t', jwks_uri: '$/k' }

await t.test('serverMetadataUrls: MCP order, path inserted before the suffix', async (t) => {
  t.same(serverMetadataUrls('https://idp.example/t'), [
    'https://idp.example/.well-known/oauth-authorization-server/t',
    'https://idp.example/.well-known/openid-configuration/t',
    'https://idp.example/t/.well-known/openid-configuration',
  ])
  t.same(serverMetadataUrls('https://idp.example/'), [
    'https://idp.example/.well-known/oauth-authorization-server',
    'https://idp.example/.well-known/openid-configuration',
  ])
})

await t.test('discoverServer: continues with the next document if one is absent', async (t) => {
  const server = await serve(t, {
    '/t/.well-known/openid-configuration': { body: { ...full, issuer: '$/t' } },
  })
  const found = await discoverServer(`${server.url}/t`, { fetch })
  t.equal(found.token_endpoint, `${server.url}/t`)
  t.equal(server.seen.length, 3)
})

await t.test(
  'discoverServer: a document of another issuer is rejected, and a trailing slash matters',
  async (t) => {
    for (const issuer of ['https://evil.example', '$/']) {
      const server = await serve(t, { '/.well-known/openid-configuration': { body: { ...full, issuer } } })
      await t.rejects(discoverServer(server.url, { fetch }), {
        name: 'OAuthClientError',
        kind: 'protocol',
        code: 'OAUTH_PROTOCOL',
      })
    }
  },
)

await t.test('discoverServer: an invalid first document does not hide a valid second one', async (t) => {
  const server = await serve(t, {
    '/.well-known/oauth-authorization-server': { body: { ...full, issuer: 'https://other.example' } },
    '/.well-known/openid-configuration': { body: full },
  })
  t.equal((await discoverServer(server.url, { fetch })).issuer, server.url)
})

await t.test('discoverServer: a required member is added from the other document', async (t) => {
  const server = await serve(t, {
    '/.well-known/oauth-authorization-server': { body: full },
    '/.well-known/openid-configuration': {
      body: { ...full, registration_endpoint: '$/r', jwks_uri: '$/other' },
    },
  })
  const found = await discoverServer(server.url, { fetch, need: 'registration_endpoint' })
  t.equal(found.registration_endpoint, `${server.url}/r`)
  t.equal(found.jwks_uri, `${server.url}/k`, 'no other member is used')
})

await t.test('discoverServer: errors distinguish absent, unreachable and malformed', async (t) => {
  const absent = await serve(t, {})
  await t.rejects(discoverServer(absent.url, { fetch }), { name: 'OAuthClientError', kind: 'absent' })
  const down = await serve(t, {
    '/.well-known/oauth-authorization-server': { status: 503, headers: { 'retry-after': '7' } },
  })
  await t.rejects(discoverServer(down.url, { fetch }), {
    name: 'OAuthClientError',
    kind: 'unreachable',
    headers: { 'retry-after': '7' },
  })
  const cut = await serve(t, { '/.well-known/oauth-authorization-server': 'cut' })
  await t.rejects(discoverServer(cut.url, { fetch }), {
    name: 'OAuthClientError',
    kind: 'unreachable',
    status: 503,
  })
  t.equal(cut.seen.length, 1, 'an unreachable host is not tried three times')
  const html = await serve(t, {
    '/.well-known/oauth-authorization-server': { headers: { 'content-type': 'text/html' }, body: '<p>' },
  })
  await t.rejects(discoverServer(html.url, { fetch }), { name: 'OAuthClientError', kind: 'protocol' })
  const plain = await serve(t, {
    '/.well-known/oauth-authorization-server': { body: { ...full, token_endpoint: 'http://idp.example/t' } },
  })
  const found = await discoverServer(plain.url, { fetch })
  t.equal(found.token_endpoint, undefined)
  const used = { server: found, client: { clientId: 'c' }, fetch, refreshToken: 'rt' }
  await t.rejects(refreshGrant(used), { kind: 'protocol', message: /token_endpoint.*https/ })
})

await t.test('discoverServer: endpoints and lists that are null, empty or invalid are absent', async (t) => {
  for (const value of [null, '', 'nonsense', 'http://idp.example/x', 7, {}]) {
    const server = await serve(t, {
      '/.well-known/oauth-authorization-server': {
        body: {
          ...full,
          introspection_endpoint: value,
          registration_endpoint: value,
          scopes_supported: null,
        },
      },
    })
    const found = await discoverServer(server.url, { fetch })
    t.equal(found.token_endpoint, `${server.url}/t`)
    t.equal(found.introspection_endpoint, undefined, JSON.stringify(value))
    t.equal(found.registration_endpoint, undefined)
  }
  t.match(missingEndpoint({}, 'token_endpoint').message, /has no token_endpoint/)
})

await t.test('discoverServer: the content type of a document is ignored', async (t) => {
  for (const type of ['text/plain', 'application/octet-stream', 'text/html; charset=utf-8', '']) {
    const server = await serve(t, {
      '/.well-known/oauth-authorization-server': { headers: { 'content-type': type }, body: full },
    })
    t.equal((await discoverServer(server.url, { fetch })).token_endpoint, `${server.url}/t`, type)
  }
})

await t.test('discoverServer: plain http is rejected before anything is sent', async (t) => {
  await t.rejects(discoverServer('http://idp.example', { fetch }), {
    kind: 'protocol',
    message: /must be https/,
  })
})

await t.test('discoverServer: an abort is thrown unchanged', async (t) => {
  const controller = new AbortController()
  const server = await startLoopback(() => {
    controller.abort(new Error('caller gone'))
    return new Promise<PeerResponse>(() => {})
  })
  t.teardown(() => server.close())
  await t.rejects(discoverServer(server.url, { fetch, signal: controller.signal }), {
    message: 'caller gone',
  })
})

await t.test('typedServer: configured endpoints require no issuer', async (t) => {
  t.same(typedServer('https://a.example/authorize', 'https://b.example/token'), {
    issuer: 'https://b.example',
    token_endpoint: 'https://b.example/token',
    authorization_endpoint: 'https://a.example/authorize',
  })
})
