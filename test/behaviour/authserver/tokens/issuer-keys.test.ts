/** How the server fetches the keys of trusted issuers: credentials, private addresses, sizes and files. */
import { writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AssertionPolicySettings, TrustedIssuerSettings } from '../../../../runtime/config/index.ts'
import { refusal, type Rig, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { freePort } from '../../../helpers/gatehouse.ts'
import { policyFor, requestWithGrant, startPlatform, trusted } from '../../../helpers/authserver/platform.ts'
import { startLoopback } from '../../../helpers/loopback.ts'

async function start(t: Test, issuers: readonly TrustedIssuerSettings[]) {
  const policies: AssertionPolicySettings[] = []
  const set = (next: readonly TrustedIssuerSettings[], rig: Pick<Rig, 'issuer'>): void => {
    const rights = { scopes: ['tools'], resources: [`${rig.issuer}/mcp`] }
    policies.splice(
      0,
      policies.length,
      ...next.map((issuer) => policyFor(issuer, [{ matcher: 'true', ...rights }])),
    )
  }
  const rig = await startAuthServer(t, {
    config(issuer) {
      set(issuers, { issuer })
      return { upstreams: [], assertionPolicies: policies }
    },
  })
  return { rig, reload: (next: readonly TrustedIssuerSettings[]) => (set(next, rig), rig.server.reload()) }
}

t.test('the key set is requested with the token in jwksAuthTokenPath', async (t) => {
  const platform = await startPlatform(t)
  const file = join(t.testdir({}), 'token')
  writeFileSync(file, 'of-this-pod\n')
  const issuer = trusted(platform, 'cluster', { jwksUrl: `${platform.issuer}/keys`, jwksAuthTokenPath: file })
  const { rig } = await start(t, [issuer])
  t.equal((await requestWithGrant(rig, await platform.token(rig, { sub: 'a' }))).status, 200)
  t.equal(platform.authorization(), 'Bearer of-this-pod')
  t.notMatch(rig.logged(), 'of-this-pod')
})

t.test('changed settings of an issuer take effect without a restart', async (t) => {
  const [platform, moved] = await Promise.all([startPlatform(t), startPlatform(t)])
  const { rig, reload } = await start(t, [trusted(platform, 'ci', { jwksUrl: `${moved.issuer}/keys` })])
  const ask = async () => refusal(await requestWithGrant(rig, await platform.token(rig, { sub: 'a' })))
  t.equal(await ask(), '400 invalid_grant')
  t.same(moved.requests, ['/keys'])
  await reload([trusted(platform, 'ci', { caBundlePath: '/none/ca.crt' })])
  t.equal(await ask(), '503 temporarily_unavailable', 'the file does not exist yet')
  await reload([trusted(platform, 'ci')])
  t.equal((await requestWithGrant(rig, await platform.token(rig, { sub: 'a' }))).status, 200)
})

const own = Object.values(networkInterfaces())
  .flatMap((addresses = []) => addresses)
  .find(({ family, internal, address }) => family === 'IPv4' && !internal && /^(10|172|192)\./.test(address))

t.test(
  'allowPrivateIPs permits a private address',
  { skip: own ? false : 'no private address' },
  async (t) => {
    const platform = await startPlatform(t)
    // No process listens at this address.
    const jwksUrl = `https://${own?.address}:${await freePort()}/keys`
    const { rig, reload } = await start(t, [trusted(platform, 'ci', { jwksUrl })])
    const ask = async () => refusal(await requestWithGrant(rig, await platform.token(rig, { sub: 'a' })))
    t.equal(await ask(), '400 invalid_grant', 'not dialled')
    await reload([trusted(platform, 'ci', { jwksUrl, allowPrivateIPs: true })])
    t.equal(await ask(), '503 temporarily_unavailable', 'dialled')
  },
)

t.test('a redirect and a large key set are rejected', async (t) => {
  const platform = await startPlatform(t)
  const large = await startLoopback(() => ({
    body: { keys: [platform.key.jwk], padding: 'x'.repeat(262_144) },
  }))
  const redirect = await startLoopback(({ path }) =>
    path === '/keys'
      ? { status: 302, headers: { location: '/moved' } }
      : { body: { keys: [platform.key.jwk] } },
  )
  t.teardown(() => Promise.all([large.close(), redirect.close()]))
  for (const { url } of [large, redirect]) {
    const { rig } = await start(t, [trusted(platform, 'ci', { jwksUrl: `${url}/keys` })])
    const response = await requestWithGrant(rig, await platform.token(rig, { sub: 'a' }))
    t.not(response.status, 200)
  }
  t.same(platform.requests, [])
})
