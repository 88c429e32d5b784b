/** Federated clients: declared clients that authenticate with the token of a platform. */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import type { AuthServerConfig, FederatedSettings } from '../../../../runtime/config/index.ts'
import { jsonOf, refusal, type Rig, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { declared, requestWithAssertion } from '../../../helpers/authserver/declared-client.ts'
import {
  identityAssertion,
  type Platform,
  requestWithGrant,
  serviceAccountClaims,
  startPlatform,
  trusted,
  userPolicyFor,
  workflowClaims,
} from '../../../helpers/authserver/platform.ts'
import { callerOf } from '../../../helpers/authserver/test-client.ts'
import { assertionType } from '../../../helpers/authserver/declared-client.ts'

const pod = serviceAccountClaims('jobs', 'nightly')
const matcher = "claims.repository_id == '74' && claims.environment == 'production'"

interface Started {
  readonly rig: Rig
  readonly cluster: Platform
  readonly github: Platform
  readonly clients: NonNullable<AuthServerConfig['clients']>[number][]
}

async function start(t: Test, cluster = {} as Partial<FederatedSettings>): Promise<Started> {
  const [api, github] = await Promise.all([startPlatform(t), startPlatform(t)])
  const clients: Started['clients'] = []
  const rig = await startAuthServer(t, {
    config(issuer) {
      const resources = [`${issuer}/mcp`]
      const age = { maxAgeMs: 3_600_000, replay: 'untilExpiry' } as const
      const issuers = {
        cluster: trusted(api, 'cluster', { preset: 'kubernetes' }),
        github: trusted(github, 'github', { preset: 'github' }),
      }
      clients.push(
        declared('nightly', resources, {
          federated: { issuer: issuers.cluster, subject: pod.sub, ...age, ...cluster },
        }),
        declared('deploy', resources, {
          federated: { issuer: issuers.github, matcher, maxAgeMs: 300_000, replay: 'once' },
        }),
      )
      return { upstreams: [], clients }
    },
  })
  return { rig, cluster: api, github, clients }
}

t.test('a pod authenticates as a declared client, again and again with the same file', async (t) => {
  const { rig, cluster } = await start(t)
  const exp = Math.floor(rig.now() / 1000) + 3_600
  const assertion = await cluster.token(rig, { ...pod, exp })
  for (const form of [{}, { client_id: 'nightly' }]) {
    const body = await jsonOf(await requestWithAssertion(rig, assertion, form))
    t.match(body, { token_type: 'Bearer', scope: 'tools:read tools:write', expires_in: 900 })
    const token = String(body['access_token'])
    t.match(decodeJwt(token), { sub: 'client:nightly', client_id: 'nightly', auth_method: 'federated' })
    t.equal(await rig.server.isLive(callerOf(token)), true)
  }
  t.match(rig.events.at(-1), { type: 'token_issued', clientId: 'nightly' })
})

t.test(
  'a job authenticates with its claims and its client id, and each token is accepted once',
  async (t) => {
    const { rig, github } = await start(t)
    const assertion = await github.token(rig, workflowClaims())
    t.equal(
      await refusal(await requestWithAssertion(rig, assertion)),
      '401 invalid_client',
      'a matcher selects no client',
    )
    const form = { client_id: 'deploy' }
    t.equal((await requestWithAssertion(rig, assertion, form)).status, 200)
    t.equal(await refusal(await requestWithAssertion(rig, assertion, form)), '401 invalid_client')
    t.match(rig.events.at(-1), { clientId: 'deploy', reason: 'the assertion has already been used' })
    const other = await github.token(rig, workflowClaims({ environment: 'test' }))
    t.equal(await refusal(await requestWithAssertion(rig, other, form)), '401 invalid_client')
    t.match(rig.events.at(-1), { reason: "the assertion does not match the client's identity" })
  },
)

t.test('metadata lists the method with all algorithms, and no method for secrets', async (t) => {
  const { rig } = await start(t)
  const metadata = await jsonOf(await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`))
  t.same(metadata['token_endpoint_auth_methods_supported'], ['private_key_jwt'])
  t.same(metadata['token_endpoint_auth_signing_alg_values_supported'], [
    'ES256',
    'ES384',
    'RS256',
    'PS256',
    'EdDSA',
  ])
})

t.test('a federated client can inspect and revoke its token', async (t) => {
  const { rig, cluster } = await start(t)
  const assertion = await cluster.token(rig, pod)
  const token = String((await jsonOf(await requestWithAssertion(rig, assertion)))['access_token'])
  const post = (path: string) =>
    fetch(`${rig.issuer}/oauth/${path}`, {
      method: 'POST',
      body: new URLSearchParams({
        token,
        client_assertion: assertion,
        client_assertion_type: assertionType,
      }),
    })
  t.match(await jsonOf(await post('introspect')), { active: true, sub: 'client:nightly' })
  t.equal((await post('revoke')).status, 200)
  t.equal(await rig.server.isLive(callerOf(token)), false)
})

t.test('another identity ends the tokens; another lifetime does not', async (t) => {
  const { rig, cluster, clients } = await start(t)
  const next = async () =>
    String((await jsonOf(await requestWithAssertion(rig, await cluster.token(rig, pod))))['access_token'])
  const token = await next()
  const [first] = clients
  if (!first?.federated) throw new Error('no client')
  clients[0] = { ...first, federated: { ...first.federated, maxAgeMs: 60_000 } }
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(token)), true)
  const subject = 'system:serviceaccount:jobs:other'
  clients[0] = { ...first, federated: { ...first.federated, subject } }
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(token)), false)
  t.equal(await refusal(await requestWithAssertion(rig, await cluster.token(rig, pod))), '401 invalid_client')
  clients[0] = first
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(token)), false, 'also after it is back')
})

t.test('an issuer that is down causes 503 for its own clients only', async (t) => {
  const { rig, cluster, github } = await start(t)
  cluster.status = 503
  const down = await requestWithAssertion(rig, await cluster.token(rig, pod))
  t.equal(await refusal(down), '503 temporarily_unavailable')
  const job = await github.token(rig, workflowClaims())
  t.equal((await requestWithAssertion(rig, job, { client_id: 'deploy' })).status, 200)
})

t.test('an issuer whose keys cannot be read is logged with the reason', async (t) => {
  const { rig, cluster } = await start(t)
  cluster.status = 404
  const response = await requestWithAssertion(rig, await cluster.token(rig, pod))
  t.equal(await refusal(response), '401 invalid_client')
  t.match(rig.events.at(-1), { clientId: 'nightly', reason: "the issuer's keys cannot be read" })
  t.match(rig.logged(), /the trusted issuer's keys cannot be read.*cluster/)
})

t.test('a federated client redeems an identity assertion', async (t) => {
  const [cluster, idp] = await Promise.all([startPlatform(t), startPlatform(t)])
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      assertionPolicies: [userPolicyFor(trusted(idp, 'idp'))],
      clients: [
        declared('agent', [`${issuer}/mcp`], {
          federated: {
            issuer: trusted(cluster, 'cluster', { preset: 'kubernetes' }),
            subject: pod.sub,
            maxAgeMs: 3_600_000,
            replay: 'untilExpiry',
          },
        }),
      ],
    }),
  })
  const assertion = await identityAssertion(idp, rig, 'agent', { scope: 'tools:read' })
  const response = await requestWithGrant(rig, assertion, {
    client_assertion: await cluster.token(rig, pod),
    client_assertion_type: assertionType,
  })
  const claims = decodeJwt(String((await jsonOf(response))['access_token']))
  t.match(claims, { sub: `${idp.issuer}#alice`, client_id: 'agent', auth_method: 'federated' })
})
