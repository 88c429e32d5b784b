/**
 * Requirements of an embedded authorization server for its host: matching settings, and rejection of revoked grants.
 */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import t from 'tap'
import { makeAuthenticator, pairingViolations } from '../../../runtime/incoming/index.ts'
import { localKeys } from '../../../runtime/oauth/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'

const issuer = 'https://gate.example'
const audience = 'https://gate.example/mcp'

t.test("pairing: issuer, audience and resource must match those of the server's tokens", (t) => {
  const server = { issuer, allowedAudiences: [audience] }
  t.same(pairingViolations(server, { issuer, audience }, 'oidc'), [])
  t.same(pairingViolations(server, { issuer, audience, resource: audience }, 'oidc'), [])
  const violations = pairingViolations(
    server,
    { issuer: 'https://other.example', audience: 'https://other.example/mcp', resource: audience },
    'oidc',
  )
  t.match(violations, [
    /^oidc\.issuer: must be/,
    /^oidc\.audience: must be one of/,
    /^oidc\.resource: must equal/,
  ])
  t.end()
})

t.test(
  'isLive: a valid token of a revoked grant gets the challenge, and a failed lookup is passed on',
  async (t) => {
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' }
    const token = await new SignJWT({ sub: 'alice' })
      .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: 'at+jwt' })
      .setIssuer(issuer)
      .setAudience(audience)
      .setExpirationTime('1h')
      .sign(privateKey)
    let live: boolean | Error = true
    const authenticator = makeAuthenticator(
      { type: 'oidc', oidc: { issuer, audience } },
      {
        keys: localKeys(() => ({ keys: [jwk] })),
        isLive: async ({ subject }) => {
          if (live instanceof Error) throw live
          return live && subject === 'alice'
        },
      },
    )
    t.teardown(() => authenticator.close())
    const ask = async () => authenticator.authenticate(`Bearer ${token}`)
    t.equal((await ask()).subject, 'alice')
    live = false
    // The token itself is cached as valid, but the grant is checked each time.
    await t.rejects(ask(), {
      code: 'INVALID_TOKEN',
      status: 401,
      headers: { 'www-authenticate': /resource_metadata=.*error="invalid_token"/ },
    })
    live = new GatehouseError('STORE_DOWN')
    await t.rejects(ask(), { code: 'STORE_DOWN', status: 503 })
  },
)
