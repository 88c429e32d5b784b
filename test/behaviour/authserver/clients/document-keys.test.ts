/** Clients whose metadata document declares private_key_jwt: they authenticate with their keys, for the whole grant. */
import * as openid from 'openid-client'
import t from 'tap'
import {
  listenFor,
  login,
  redeem,
  redirectUri,
  refresh,
  refusal,
  tokenRequest,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import {
  assertionType,
  makeKey,
  signAssertion,
  type TestKey,
} from '../../../helpers/authserver/declared-client.ts'
import {
  clientDocument,
  type DocumentHost,
  startDocumentHost,
} from '../../../helpers/authserver/document-host.ts'

const key = await makeKey()
const other = await makeKey()

const inline = (...keys: readonly TestKey[]) => ({
  token_endpoint_auth_method: 'private_key_jwt',
  token_endpoint_auth_methods_supported: ['private_key_jwt', 'none'],
  jwks: { keys: keys.map(({ jwk }) => jwk) },
})

/** Members of a token request that authenticate the client with a key. */
async function proof({ rig, clientId }: DocumentHost, by = key): Promise<Record<string, string>> {
  const assertion = await signAssertion(by, { clientId, issuer: rig.issuer, nowMs: rig.now() })
  return { client_assertion: assertion, client_assertion_type: assertionType }
}

async function start(t: Parameters<typeof startDocumentHost>[0], members: object): Promise<DocumentHost> {
  const self = await startDocumentHost(t)
  self.response = () => ({ body: clientDocument(self.clientId, members) })
  return self
}

t.test('code and refresh token require an assertion, and a rejected request consumes neither', async (t) => {
  const self = await start(t, inline(key))
  const { rig, clientId } = self
  const done = await login(rig, { client_id: clientId })
  const rejected = [
    await redeem(rig, done),
    await redeem(rig, done, { client_secret: 'guess' }),
    await redeem(rig, done, await proof(self, other)),
  ]
  for (const response of rejected) t.equal(await refusal(response), '401 invalid_client')
  t.match(
    rig.events.filter(({ type }) => type === 'client_rejected'),
    [
      { clientId: /^127\.0\.0\.1/, reason: 'the grant requires the private_key_jwt authentication method' },
      { reason: 'wrong authentication method' },
      { reason: "none of the client's keys matches the assertion" },
    ],
  )
  const tokens = await tokensOf(await redeem(rig, done, await proof(self)))
  t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '401 invalid_client')
  const renewed = await refresh(rig, clientId, tokens.refresh_token, await proof(self))
  t.match(await tokensOf(renewed), { refresh_token: /^gh_rt_/ })
  const form = { token: tokens.refresh_token, client_id: clientId }
  const revoke = async (more: object) =>
    fetch(`${rig.issuer}/oauth/revoke`, {
      method: 'POST',
      body: new URLSearchParams({ ...form, ...more }),
    })
  t.equal(await refusal(await revoke({})), '401 invalid_client', 'revocation needs an assertion, too')
  t.equal((await revoke(await proof(self))).status, 200)
})

t.test('openid-client completes a login with its key', async (t) => {
  const self = await start(t, inline(key))
  const { rig, clientId } = self
  const client = await openid.discovery(
    new URL(rig.issuer),
    clientId,
    undefined,
    openid.PrivateKeyJwt({ key: key.privateKey, kid: key.jwk.kid }),
    { execute: [openid.allowInsecureRequests] },
  )
  t.match(client.serverMetadata(), {
    token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
    token_endpoint_auth_signing_alg_values_supported: ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'],
  })
  const done = await login(rig, { client_id: clientId, scope: 'offline_access' })
  const tokens = await openid.genericGrantRequest(client, 'authorization_code', {
    code: done.code,
    code_verifier: done.verifier,
    redirect_uri: redirectUri,
  })
  const renewed = await openid.refreshTokenGrant(client, tokens.refresh_token ?? '')
  t.equal((await openid.tokenIntrospection(client, renewed.access_token)).active, true)
})

t.test('a document that drops its keys does not weaken earlier grants', async (t) => {
  const self = await start(t, inline(key))
  const { rig, clientId } = self
  const done = await login(rig, { client_id: clientId })
  const tokens = await tokensOf(await redeem(rig, done, await proof(self)))
  self.response = () => ({ body: clientDocument(clientId) })
  rig.pass(300_000)
  t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '401 invalid_client')
  const dropped = await refresh(rig, clientId, tokens.refresh_token, await proof(self))
  t.equal(await refusal(dropped), '401 invalid_client', 'the key is no longer declared')
  const again = await login(rig, { client_id: clientId })
  t.equal((await redeem(rig, again)).status, 200, 'a new login has the new method')
})

t.test('a document with a replaced key is read again after its cache lifetime', async (t) => {
  const self = await start(t, inline(key))
  const { rig, clientId } = self
  const done = await login(rig, { client_id: clientId })
  const tokens = await tokensOf(await redeem(rig, done, await proof(self)))
  self.response = () => ({ body: clientDocument(clientId, inline(other)) })
  rig.pass(300_000)
  const old = await refresh(rig, clientId, tokens.refresh_token, await proof(self))
  t.equal(await refusal(old), '401 invalid_client')
  t.equal((await refresh(rig, clientId, tokens.refresh_token, await proof(self, other))).status, 200)
})

t.test('an unresponsive host causes 503, and a missing document invalid_client', async (t) => {
  const self = await start(t, inline(key))
  const { rig, clientId } = self
  const done = await login(rig, { client_id: clientId })
  self.response = () => ({ status: 500, body: {} })
  rig.pass(300_000)
  t.equal((await redeem(rig, done, await proof(self))).status, 200, 'a copy from the last day is used')
  const form = { grant_type: 'refresh_token', refresh_token: 'x' }
  const fresh = await rig.replica()
  const second = await listenFor(t, fresh)
  const down = await tokenRequest(second, { ...form, client_id: clientId, ...(await proof(self)) })
  t.equal(await refusal(down), '503 temporarily_unavailable')
  self.response = () => ({ status: 404, body: {} })
  fresh.pass(60_000)
  const gone = await tokenRequest(second, { ...form, client_id: clientId, ...(await proof(self)) })
  t.equal(await refusal(gone), '401 invalid_client')
})

t.test('an assertion that cannot be accepted causes no fetch of the document', async (t) => {
  const self = await start(t, inline(key))
  const { rig, clientId, host } = self
  for (const header of [{ jku: 'https://keys.example/jwks' }, { typ: 'at+jwt' }]) {
    const assertion = await signAssertion(key, { clientId, issuer: rig.issuer }, { header })
    const form = { grant_type: 'refresh_token', refresh_token: 'x', client_id: clientId }
    const response = await tokenRequest(rig, {
      ...form,
      client_assertion: assertion,
      client_assertion_type: assertionType,
    })
    t.equal(await refusal(response), '401 invalid_client')
  }
  t.equal(host.seen.length, 0)
})

t.test('a client with a document cannot get a token for itself', async (t) => {
  const self = await start(t, inline(key))
  const { rig, clientId } = self
  const form = { grant_type: 'client_credentials', client_id: clientId, ...(await proof(self)) }
  t.equal(await refusal(await tokenRequest(rig, form)), '400 unsupported_grant_type')
})
