/** SPIFFE: workloads authenticate with JWT-SVIDs, which the bundle of their trust domain verifies. */
import { writeFileSync } from 'node:fs'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { callerFacts } from '../../../../runtime/net/index.ts'
import type { AuthServerConfig } from '../../../../runtime/config/index.ts'
import {
  jsonOf,
  refusal,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { makeKey } from '../../../helpers/authserver/declared-client.ts'
import {
  identityAssertion,
  requestWithGrant,
  startPlatform,
  trusted,
  userPolicyFor,
} from '../../../helpers/authserver/platform.ts'
import {
  makeTrustDomain,
  requestWithSvid,
  spiffeAssertionType,
  type TrustDomain,
  workloadClient,
} from '../../../helpers/authserver/platforms/spiffe.ts'
import { callerOf } from '../../../helpers/authserver/test-client.ts'

interface Started {
  readonly rig: Rig
  readonly domain: TrustDomain
  readonly clients: NonNullable<AuthServerConfig['clients']>[number][]
}

async function start(t: Test, more: Partial<AuthServerConfig> = {}): Promise<Started> {
  const domain = await makeTrustDomain(t)
  const clients: Started['clients'] = []
  const rig = await startAuthServer(t, {
    config(issuer) {
      const resources = [`${issuer}/mcp`]
      clients.push(
        workloadClient(domain, 'triage', '/agents/triage', resources),
        workloadClient(domain, 'jobs', '/jobs/*', resources, { replay: 'untilExpiry' }),
      )
      return { upstreams: [], clients, ...more }
    },
  })
  return { rig, domain, clients }
}

const post = ({ issuer }: Rig, path: string, form: Record<string, string>) =>
  fetch(`${issuer}/oauth/${path}`, { method: 'POST', body: new URLSearchParams(form) })

t.test('a workload gets a token for its SPIFFE ID', async (t) => {
  const { rig, domain } = await start(t)
  const body = await jsonOf(await requestWithSvid(rig, await domain.svid(rig, '/agents/triage')))
  t.match(body, { token_type: 'Bearer', expires_in: 900, scope: 'tools:read tools:write' })
  t.notOk('refresh_token' in body)
  const token = String(body['access_token'])
  const claims = decodeJwt(token)
  t.match(claims, {
    sub: 'spiffe://prod.example.com/agents/triage',
    client_id: 'triage',
    auth_method: 'spiffe_jwt',
    aud: [`${rig.issuer}/mcp`],
  })
  t.match(callerFacts(claims, 'embedded'), { kind: 'machine', clientId: 'triage', hasUpstreams: false })
  t.equal(callerFacts(claims, 'external').kind, 'user', 'another issuer cannot claim this')
  t.equal(await rig.server.isLive(callerOf(token)), true)
  t.match(rig.events.at(-1), { type: 'token_issued', clientId: 'triage', userId: claims.sub })
  await t.rejects(rig.server.upstreamTokens.get(callerOf(token), 'corp'), { code: 'NOT_FOUND' })
})

t.test(
  'once: a JWT-SVID is accepted once, although it has no jti; untilExpiry: until it expires',
  async (t) => {
    const { rig, domain } = await start(t)
    const svid = await domain.svid(rig, '/agents/triage')
    t.equal((await requestWithSvid(rig, svid, { client_id: 'triage' })).status, 200)
    t.equal(await refusal(await requestWithSvid(rig, svid)), '401 invalid_client')
    t.match(rig.events.at(-1), { reason: 'the assertion has already been used', clientId: 'triage' })
    const cached = await domain.svid(rig, '/jobs/nightly/report')
    const subjects = []
    for (let i = 0; i < 2; i++)
      subjects.push(decodeJwt((await tokensOf(await requestWithSvid(rig, cached))).access_token).sub)
    t.same(new Set(subjects), new Set(['spiffe://prod.example.com/jobs/nightly/report']))
    rig.pass(361_000)
    t.equal(await refusal(await requestWithSvid(rig, cached)), '401 invalid_client', 'expired')
  },
)

t.test('the bundle is reread after 30 seconds, and an invalid one keeps the old keys', async (t) => {
  const { rig, domain } = await start(t)
  const old = domain.key
  const next = await makeKey()
  const status = async (): Promise<number> =>
    (await requestWithSvid(rig, await domain.svid(rig, '/jobs/a'))).status
  t.equal(await status(), 200)
  domain.publish(old, next)
  domain.key = next
  t.equal(await status(), 401, 'not yet read')
  rig.pass(30_000)
  t.equal(await status(), 200)
  domain.key = old
  t.equal(await status(), 200, 'both keys are in the bundle')
  writeFileSync(domain.bundlePath, '{')
  rig.pass(30_000)
  t.equal(await status(), 200)
  t.match(rig.logged(), /the changed SPIFFE bundle is invalid; keeping the old one/)
  domain.publish(next)
  rig.pass(30_000)
  t.equal(await status(), 401, 'a removed key')
  domain.publish()
  domain.key = next
  rig.pass(30_000)
  t.equal(await status(), 401, 'a bundle without keys verifies nothing')
})

t.test('an unusable bundle prevents startup', async (t) => {
  const domain = await makeTrustDomain(t)
  const starting = () =>
    startAuthServer(t, {
      config: (issuer) => ({
        upstreams: [],
        clients: [workloadClient(domain, 'a', '/a', [`${issuer}/mcp`])],
      }),
    })
  domain.publish()
  await t.rejects(starting(), { message: /SPIFFE bundle .*: contains no key for JWT-SVIDs/ })
  for (const text of [
    '{',
    '[]',
    '{"keys":{}}',
    JSON.stringify({ keys: Array.from({ length: 101 }, () => ({})) }),
  ]) {
    writeFileSync(domain.bundlePath, text)
    await t.rejects(starting(), { code: 'INVALID_CONFIG', message: /SPIFFE bundle / })
  }
})

t.test('metadata lists the method', async (t) => {
  const { rig } = await start(t)
  const metadata = await jsonOf(await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`))
  t.same(metadata['token_endpoint_auth_methods_supported'], ['spiffe_jwt'])
  t.same(metadata['grant_types_supported'], ['client_credentials'])
})

t.test('a workload inspects and revokes its own tokens, but not those of another one', async (t) => {
  const { rig, domain } = await start(t)
  const [mine, other] = await Promise.all(['/jobs/a', '/jobs/b'].map((path) => domain.svid(rig, path)))
  const token = (await tokensOf(await requestWithSvid(rig, mine ?? ''))).access_token
  const as = (svid = '') => ({ token, client_assertion: svid, client_assertion_type: spiffeAssertionType })
  t.same(await jsonOf(await post(rig, 'introspect', as(other))), { active: false })
  await post(rig, 'revoke', as(other))
  t.equal(await rig.server.isLive(callerOf(token)), true)
  t.match(await jsonOf(await post(rig, 'introspect', as(mine))), { active: true, client_id: 'jobs' })
  await post(rig, 'revoke', as(mine))
  t.equal(await rig.server.isLive(callerOf(token)), false)
})

t.test('removing or narrowing the pattern ends the tokens', async (t) => {
  const { rig, domain, clients } = await start(t)
  const token = (await tokensOf(await requestWithSvid(rig, await domain.svid(rig, '/jobs/a')))).access_token
  const [, jobs] = clients
  if (!jobs?.spiffe) throw new Error('no client')
  clients[1] = {
    ...jobs,
    spiffe: { ...jobs.spiffe, principalPattern: 'spiffe://prod.example.com/jobs/b/*' },
  }
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(token)), false)
  t.equal(await refusal(await requestWithSvid(rig, await domain.svid(rig, '/jobs/a'))), '401 invalid_client')
  clients[1] = jobs
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(token)), false, 'also after it is back')
})

t.test('a workload redeems an identity assertion', async (t) => {
  const idp = await startPlatform(t)
  const { rig, domain } = await start(t, { assertionPolicies: [userPolicyFor(trusted(idp, 'idp'))] })
  const assertion = await identityAssertion(idp, rig, 'triage', { scope: 'tools:read' })
  const response = await requestWithGrant(rig, assertion, {
    client_assertion: await domain.svid(rig, '/agents/triage'),
    client_assertion_type: spiffeAssertionType,
  })
  const token = (await tokensOf(response)).access_token
  const claims = decodeJwt(token)
  t.match(claims, { sub: `${idp.issuer}#alice`, client_id: 'triage', auth_method: 'spiffe_jwt' })
  t.equal(callerFacts(claims, 'embedded').kind, 'user')
  const svid = await domain.svid(rig, '/agents/triage', { jti: 'b' })
  const form = { token, client_assertion: svid, client_assertion_type: spiffeAssertionType }
  t.match(await jsonOf(await post(rig, 'introspect', form)), { active: true, sub: claims.sub })
})
