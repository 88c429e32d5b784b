/** Clients described by a metadata document at their own URL. */
import t from 'tap'
import {
  authorizeUrl,
  login,
  pkce,
  redeem,
  refresh,
  startAuthServer,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { clientDocument, startDocumentHost, startLogin } from '../../../helpers/authserver/document-host.ts'
import { type PeerResponse, startLoopback } from '../../../helpers/loopback.ts'
import { proves } from '../../../helpers/proves.ts'

proves('2.embeddedAuthServer.cimd', '2.cimd.enabled', '2.cimd.cacheFallbackTtl', '2.cimd.cacheMaxSize')
proves('2.limit.cimd.cacheFallbackTtl', '2.limit.cimd.cacheMaxSize')

const minute = 60_000

t.test('cimd: a client with a document logs in and refreshes, and the page shows its host', async (t) => {
  const { rig, host, clientId } = await startDocumentHost(t)
  const page = await new Browser().open(
    authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge }),
  )
  t.match(page.text, 'Described Client')
  t.match(page.text, `<dt>Described by</dt><dd>${new URL(clientId).host}</dd>`)
  const done = await login(rig, { client_id: clientId })
  const tokens = await tokensOf(await redeem(rig, done))
  t.match(tokens.refresh_token, /^gh_rt_/)
  await host.close()
  rig.pass(2 * 24 * 3_600_000)
  t.equal((await refresh(rig, clientId, tokens.refresh_token)).status, 200, 'refreshing needs no document')
})

t.test('cimd: when switched off, a URL is an unknown client and nothing is fetched', async (t) => {
  const host = await startLoopback(() => ({ body: {} }))
  t.teardown(() => host.close())
  const rig = await startAuthServer(t)
  t.equal((await startLogin(rig, `${host.url}/client.json`)).status, 401)
  t.equal(host.seen.length, 0)
})

t.test('cimd: default scopes are added, and unsupported scopes are dropped', async (t) => {
  const self = await startDocumentHost(t, { baselineClientScopes: ['offline_access'] })
  self.response = () => ({ body: clientDocument(self.clientId, { scope: 'openid admin' }) })
  const { rig, clientId } = self
  const done = await login(rig, { client_id: clientId, scope: 'openid offline_access' })
  t.equal((await tokensOf(await redeem(rig, done))).scope, 'openid offline_access')
})

t.test('cimd: the documents of known clients are accepted as they are published', async (t) => {
  const loopback = ['http://127.0.0.1:33418/', 'http://127.0.0.1/', 'http://localhost/']
  const self = await startDocumentHost(t)
  const { rig, clientId } = self
  const begin = async (redirect: string): Promise<number> => {
    const url = authorizeUrl(rig, {
      client_id: clientId,
      redirect_uri: redirect,
      code_challenge: pkce().challenge,
      scope: 'openid offline_access',
    })
    return (await fetch(url, { redirect: 'manual', headers: { accept: 'application/json' } })).status
  }
  const grants = ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code']
  const published: readonly (readonly [object, readonly string[], readonly string[]])[] = [
    [
      { redirect_uris: [...loopback, 'https://vscode.dev/redirect'], grant_types: grants, scope: 'openid' },
      ['http://127.0.0.1:33418/', 'http://127.0.0.1:59656/', 'https://vscode.dev/redirect'],
      ['https://vscode.dev/other', 'https://vscode.dev:8443/redirect'],
    ],
    [
      { redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'] },
      ['http://localhost:58135/callback', 'http://127.0.0.1:58135/callback'],
      ['http://127.0.0.1:19876/mcp/oauth/callback'],
    ],
    [
      { redirect_uris: ['http://127.0.0.1:33418/'], application_type: 'native' },
      ['http://127.0.0.1:61876/'],
      ['http://localhost:61876/'],
    ],
  ]
  for (const [members, accepted, refused] of published) {
    self.response = () => ({ body: clientDocument(clientId, members) })
    rig.pass(5 * minute)
    for (const uri of accepted) t.equal(await begin(uri), 303, uri)
    for (const uri of refused) t.equal(await begin(uri), 400, uri)
  }
})

t.test('cimd: documents that break a rule make the client unknown', async (t) => {
  const bad: readonly (readonly [string, (url: string) => PeerResponse])[] = [
    ['another client_id', () => ({ body: clientDocument('https://other.example/c') })],
    ['no client_id', (url) => ({ body: { ...clientDocument(url), client_id: undefined } })],
    ['no name', (url) => ({ body: clientDocument(url, { client_name: undefined }) })],
    ['no redirect URIs', (url) => ({ body: clientDocument(url, { redirect_uris: [] }) })],
    ['private scheme', (url) => ({ body: clientDocument(url, { redirect_uris: ['com.example.app:/cb'] }) })],
    ['plain http', (url) => ({ body: clientDocument(url, { redirect_uris: ['http://a.example/cb'] }) })],
    ['script', (url) => ({ body: clientDocument(url, { redirect_uris: ['javascript:alert(1)'] }) })],
    [
      'secret method',
      (url) => ({ body: clientDocument(url, { token_endpoint_auth_method: 'client_secret_basic' }) }),
    ],
    ['a secret', (url) => ({ body: clientDocument(url, { client_secret: 'x' }) })],
    ['a secret expiry', (url) => ({ body: clientDocument(url, { client_secret_expires_at: 0 }) })],
    ['no code grant', (url) => ({ body: clientDocument(url, { grant_types: ['refresh_token'] }) })],
    ['not found', () => ({ status: 404, body: {} })],
    ['redirect', () => ({ status: 302, headers: { location: '/other.json' } })],
    [
      'html',
      (url) => ({ headers: { 'content-type': 'text/html' }, body: JSON.stringify(clientDocument(url)) }),
    ],
    ['no object', () => ({ headers: { 'content-type': 'application/json' }, body: '[]' })],
    ['too large', (url) => ({ body: clientDocument(url, { pad: 'x'.repeat(12_000) }) })],
    ['cut', () => 'cut'],
  ]
  for (const [name, served] of bad) {
    const self = await startDocumentHost(t)
    self.response = () => served(self.clientId)
    const response = await startLogin(self.rig, self.clientId)
    t.same([response.status, response.headers.get('location')], [401, null], name)
    t.same(
      [...new Set(self.host.seen.map(({ path }) => path))],
      ['/client.json'],
      'redirects are not followed',
    )
  }
})

t.test('cimd: structured JSON types are accepted, and cache headers are ignored', async (t) => {
  const self = await startDocumentHost(t)
  self.response = () => ({
    headers: { 'content-type': 'application/client-metadata+json', 'cache-control': 'no-store, max-age=0' },
    body: JSON.stringify(clientDocument(self.clientId)),
  })
  t.equal((await startLogin(self.rig, self.clientId)).status, 303)
  t.equal((await startLogin(self.rig, self.clientId)).status, 303)
  t.equal(self.host.seen.length, 1)
  self.rig.pass(5 * minute)
  t.equal((await startLogin(self.rig, self.clientId)).status, 303)
  t.equal(self.host.seen.length, 2, 'fetched again after the fixed lifetime')
})

t.test('cimd: the least recently used document is dropped when the cache is full', async (t) => {
  const { rig, host } = await startDocumentHost(t, {}, { cacheMaxSize: 2 })
  const paths = ['/a', '/b', '/a', '/c', '/a', '/b']
  for (const path of paths) t.equal((await startLogin(rig, `${host.url}${path}`)).status, 303)
  t.same(
    host.seen.map(({ path }) => path),
    ['/a', '/b', '/c', '/b'],
  )
})

t.test(
  'cimd: simultaneous requests cause one fetch, and a failure is cached for half a minute',
  async (t) => {
    const self = await startDocumentHost(t)
    await Promise.all(Array.from({ length: 8 }, () => startLogin(self.rig, self.clientId)))
    t.equal(self.host.seen.length, 1)
    const missing = `${self.host.url}/missing.json`
    self.response = () => ({ status: 404 })
    for (let n = 0; n < 5; n++) t.equal((await startLogin(self.rig, missing)).status, 401)
    t.equal(self.host.seen.length, 2)
    self.response = (path) => ({ body: clientDocument(`${self.host.url}${path}`) })
    self.rig.pass(30_000)
    t.equal((await startLogin(self.rig, missing)).status, 303)
  },
)

t.test(
  'cimd: a cached copy is used for a day while the host is down, but an invalid document disables the client at once',
  async (t) => {
    const self = await startDocumentHost(t)
    t.equal((await startLogin(self.rig, self.clientId)).status, 303)
    self.response = () => ({ status: 503 })
    self.rig.pass(10 * minute)
    t.equal((await startLogin(self.rig, self.clientId)).status, 303, 'stale')
    self.rig.pass(25 * 60 * minute)
    t.equal((await startLogin(self.rig, self.clientId)).status, 401, 'too old')
    self.response = () => ({ body: clientDocument(self.clientId) })
    self.rig.pass(minute)
    t.equal((await startLogin(self.rig, self.clientId)).status, 303)
    self.response = () => ({ status: 404 })
    self.rig.pass(10 * minute)
    t.equal((await startLogin(self.rig, self.clientId)).status, 401, 'a withdrawn document stays withdrawn')
  },
)

t.test('cimd: fetches are limited per host', async (t) => {
  const { rig, host } = await startDocumentHost(t)
  const statuses: number[] = []
  for (let n = 0; n < 13; n++) statuses.push((await startLogin(rig, `${host.url}/n${n}`)).status)
  t.equal(host.seen.length, 10)
  t.same(statuses.slice(10), [503, 503, 503])
})

t.test('cimd: at the fetch limit, a cached copy is used for a day at most', async (t) => {
  const { rig, host, clientId } = await startDocumentHost(t)
  t.equal((await startLogin(rig, clientId)).status, 303)
  for (let n = 0; n < 9; n++) await startLogin(rig, `${host.url}/n${n}`)
  rig.pass(10 * minute)
  t.equal(
    (await startLogin(rig, clientId)).status,
    303,
    'a client that uses up the fetches does not block other clients',
  )
  rig.pass(25 * 60 * minute)
  t.equal((await startLogin(rig, clientId)).status, 503, 'and does not extend an old document')
  t.equal(host.seen.length, 10)
})

t.test('cimd: one caller cannot use up the fetches of all callers', async (t) => {
  const { rig } = await startDocumentHost(t, { trustedProxies: ['127.0.0.1'] })
  const hosts = await Promise.all(
    Array.from({ length: 4 }, () => startLoopback(({ path }) => ({ status: path === '/' ? 200 : 404 }))),
  )
  t.teardown(() => Promise.all(hosts.map((host) => host.close())))
  const ask = async (from: string, clientId: string): Promise<number> => {
    const url = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
    const headers = { accept: 'application/json', 'x-forwarded-for': from }
    return (await fetch(url, { redirect: 'manual', headers })).status
  }
  const statuses: number[] = []
  for (const host of hosts) {
    for (let n = 0; n < 10; n++) statuses.push(await ask('198.51.100.7', `${host.url}/n${n}`))
  }
  t.equal(hosts.flatMap(({ seen }) => seen).length, 30)
  t.same(
    statuses.slice(30),
    Array.from({ length: 10 }, () => 503),
  )
  t.equal(await ask('198.51.100.8', `${hosts[3]?.url}/n`), 401, 'another host still gets a response')
})

t.test('cimd: with a list of hosts, only these hosts are accepted', async (t) => {
  const { rig, host, clientId } = await startDocumentHost(t, {}, { allowedHosts: ['clients.example'] })
  t.equal((await startLogin(rig, clientId)).status, 401)
  t.equal(host.seen.length, 0)
})
