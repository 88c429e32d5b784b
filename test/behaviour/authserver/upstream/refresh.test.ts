/** Refreshes that an upstream has answered: rotated tokens are kept even when a later step fails. */
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import type { UpstreamTokensRecord } from '../../../../runtime/authserver/model/records.ts'
import { makeState } from '../../../../runtime/authserver/storage/state.ts'
import { Sessions } from '../../../../runtime/authserver/tokens/sessions.ts'
import { OidcUpstream } from '../../../../runtime/authserver/upstream/oidc-upstream.ts'
import type { Upstream } from '../../../../runtime/authserver/upstream/upstream.ts'
import { UpstreamTokenStore } from '../../../../runtime/authserver/upstream/upstream-token-store.ts'
import { makeCaller, makeFetch, silentLog } from '../../../../runtime/net/index.ts'
import { OAuthClientError } from '../../../../runtime/oauth/index.ts'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { sha256, upstreamRowKey } from '../../../../runtime/authserver/model/identifiers.ts'

const hour = 3_600_000

/** A provider that rotates refresh tokens and accepts only the newest one. */
async function setup(t: Test) {
  let nowMs = Date.now()
  let serial = 0
  const pair = await generateKeyPair('ES256')
  const untrusted = await generateKeyPair('ES256')
  const self = { keysDown: false, forged: false, claims: { sub: 'u', oid: 'alice' } as JWTPayload }
  const host = await startLoopback(async ({ path, form }) => {
    if (path === '/.well-known/openid-configuration') {
      const at = (name: string): string => `${host.url}/${name}`
      const endpoints = { authorization_endpoint: at('a'), token_endpoint: at('t'), jwks_uri: at('k') }
      return { body: { issuer: host.url, ...endpoints } }
    }
    if (path === '/k') {
      if (self.keysDown) return { status: 503 }
      return {
        body: { keys: [{ ...(await exportJWK(pair.publicKey)), kid: '1', alg: 'ES256', use: 'sig' }] },
      }
    }
    if (form.get('refresh_token') !== `rt-${serial}`) return { status: 400, body: { error: 'invalid_grant' } }
    serial += 1
    const idToken = await new SignJWT({ ...self.claims, iss: host.url, aud: 'c' })
      .setProtectedHeader({ alg: 'ES256', kid: '1' })
      .setIssuedAt(Math.floor(nowMs / 1000))
      .setExpirationTime(Math.floor((nowMs + hour) / 1000))
      .sign(self.forged ? untrusted.privateKey : pair.privateKey)
    const tokens = { access_token: `at-${serial}`, refresh_token: `rt-${serial}`, id_token: idToken }
    return { body: { ...tokens, token_type: 'Bearer', expires_in: 3600 } }
  })
  const fetch = makeFetch({ timeoutMs: 5_000 })
  t.teardown(async () => {
    await fetch.close()
    await host.close()
  })
  const upstream = new OidcUpstream(
    {
      name: 'corp',
      type: 'oidc',
      issuerUrl: host.url,
      clientId: 'c',
      redirectUri: 'https://gateway.example/cb',
      scopes: ['openid'],
      additionalAuthorizationParams: {},
      subjectClaim: 'oid',
    },
    { fetch, now: () => nowMs, log: silentLog },
  )
  t.teardown(() => upstream.close())
  const first: UpstreamTokensRecord = {
    provider: 'corp',
    subject: 'alice',
    accessToken: 'at-0',
    refreshToken: 'rt-0',
    obtainedAtMs: nowMs,
    expiresAtMs: nowMs + hour,
  }
  return { self, upstream, first, pass: (ms: number) => void (nowMs += ms) }
}

/** Returns the error of a failed refresh. */
function failure(refresh: Promise<unknown>): Promise<string> {
  return refresh.then(
    () => 'none',
    (error: unknown) => (error instanceof OAuthClientError ? `${error.kind} ${error.error}` : String(error)),
  )
}

t.test('upstream refresh: rotated tokens are kept while the key set is unavailable', async (t) => {
  const { self, upstream, first, pass } = await setup(t)
  const fine = await upstream.refresh(first)
  t.match(fine, { accessToken: 'at-1', refreshToken: 'rt-1', idToken: /^ey/ })
  pass(2 * hour)
  self.keysDown = true
  const without = await upstream.refresh(fine)
  t.match(without, { accessToken: 'at-2', refreshToken: 'rt-2', idToken: fine.idToken, subject: 'alice' })
  self.keysDown = false
  pass(2 * hour)
  const again = await upstream.refresh(without)
  t.match(again, { accessToken: 'at-3', refreshToken: 'rt-3' })
  t.not(again.idToken, fine.idToken)
})

t.test('upstream refresh: an invalid ID token is dropped, and the tokens are kept', async (t) => {
  const { self, upstream, first } = await setup(t)
  const fine = await upstream.refresh(first)
  self.forged = true
  t.match(await upstream.refresh(fine), { accessToken: 'at-2', refreshToken: 'rt-2', idToken: fine.idToken })
})

t.test('upstream refresh: an ID token without the configured claim is checked by its sub', async (t) => {
  const { self, upstream, first } = await setup(t)
  const fine = await upstream.refresh(first)
  self.claims = { sub: 'u' }
  const next = await upstream.refresh(fine)
  t.match(next, { accessToken: 'at-2', refreshToken: 'rt-2', subject: 'alice' })
  self.claims = { sub: 'somebody-else' }
  t.equal(await failure(upstream.refresh(next)), 'refused invalid_grant')
})

t.test('upstream refresh: a token for another user is rejected', async (t) => {
  const { self, upstream, first } = await setup(t)
  self.claims = { sub: 'u', oid: 'mallory' }
  t.equal(await failure(upstream.refresh(first)), 'refused invalid_grant')
})

t.test(
  'upstream refresh: a rejection of the old token does not end tokens renewed in the meantime',
  async (t) => {
    let nowMs = Date.UTC(2026, 0, 1)
    const now = (): number => nowMs
    const secret = new Uint8Array(32)
    const state = makeState(makeMemoryStore({ now }), () => [secret])
    const sessions = new Sessions({ state, now })
    const tokens = (accessToken: string): UpstreamTokensRecord => ({
      provider: 'corp',
      subject: 's',
      accessToken,
      refreshToken: `refresh of ${accessToken}`,
      obtainedAtMs: nowMs,
      expiresAtMs: nowMs + hour,
    })
    const clientId = 'https://notes.example/client'
    const alice = { userId: 'alice', authTimeSec: 0 }
    const { sessionId, grantId } = await sessions.open({
      user: alice,
      clientId,
      obtained: [tokens('old')],
      endsAtMs: nowMs + 500 * hour,
    })
    let meanwhile = async (): Promise<void> => {}
    const upstream: Upstream = {
      name: 'corp',
      type: 'oidc',
      host: 'corp.example',
      issuer: undefined,
      origin: undefined,
      notReady: undefined,
      start: () => {},
      close: () => {},
      begin: async () => '',
      finish: async () => ({ tokens: tokens('x'), identity: { subject: 's', synthesized: false } }),
      async refresh() {
        await meanwhile()
        throw new OAuthClientError('refused', 'gone', { error: 'invalid_grant' })
      },
    }
    const events: string[] = []
    const store = new UpstreamTokenStore({
      upstreams: [upstream],
      primary: undefined,
      state,
      sessions,
      accountsUrl: 'https://i.example/oauth/accounts',
      now,
      log: silentLog,
      emit: ({ type }) => void events.push(type),
    })
    const claims = { tsid: sessionId, gid: sha256(grantId), client_id: clientId }
    const caller = makeCaller({ issuer: 'https://i.example', subject: 'alice', claims })
    nowMs += 2 * hour
    meanwhile = async () => void (await sessions.connect(sessionId, 'alice', tokens('new')))
    t.match(await store.get(caller), { accessToken: 'new' })
    t.ok(await state.rows.get(upstreamRowKey(sessionId, 'corp')))
    t.same(events, [])
    nowMs += 2 * hour
    meanwhile = async () => {}
    await t.rejects(store.get(caller), { code: 'UPSTREAM_TOKEN_MISSING' })
    t.equal(await sessions.get(sessionId), undefined, 'without a renewed token the session ends')
  },
)
