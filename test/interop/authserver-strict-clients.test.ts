/** Runs strict OAuth and OpenID Connect clients in their strictest settings, except for http on loopback. */
import * as oauth from 'oauth4webapi'
import * as oidc from 'openid-client'
import t from 'tap'
import { redirectUri, type Rig, startAuthServer } from '../helpers/authserver/authserver.ts'
import { Browser } from '../helpers/authserver/cookie-browser.ts'
import { proves } from '../helpers/proves.ts'

proves(
  '2.endpoint.discovery',
  '2.endpoint.register',
  '2.endpoint.token',
  '2.endpoint.jwks',
  '2.endpoint.authorize',
)

const insecure = { [oauth.allowInsecureRequests]: true } as const

/** Simulates a user at the client's authorization URL. */
async function person(url: URL, target = redirectUri): Promise<URL> {
  const browser = new Browser()
  const page = await browser.open(url, target)
  return page.status === 200 ? (await browser.press(page, 'approve', target)).url : page.url
}

/** Returns the rejection reason of a promise. */
async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'it succeeded',
    (error: unknown) => error,
  )
}

async function discover(rig: Rig, algorithm: 'oauth2' | 'oidc'): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(rig.issuer)
  return oauth.processDiscoveryResponse(
    issuer,
    await oauth.discoveryRequest(issuer, { algorithm, ...insecure }),
  )
}

t.test(
  'oauth4webapi: RFC 8414, 7591, 7636, 9207, 8707, 6749, 7009, 7662 and OIDC, from discovery to revocation',
  async (t) => {
    const rig = await startAuthServer(t, {
      config: { registration: { enabled: true, confidentialClients: true } },
    })
    t.ok(await discover(rig, 'oauth2'))
    const as = await discover(rig, 'oidc')
    for (const method of ['client_secret_basic', 'client_secret_post', 'none'] as const) {
      const registered = await oauth.processDynamicClientRegistrationResponse(
        await oauth.dynamicClientRegistrationRequest(
          as,
          {
            redirect_uris: [redirectUri],
            client_name: method,
            token_endpoint_auth_method: method,
            application_type: 'native',
          },
          insecure,
        ),
      )
      const client: oauth.Client = {
        client_id: registered.client_id,
        id_token_signed_response_alg: 'ES256',
        require_auth_time: true,
      }
      const secret = typeof registered['client_secret'] === 'string' ? registered['client_secret'] : ''
      const auth = {
        client_secret_basic: () => oauth.ClientSecretBasic(secret),
        client_secret_post: () => oauth.ClientSecretPost(secret),
        none: () => oauth.None(),
      }[method]()

      const verifier = oauth.generateRandomCodeVerifier()
      const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomNonce()]
      const url = new URL(as.authorization_endpoint ?? '')
      for (const [name, value] of Object.entries({
        client_id: client.client_id,
        redirect_uri: redirectUri,
        response_type: 'code',
        scope: 'openid email offline_access',
        resource: rig.resource,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
        nonce,
      })) {
        url.searchParams.set(name, value)
      }
      const params = oauth.validateAuthResponse(as, client, await person(url), state)
      const response = await oauth.authorizationCodeGrantRequest(
        as,
        client,
        auth,
        params,
        redirectUri,
        verifier,
        {
          ...insecure,
          additionalParameters: { resource: rig.resource },
        },
      )
      const tokens = await oauth.processAuthorizationCodeResponse(as, client, response, {
        expectedNonce: nonce,
        requireIdToken: true,
        maxAge: 600,
      })
      await oauth.validateApplicationLevelSignature(as, response, insecure)
      const sub = oauth.getValidatedIdTokenClaims(tokens)?.sub ?? ''

      const info = await oauth.processUserInfoResponse(
        as,
        client,
        sub,
        await oauth.userInfoRequest(as, client, tokens.access_token, insecure),
      )
      t.equal(info.email, 'alice@example.test')

      const claims = await oauth.validateJwtAccessToken(
        as,
        new Request(rig.resource, { headers: { authorization: `Bearer ${tokens.access_token}` } }),
        rig.resource,
        insecure,
      )
      t.match(claims, { sub, client_id: client.client_id, scope: 'openid email offline_access' }, 'RFC 9068')

      const refreshed = await oauth.processRefreshTokenResponse(
        as,
        client,
        await oauth.refreshTokenGrantRequest(as, client, auth, tokens.refresh_token ?? '', insecure),
      )
      t.not(refreshed.refresh_token, tokens.refresh_token)

      if (method !== 'none') {
        const about = await oauth.processIntrospectionResponse(
          as,
          client,
          await oauth.introspectionRequest(as, client, auth, refreshed.access_token, insecure),
        )
        t.match(about, { active: true, client_id: client.client_id })
      }
      await oauth.processRevocationResponse(
        await oauth.revocationRequest(as, client, auth, refreshed.refresh_token ?? '', insecure),
      )
      const dead = await oauth.refreshTokenGrantRequest(
        as,
        client,
        auth,
        refreshed.refresh_token ?? '',
        insecure,
      )
      t.match(await failure(oauth.processRefreshTokenResponse(as, client, dead)), { error: 'invalid_grant' })
    }
  },
)

t.test('oauth4webapi: an error redirect is a valid error response', async (t) => {
  const rig = await startAuthServer(t)
  const as = await discover(rig, 'oauth2')
  const { client_id: id } = await oauth.processDynamicClientRegistrationResponse(
    await oauth.dynamicClientRegistrationRequest(as, { redirect_uris: [redirectUri] }, insecure),
  )
  const url = new URL(as.authorization_endpoint ?? '')
  for (const [name, value] of Object.entries({
    client_id: id,
    redirect_uri: redirectUri,
    response_type: 'code',
    state: 's',
  }))
    url.searchParams.set(name, value)
  const back = await person(url)
  const validating = (async () => oauth.validateAuthResponse(as, { client_id: id }, back, 's'))()
  t.match(await failure(validating), { error: 'invalid_request' })
})

t.test(
  'openid-client: discovery, registration, code flow with every check, refresh, userinfo, revocation',
  async (t) => {
    const rig = await startAuthServer(t)
    const config = await oidc.dynamicClientRegistration(
      new URL(rig.issuer),
      {
        redirect_uris: [redirectUri],
        client_name: 'openid-client',
        token_endpoint_auth_method: 'none',
        id_token_signed_response_alg: 'ES256',
      },
      oidc.None(),
      { execute: [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks] },
    )
    const pkceCodeVerifier = oidc.randomPKCECodeVerifier()
    const [expectedState, expectedNonce] = [oidc.randomState(), oidc.randomNonce()]
    const url = oidc.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: 'openid profile offline_access',
      code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
      resource: rig.resource,
      state: expectedState,
      nonce: expectedNonce,
      max_age: '900',
    })
    const tokens = await oidc.authorizationCodeGrant(
      config,
      await person(url),
      { pkceCodeVerifier, expectedState, expectedNonce, idTokenExpected: true, maxAge: 900 },
      { resource: rig.resource },
    )
    const sub = tokens.claims()?.sub ?? ''
    t.match(await oidc.fetchUserInfo(config, tokens.access_token, sub), { sub, name: 'Alice Example' })
    const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token ?? '')
    t.equal(refreshed.claims()?.sub, sub)
    await oidc.tokenRevocation(config, refreshed.access_token)
    t.match(await failure(oidc.refreshTokenGrant(config, refreshed.refresh_token ?? '')), {
      error: 'invalid_grant',
    })
  },
)

for (const method of ['client_secret_basic', 'client_secret_post'] as const) {
  t.test(`openid-client, ${method}: registration, code, refresh, introspection, revocation`, async (t) => {
    const rig = await startAuthServer(t, {
      config: { registration: { enabled: true, confidentialClients: true } },
    })
    const config = await oidc.dynamicClientRegistration(
      new URL(rig.issuer),
      {
        redirect_uris: [redirectUri],
        client_name: 'openid-client',
        token_endpoint_auth_method: method,
        id_token_signed_response_alg: 'ES256',
      },
      method === 'client_secret_basic' ? oidc.ClientSecretBasic() : oidc.ClientSecretPost(),
      {
        execute: [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks],
        algorithm: 'oidc',
      },
    )
    const pkceCodeVerifier = oidc.randomPKCECodeVerifier()
    const [expectedState, expectedNonce] = [oidc.randomState(), oidc.randomNonce()]
    const url = oidc.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: 'openid email offline_access',
      code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
      resource: rig.resource,
      state: expectedState,
      nonce: expectedNonce,
    })
    const tokens = await oidc.authorizationCodeGrant(
      config,
      await person(url),
      { pkceCodeVerifier, expectedState, expectedNonce, idTokenExpected: true },
      { resource: rig.resource },
    )
    const clientId = config.clientMetadata().client_id
    const sub = tokens.claims()?.sub
    t.match(await oidc.tokenIntrospection(config, tokens.access_token), {
      active: true,
      client_id: clientId,
      sub,
      aud: [rig.resource],
      iss: rig.issuer,
      token_type: 'Bearer',
    })
    const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token ?? '')
    t.match(await oidc.tokenIntrospection(config, refreshed.refresh_token ?? ''), { active: true, sub })
    await oidc.tokenRevocation(config, refreshed.refresh_token ?? '', { token_type_hint: 'refresh_token' })
    for (const token of [refreshed.access_token, refreshed.refresh_token ?? '']) {
      t.same(await oidc.tokenIntrospection(config, token), { active: false })
    }
  })
}

t.test('strict clients: both accept every signing algorithm', async (t) => {
  const { generateKeyPairSync } = await import('node:crypto')
  const pem = (key: { export(options: { type: 'pkcs8'; format: 'pem' }): string | Buffer }): string =>
    key.export({ type: 'pkcs8', format: 'pem' }).toString()
  const keys = {
    RS256: pem(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
    ES384: pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey),
    EdDSA: pem(generateKeyPairSync('ed25519').privateKey),
  }
  for (const [alg, key] of Object.entries(keys)) {
    const rig = await startAuthServer(t, {
      config: { secrets: () => ({ signingKeys: [key], hmacSecrets: [] }) },
    })
    const as = await discover(rig, 'oidc')
    t.same(as.id_token_signing_alg_values_supported, [alg])
    const { client_id: id } = await oauth.processDynamicClientRegistrationResponse(
      await oauth.dynamicClientRegistrationRequest(as, { redirect_uris: [redirectUri] }, insecure),
    )
    const client: oauth.Client = { client_id: id, id_token_signed_response_alg: alg }
    const verifier = oauth.generateRandomCodeVerifier()
    const url = new URL(as.authorization_endpoint ?? '')
    const challenge = await oauth.calculatePKCECodeChallenge(verifier)
    for (const [name, value] of Object.entries({
      client_id: id,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    })) {
      url.searchParams.set(name, value)
    }
    const params = oauth.validateAuthResponse(as, client, await person(url), oauth.expectNoState)
    const response = await oauth.authorizationCodeGrantRequest(
      as,
      client,
      oauth.None(),
      params,
      redirectUri,
      verifier,
      insecure,
    )
    const tokens = await oauth.processAuthorizationCodeResponse(as, client, response, {
      requireIdToken: true,
    })
    await oauth.validateApplicationLevelSignature(as, response, insecure)
    const request = new Request(rig.resource, { headers: { authorization: `Bearer ${tokens.access_token}` } })
    t.match(await oauth.validateJwtAccessToken(as, request, rig.resource, insecure), { client_id: id }, alg)
  }
})
