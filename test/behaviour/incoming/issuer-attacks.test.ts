/** Tokens that try to pass for another principal, another issuer or an access token. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import t from 'tap'
import { refusal, serverOf, startThree } from '../../helpers/authserver/several-issuers.ts'
import { startLoopback } from '../../helpers/loopback.ts'

await t.test('a group of the first issuer cannot imitate a group of another one', async (t) => {
  const { a, first, second, third } = await startThree(t)
  const server = serverOf(t, {
    oidc: first,
    issuers: [
      { ...second, groupPrefix: 'ci/' },
      { ...third, groupPrefix: '' },
    ],
    groupClaims: ['realm_access.roles'],
  })
  const claims = {
    groups: ['ci/admins', 'admins', ['ci/nested']],
    roles: 'ci/admin',
    realm_access: { roles: ['ci/owner', 'owner'] },
    team: ['ci/blue'],
  }
  t.match((await server.caller(await a.token('alice', claims))).claims, {
    groups: ['admins', []],
    roles: '',
    realm_access: { roles: ['owner'] },
    team: ['ci/blue'],
  })
})

await t.test('a subject cannot imitate another principal', async (t) => {
  const { a, b, c, first, second, third } = await startThree(t)
  const server = serverOf(t, { oidc: first, issuers: [{ ...second, subjectPrefix: 'ci:' }, third] })
  t.equal(await refusal(server, await a.token('ci:alice')), 'INVALID_TOKEN subject')
  t.equal(await refusal(server, await a.token(`${c.issuer}#alice`)), 'INVALID_TOKEN subject')
  const imitations = ['client:ci', `${c.issuer}#alice`, '#', 'ci:alice']
  for (const sub of imitations) {
    t.match(await server.caller(await b.token(sub)), { subject: `ci:${sub}` })
    t.match(await server.caller(await c.token(sub)), { subject: `${c.issuer}#${sub}` })
  }
  t.equal(await refusal(server, await b.token('')), 'INVALID_TOKEN claims')
})

await t.test('ID tokens, ID-JAGs and DPoP proofs are not access tokens', async (t) => {
  const { first, second } = await startThree(t)
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const set = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256', use: 'sig' }] }
  const host = await startLoopback(() => ({ body: set }))
  t.teardown(() => host.close())
  const oidc = { issuer: 'https://idp.example', audience: 'me', jwksUrl: `${host.url}/keys` }
  const sign = (typ: string | undefined, claims: Record<string, unknown> = {}) =>
    new SignJWT({ iss: oidc.issuer, aud: 'me', sub: 'alice', ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'k', ...(typ === undefined ? {} : { typ }) })
      .setExpirationTime('5m')
      .sign(privateKey)
  const rows: readonly (readonly [Promise<string>, string])[] = [
    [sign('JWT', { at_hash: 'x' }), 'id_token'],
    [sign(undefined, { c_hash: 'x' }), 'id_token'],
    [sign('oauth-id-jag+jwt'), 'type'],
    [sign('application/oauth-id-jag+jwt'), 'type'],
    [sign('dpop+jwt', { htm: 'POST', htu: 'https://me.example', jti: 'j' }), 'type'],
    [sign('client-authentication+jwt'), 'type'],
    [sign('logout+jwt'), 'type'],
  ]
  for (const config of [{ oidc }, { oidc: first, issuers: [second, oidc] }]) {
    const server = serverOf(t, config)
    for (const [token, reason] of rows) t.equal(await refusal(server, await token), `INVALID_TOKEN ${reason}`)
    for (const typ of ['at+jwt', 'JWT', 'application/at+jwt', undefined])
      t.ok(await server.caller(await sign(typ)))
  }
})
