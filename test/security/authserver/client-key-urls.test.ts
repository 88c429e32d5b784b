/** Clients' keys at a URL: rotation, and attacks by a hostile host or client. */
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { takePermission } from '../../../runtime/authserver/storage/limits.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import { refusal, type Rig, startAuthServer } from '../../helpers/authserver/authserver.ts'
import {
  assertionType,
  declared,
  makeKey,
  requestWithAssertion,
  signAssertion,
  type TestKey,
} from '../../helpers/authserver/declared-client.ts'
import { clientDocument, startDocumentHost } from '../../helpers/authserver/document-host.ts'
import { type Loopback, type PeerResponse, startLoopback } from '../../helpers/loopback.ts'

const key = await makeKey()
const next = await makeKey()

interface KeyHost {
  readonly rig: Rig
  readonly host: Loopback
  response: PeerResponse
  ask(by?: TestKey): Promise<string>
}

const setOf = (...keys: readonly TestKey[]): PeerResponse => ({
  body: { keys: keys.map(({ jwk }) => jwk) },
})

/** A server with one client whose keys are on a loopback host. */
async function start(t: Test): Promise<KeyHost> {
  const host = await startLoopback(() => self.response)
  t.teardown(() => host.close())
  const rig = await startAuthServer(t, {
    // Limits use the clock of the store, which stands still; caches use that of the server.
    store: makeMemoryStore({ now: () => 0 }),
    config: (issuer) => ({
      upstreams: [],
      cimd: { cacheMaxSize: 10, cacheTtlMs: 300_000, allowLoopback: true },
      clients: [declared('signer', [`${issuer}/mcp`], { jwksUri: `${host.url}/jwks` })],
    }),
  })
  const self: KeyHost = {
    rig,
    host,
    response: setOf(key),
    async ask(by = key) {
      const assertion = await signAssertion(by, {
        clientId: 'signer',
        issuer: rig.issuer,
        nowMs: rig.now(),
      })
      const response = await requestWithAssertion(rig, assertion)
      return response.status === 200 ? '200' : refusal(response)
    },
  }
  return self
}

t.test('keys are fetched once and shared by simultaneous requests', async (t) => {
  const self = await start(t)
  t.strictSame(await Promise.all(Array.from({ length: 8 }, () => self.ask())), Array(8).fill('200'))
  t.equal(self.host.seen.length, 1)
  self.rig.pass(500_000)
  t.equal(await self.ask(), '200')
  t.equal(self.host.seen.length, 1)
  self.rig.pass(101_000)
  t.equal(await self.ask(), '200')
  t.equal(self.host.seen.length, 2, 'and again after ten minutes')
})

t.test('a new key works at once, and an unknown key causes one fetch in 30 seconds', async (t) => {
  const self = await start(t)
  t.equal(await self.ask(), '200')
  t.equal(await self.ask(next), '401 invalid_client')
  t.equal(self.host.seen.length, 1, 'the set is younger than 30 s')
  self.response = setOf(key, next)
  self.rig.pass(31_000)
  t.equal(await self.ask(next), '200')
  t.equal(await self.ask(), '200')
  t.equal(self.host.seen.length, 2)
  self.rig.pass(31_000)
  const stranger = await makeKey()
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => self.ask(stranger)))
  t.strictSame(outcomes, Array(20).fill('401 invalid_client'))
  t.equal(self.host.seen.length, 3)
})

t.test('a removed key is rejected after ten minutes', async (t) => {
  const self = await start(t)
  t.equal(await self.ask(), '200')
  self.response = setOf(next)
  self.rig.pass(601_000)
  t.equal(await self.ask(), '401 invalid_client')
})

t.test('old keys are used for an hour while the host does not respond', async (t) => {
  const self = await start(t)
  t.equal(await self.ask(), '200')
  self.response = { status: 502, body: 'down' }
  self.rig.pass(601_000)
  t.equal(await self.ask(), '200')
  t.equal(await self.ask(), '200')
  t.equal(self.host.seen.length, 2, 'a failed fetch is not repeated for 30 s')
  self.rig.pass(3_000_000)
  t.equal(await self.ask(), '503 temporarily_unavailable')
  self.response = setOf(key)
  self.rig.pass(31_000)
  t.equal(await self.ask(), '200')
})

t.test('old keys are not used when the host no longer publishes them', async (t) => {
  for (const response of [{ status: 404, body: {} }, { body: { keys: [] } }]) {
    const self = await start(t)
    t.equal(await self.ask(), '200')
    self.response = response
    self.rig.pass(601_000)
    t.equal(await self.ask(), '401 invalid_client')
    t.equal(await self.ask(), '401 invalid_client')
    t.equal(self.host.seen.length, 2)
  }
})

t.test('a redirect, a large set and a set without usable keys are rejected', async (t) => {
  const target = await startLoopback(() => setOf(key))
  t.teardown(() => target.close())
  const huge = { keys: [key.jwk], padding: 'x'.repeat(70_000) }
  const rows: readonly (readonly [string, PeerResponse, string])[] = [
    ['redirect', { status: 302, headers: { location: `${target.url}/jwks` } }, '401 invalid_client'],
    ['not found', { status: 404, body: {} }, '401 invalid_client'],
    ['a page', { body: '<html>' }, '401 invalid_client'],
    ['no keys', { body: { keys: [] } }, '401 invalid_client'],
    ['a symmetric key', { body: { keys: [{ kty: 'oct', k: 'AAAA' }] } }, '401 invalid_client'],
    ['a key for encryption', { body: { keys: [{ ...key.jwk, use: 'enc' }] } }, '401 invalid_client'],
    ['a private key', { body: { keys: [{ ...key.jwk, d: 'AAAA' }] } }, '401 invalid_client'],
    ['more than 64 KiB', { body: huge }, '401 invalid_client'],
    ['no response', 'cut', '503 temporarily_unavailable'],
  ]
  for (const [name, response, outcome] of rows) {
    const self = await start(t)
    self.response = response
    t.equal(await self.ask(), outcome, name)
    t.equal(self.host.seen.length, 1, name)
    t.equal(await self.ask(), outcome, `${name}, again`)
    t.equal(self.host.seen.length, 1, 'the failure is kept for 30 s')
  }
  t.equal(target.seen.length, 0)
})

t.test('a set with one unusable key keeps the others', async (t) => {
  const self = await start(t)
  self.response = { body: { keys: [{ kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }, 'text', key.jwk] } }
  t.equal(await self.ask(), '200')
})

t.test('clients with documents cannot use up the fetches of declared clients', async (t) => {
  const self = await start(t)
  for (let taken = 0; taken < 300; taken++)
    await takePermission(self.rig.store, 'document', { caller: undefined, host: '127.0.0.1' })
  t.equal(await self.ask(), '200')
})

t.test('the keys of clients with documents are fetched within the limits of documents', async (t) => {
  const self = await startDocumentHost(t)
  const { rig, host, clientId } = self
  const members = { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: `${host.url}/jwks` }
  self.response = (path) =>
    path === '/jwks' ? { status: 404, body: {} } : { body: clientDocument(clientId, members) }
  const outcomes: string[] = []
  for (let attempt = 0; attempt < 11; attempt++) {
    const assertion = await signAssertion(key, { clientId, issuer: rig.issuer, nowMs: rig.now() })
    const grant = { grant_type: 'refresh_token', refresh_token: 'unknown' }
    outcomes.push(await refusal(await requestWithAssertion(rig, assertion, grant)))
    rig.pass(31_000)
  }
  t.strictSame(outcomes, [...Array(10).fill('401 invalid_client'), '503 temporarily_unavailable'])
  t.equal(host.seen.filter(({ path }) => path === '/jwks').length, 10)
})

t.test('assertions of clients with documents are limited per address', async (t) => {
  const self = await startDocumentHost(t, { trustedProxies: ['127.0.0.1/32'] })
  const { rig, clientId } = self
  const members = { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key.jwk] } }
  self.response = () => ({ body: clientDocument(clientId, members) })
  for (let taken = 0; taken < 600; taken++)
    await takePermission(rig.store, 'describedAssertion', { caller: '203.0.113.1', host: 'another client' })
  const ask = async (address: string): Promise<string> => {
    const assertion = await signAssertion(key, { clientId, issuer: rig.issuer, nowMs: rig.now() })
    const response = await fetch(`${rig.issuer}/oauth/token`, {
      method: 'POST',
      headers: { 'x-forwarded-for': address },
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: 'unknown',
        client_assertion_type: assertionType,
        client_assertion: assertion,
      }),
    })
    return refusal(response)
  }
  t.equal(await ask('203.0.113.1'), '429 temporarily_unavailable')
  t.equal(await ask('203.0.113.2'), '400 invalid_grant')
})

t.test('private addresses are never dialed', async (t) => {
  let connections = 0
  const victim = createServer((_req, res) => res.end('{}'))
  victim.on('connection', () => (connections += 1))
  await new Promise<void>((resolve) => victim.listen(0, '127.0.0.1', resolve))
  t.teardown(() => victim.close())
  const address = victim.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const urls = [
    `https://127.0.0.1:${port}/jwks`,
    `https://localhost:${port}/jwks`,
    `https://2130706433:${port}/jwks`,
    `https://[::ffff:127.0.0.1]:${port}/jwks`,
    'https://169.254.169.254/latest/meta-data',
    'https://10.0.0.1/jwks',
    'https://[fd00::1]/jwks',
  ]
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      clients: urls.map((jwksUri, index) => declared(`signer-${index}`, [`${issuer}/mcp`], { jwksUri })),
    }),
  })
  for (const [index, url] of urls.entries()) {
    const assertion = await signAssertion(key, { clientId: `signer-${index}`, issuer: rig.issuer })
    t.equal(await refusal(await requestWithAssertion(rig, assertion)), '401 invalid_client', url)
    t.match(rig.events.at(-1), { reason: "the client's keys cannot be read" })
  }
  t.equal(connections, 0)
})
