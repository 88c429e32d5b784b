/**
 * Each identity provider as an upstream of the embedded authorization server: login, the token for a call, renewal of
 * an expired token, a temporary failure, and a revoked login.
 */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import type { AuthServerConfig } from '../../../../runtime/config/index.ts'
import { type Caller, makeCaller } from '../../../../runtime/net/index.ts'
import { login, redeem, type Rig, startAuthServer, tokensOf } from '../../../helpers/authserver/authserver.ts'
import {
  clientId,
  clientSecret,
  type ProviderProfile,
  type UpstreamPart,
} from '../../../helpers/oauth/providers/profile.ts'
import { providerProfiles } from '../../../helpers/oauth/providers/profiles.ts'
import { startProvider } from '../../../helpers/oauth/providers/provider.ts'

t.setTimeout(120_000)

async function start(t: Test, part: UpstreamPart): Promise<Rig> {
  const upstreams = ({ issuer }: { issuer: string }): AuthServerConfig['upstreams'] => [
    { ...part, name: 'hub', redirectUri: `${issuer}/oauth/callback`, additionalAuthorizationParams: {} },
  ]
  return startAuthServer(t, { upstreams })
}

async function signIn(rig: Rig): Promise<Caller> {
  const { access_token: token } = await tokensOf(await redeem(rig, await login(rig)))
  const claims = decodeJwt(token)
  return makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims, token })
}

async function walkThrough(t: Test, profile: ProviderProfile, upstream = profile.upstream): Promise<void> {
  const provider = await startProvider(profile)
  t.teardown(() => provider.close())
  const rig = await start(t, upstream(provider))
  const caller = await signIn(rig)
  const lifeMs = profile.lifeSec * 1000 + 1_000
  const isAccepted = async (): Promise<boolean> => {
    const token = await rig.server.upstreamTokens.get(caller, 'hub')
    return provider.accepts(`Bearer ${token?.accessToken ?? ''}`)
  }
  t.ok(await isAccepted(), 'a call')
  t.equal(provider.refreshes, 0)

  provider.expire()
  rig.pass(lifeMs)
  t.ok(await isAccepted(), 'a call after the token has expired')
  t.equal(provider.refreshes, 1)

  provider.expire()
  rig.pass(lifeMs)
  provider.outage = profile.outage
  await t.rejects(isAccepted(), { code: 'AUTH_UNAVAILABLE' }, 'the provider has an outage')
  provider.outage = undefined
  rig.pass(11_000)
  t.ok(await isAccepted(), 'the outage is over')

  provider.expire()
  provider.revoke()
  rig.pass(lifeMs)
  const asked = provider.refreshes
  const ended = {
    code: 'UPSTREAM_TOKEN_MISSING',
    message: /the sign-in session with hub has ended: .*sign in/,
  }
  await t.rejects(isAccepted(), ended, 'the login is revoked')
  await isAccepted().catch(() => undefined)
  t.equal(provider.refreshes, asked + 1, 'the revoked token is sent once')
  t.ok(rig.logged().includes(profile.revokedText), 'the log shows what the provider reports')

  t.equal(provider.logins, 1)
  t.notOk(provider.hasReuse)
}

for (const profile of Object.values(providerProfiles)) {
  await t.test(profile.id, (t) => walkThrough(t, profile))
}

await t.test('slack without a mapping: the preset reads the token response', (t) =>
  walkThrough(t, providerProfiles.slack, ({ authorize, token }) => ({
    type: 'oauth2',
    provider: 'slack',
    authorizationEndpoint: authorize,
    tokenEndpoint: token,
    clientId,
    clientSecret: () => clientSecret,
    scopes: ['chat:write'],
    identityFromToken: { subjectPath: 'authed_user.id' },
  })),
)
