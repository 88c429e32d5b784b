/** The client primitives against a real OpenID provider: discovery, registration, code flow, refresh. */
import t from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import {
  authorizationUrl,
  codeGrant,
  discoverServer,
  isOurState,
  makeLoginSecrets,
  readAuthorizationCode,
  refreshGrant,
  registerClient,
  registeredClient,
  RemoteKeys,
  supportsS256,
  verifyIdToken,
} from '../../../runtime/oauth/index.ts'
import { startOidcProvider, walk } from '../../helpers/authserver/oidc-provider.ts'

const redirectUri = 'http://127.0.0.1:8666/callback'
const resource = 'https://mcp.example/mcp'

await t.test('code flow: discovery, registration, login with PKCE, tokens, ID token, refresh', async (t) => {
  const idp = await startOidcProvider({ resources: { [resource]: {} } })
  const fetch = makeFetch()
  t.teardown(async () => {
    await fetch.close()
    await idp.close()
  })
  const server = await discoverServer(idp.issuer, { fetch, need: 'registration_endpoint' })
  t.equal(server.issuer, idp.issuer)
  t.ok(supportsS256(server))
  const registration = await registerClient(
    server.registration_endpoint ?? '',
    {
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      application_type: 'native',
    },
    { fetch },
  )
  t.same(JSON.parse(JSON.stringify(registration)).clientId, registration.clientId, 'survives storage as JSON')
  const client = registeredClient(registration)
  const secrets = makeLoginSecrets()
  const url = authorizationUrl({
    endpoint: server.authorization_endpoint ?? '',
    clientId: client.clientId,
    redirectUri,
    scopes: ['openid', 'read', 'offline_access'],
    state: secrets.state,
    codeChallenge: secrets.codeChallenge,
    nonce: secrets.nonce,
    resource,
  })
  const back = await walk(url, redirectUri)
  t.ok(isOurState(back.searchParams, secrets.state))
  t.notOk(isOurState(back.searchParams, 'another'))
  const code = readAuthorizationCode(back.searchParams, server)
  const tokens = await codeGrant({
    server,
    client,
    fetch,
    code,
    redirectUri,
    codeVerifier: secrets.codeVerifier,
    resource,
    now: () => 0,
  })
  t.equal(tokens.tokenType, 'bearer')
  t.equal(tokens.expiresAt, 3_600_000)
  const keys = new RemoteKeys({ fetch, locate: async () => server.jwks_uri ?? '' })
  const claims = await verifyIdToken(tokens.idToken ?? '', {
    keys,
    issuer: idp.issuer,
    clientId: client.clientId,
    nonce: secrets.nonce,
    accessToken: tokens.accessToken,
  })
  t.equal(claims.sub, 'alice')
  await t.rejects(
    verifyIdToken(tokens.idToken ?? '', { keys, issuer: idp.issuer, clientId: client.clientId, nonce: 'x' }),
    { name: 'TokenRefused', reason: 'claims' },
    'a foreign nonce is rejected',
  )
  const renewed = await refreshGrant({
    server,
    client,
    fetch,
    refreshToken: tokens.refreshToken ?? '',
    resource,
  })
  t.not(renewed.accessToken, tokens.accessToken)
  t.ok(renewed.refreshToken)
  await t.rejects(
    codeGrant({ server, client, fetch, code, redirectUri, codeVerifier: secrets.codeVerifier }),
    { name: 'OAuthClientError', kind: 'refused', error: 'invalid_grant' },
    'a used code is an OAuth error',
  )
})
