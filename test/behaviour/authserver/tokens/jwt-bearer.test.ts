/** Platform tokens as grants: a ServiceAccount and a GitHub job get tokens without a client. */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import type { AssertionPolicySettings } from '../../../../runtime/config/index.ts'
import { callerFacts } from '../../../../runtime/net/index.ts'
import { GatehouseError } from '../../../../schemas/index.ts'
import { type Bucket, makeMemoryStore, type Store } from '../../../../runtime/store/index.ts'
import {
  jsonOf,
  listenFor,
  refusal,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { declared, newSecret } from '../../../helpers/authserver/declared-client.ts'
import {
  jwtBearerGrant,
  type Platform,
  policyFor,
  requestWithGrant,
  serviceAccountClaims,
  startPlatform,
  trusted,
  workflowClaims,
} from '../../../helpers/authserver/platform.ts'
import { callerOf } from '../../../helpers/authserver/test-client.ts'

const scopes = ['tools:read', 'tools:write']
const job = serviceAccountClaims('jobs', 'nightly')
const matcher = "claims.repository_id == '74' && claims.environment == 'production'"

interface Started {
  readonly rig: Rig
  readonly cluster: Platform
  readonly github: Platform
  /** Policies that the server reads. */
  readonly policies: AssertionPolicySettings[]
}

async function start(t: Test, store?: Store): Promise<Started> {
  const [cluster, github] = await Promise.all([startPlatform(t), startPlatform(t)])
  const policies: AssertionPolicySettings[] = []
  const rig = await startAuthServer(t, {
    ...(store && { store }),
    config(issuer) {
      const resources = [`${issuer}/mcp`]
      policies.push(
        policyFor(
          trusted(cluster, 'cluster', { preset: 'kubernetes', jwksUrl: `${cluster.issuer}/openid/v1/jwks` }),
          [{ subject: job.sub, scopes, resources }],
          { replay: 'untilExpiry', maxAgeMs: 3_600_000 },
        ),
        policyFor(trusted(github, 'github', { preset: 'github' }), [
          { matcher, scopes: ['tools:read'], resources },
        ]),
      )
      return { assertionPolicies: policies }
    },
  })
  return { rig, cluster, github, policies }
}

t.test('a ServiceAccount gets a token for itself', async (t) => {
  const { rig, cluster } = await start(t)
  const now = Math.floor(rig.now() / 1000)
  const assertion = await cluster.token(rig, { ...job, exp: now + 3_600 })
  const response = await requestWithGrant(rig, assertion)
  t.equal(response.headers.get('cache-control'), 'no-store')
  const body = await jsonOf(response)
  t.match(body, { token_type: 'Bearer', expires_in: 900, scope: 'tools:read tools:write' })
  t.notOk('refresh_token' in body || 'id_token' in body)
  const token = String(body['access_token'])
  const claims = decodeJwt(token)
  const subject = `${cluster.issuer}#system:serviceaccount:jobs:nightly`
  t.match(claims, {
    iss: rig.issuer,
    sub: subject,
    aud: [`${rig.issuer}/mcp`],
    client_id: /^jwt-bearer:[\w-]{43}$/,
    auth_method: 'jwt_bearer',
    scope: 'tools:read tools:write',
  })
  t.equal(Number(claims.exp) - Number(claims.iat), 900)
  t.match(callerFacts(claims, 'embedded'), {
    kind: 'machine',
    authMethod: 'jwt_bearer',
    hasUpstreams: false,
  })
  t.equal(callerFacts(claims, 'external').kind, 'user', 'another issuer cannot claim this')
  t.match(rig.events.at(-1), { type: 'token_issued', outcome: 'success', userId: subject })
  t.equal(await rig.server.isLive(callerOf(token)), true)
  await t.rejects(rig.server.upstreamTokens.get(callerOf(token), 'corp'), { code: 'USER_REQUIRED' })
  t.equal((await requestWithGrant(rig, assertion)).status, 200, 'untilExpiry: the pod presents the same file')
  t.same(cluster.requests, ['/openid/v1/jwks'], 'jwksUrl replaces discovery, and keys are cached')
})

t.test('a GitHub job matches by claims, and each of its tokens is accepted once', async (t) => {
  const { rig, github } = await start(t)
  const assertion = await github.token(rig, workflowClaims())
  const { access_token: token } = await tokensOf(await requestWithGrant(rig, assertion))
  t.equal(decodeJwt(token).sub, `${github.issuer}#repo:acme/deploy:environment:production`)
  t.same(github.requests, ['/.well-known/oauth-authorization-server', '/keys'])
  t.equal(await refusal(await requestWithGrant(rig, assertion)), '400 invalid_grant')
  t.match(rig.events.at(-1), {
    type: 'client_rejected',
    outcome: 'denied',
    reason: 'the assertion has already been used',
    userId: decodeJwt(token).sub,
  })
  const without = { jti: undefined }
  const anonymous = await github.token(rig, workflowClaims(without))
  t.equal((await requestWithGrant(rig, anonymous)).status, 200, 'jti is optional')
  t.equal(await refusal(await requestWithGrant(rig, anonymous)), '400 invalid_grant')
  for (const claims of [{ repository_id: '75' }, { environment: 'test' }, { environment: undefined }]) {
    const other = await github.token(rig, workflowClaims(claims))
    t.equal(await refusal(await requestWithGrant(rig, other)), '400 invalid_grant')
    t.match(rig.events.at(-1), { reason: 'no binding matches the assertion', userId: /#repo:acme/ })
  }
})

t.test('scopes and resources are limited to the binding', async (t) => {
  const { rig, cluster } = await start(t)
  const assertion = await cluster.token(rig, job)
  const ask = (parameters: Record<string, string>) => requestWithGrant(rig, assertion, parameters)
  t.equal((await tokensOf(await ask({ scope: 'tools:read' }))).scope, 'tools:read')
  for (const scope of ['tools:admin', 'openid', 'offline_access'])
    t.equal(await refusal(await ask({ scope })), '400 invalid_scope', scope)
  t.equal((await ask({ resource: `${rig.issuer}/mcp` })).status, 200)
  t.equal(await refusal(await ask({ resource: 'https://other.example/mcp' })), '400 invalid_target')
})

t.test('a binding with several resources requires the parameter resource', async (t) => {
  const cluster = await startPlatform(t)
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      allowedAudiences: [`${issuer}/a`, `${issuer}/b`, `${issuer}/c`],
      assertionPolicies: [
        policyFor(
          trusted(cluster, 'cluster'),
          [{ subject: 'job', scopes, resources: [`${issuer}/a`, `${issuer}/b`] }],
          { replay: 'untilExpiry' },
        ),
      ],
    }),
  })
  const assertion = await cluster.token(rig, { sub: 'job' })
  t.equal(await refusal(await requestWithGrant(rig, assertion)), '400 invalid_target')
  const allowed = await requestWithGrant(rig, assertion, { resource: `${rig.issuer}/b` })
  t.same(decodeJwt((await tokensOf(allowed)).access_token).aud, [`${rig.issuer}/b`])
  const foreign = await requestWithGrant(rig, assertion, { resource: `${rig.issuer}/c` })
  t.equal(await refusal(foreign), '400 invalid_target')
})

t.test('a rejected request does not use up the assertion', async (t) => {
  const { rig, github } = await start(t)
  const assertion = await github.token(rig, workflowClaims())
  t.equal(await refusal(await requestWithGrant(rig, assertion, { scope: 'x' })), '400 invalid_scope')
  t.equal((await requestWithGrant(rig, assertion)).status, 200)
})

t.test('metadata lists the grant only if there is a policy, and never an issuer', async (t) => {
  const read = async ({ issuer }: Rig) =>
    jsonOf(await fetch(`${issuer}/.well-known/oauth-authorization-server`))
  const cluster = trusted({ issuer: 'https://cluster.example' }, 'cluster')
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      assertionPolicies: [policyFor(cluster, [{ subject: 'job', scopes, resources: [`${issuer}/mcp`] }])],
    }),
  })
  const document = await read(rig)
  t.match(document, {
    grant_types_supported: [jwtBearerGrant],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: [],
  })
  t.notMatch(JSON.stringify(document), cluster.issuerUrl)
  const secret = newSecret()
  const plain = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      clients: [declared('ci', [`${issuer}/mcp`], { secrets: [() => secret] })],
    }),
  })
  t.same((await read(plain))['grant_types_supported'], ['client_credentials'])
  t.equal(await refusal(await requestWithGrant(plain, 'a.b.c')), '400 unsupported_grant_type')
})

t.test('a token can be introspected with itself only', async (t) => {
  const { rig, cluster } = await start(t)
  const ask = async (bearer: string, token: string) =>
    jsonOf(
      await fetch(`${rig.issuer}/oauth/introspect`, {
        method: 'POST',
        body: new URLSearchParams({ token }),
        headers: { authorization: `Bearer ${bearer}` },
      }),
    )
  const { access_token: token } = await tokensOf(await requestWithGrant(rig, await cluster.token(rig, job)))
  t.match(await ask(token, token), { active: true, sub: `${cluster.issuer}#${job.sub}` })
  const info = await fetch(`${rig.issuer}/oauth/userinfo`, { headers: { authorization: `Bearer ${token}` } })
  t.equal(await refusal(info), '401 invalid_token')
})

t.test('a removed binding loses its tokens on every replica, without a restart', async (t) => {
  const { rig, cluster, policies } = await start(t)
  const other = await rig.replica()
  const assertion = await cluster.token(rig, { ...job, exp: Math.floor(rig.now() / 1000) + 600 })
  const { access_token: token } = await tokensOf(await requestWithGrant(rig, assertion))
  const [first] = policies
  if (!first) throw new Error('no policy')
  policies[0] = { ...first, bindings: [{ ...first.bindings?.[0], subject: 'other', scopes, resources: [] }] }
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(token)), false)
  t.equal(await refusal(await requestWithGrant(rig, assertion)), '400 invalid_grant')
  policies[0] = first
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(token)), false, 'the binding is back, but not its older tokens')
  t.equal(await other.server.isLive(callerOf(token)), false, 'another replica')
  rig.pass(2_000)
  const { access_token: next } = await tokensOf(await requestWithGrant(rig, assertion))
  t.equal(await rig.server.isLive(callerOf(next)), true)
  policies.splice(0, 1)
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(next)), false, 'the issuer is no longer trusted')
})

t.test('an invalid matcher keeps all previous policies', async (t) => {
  const { rig, cluster, policies } = await start(t)
  policies.push(policyFor(trusted({ issuer: 'https://x' }, 'x'), [{ matcher: '(', scopes, resources: [] }]))
  await t.rejects(rig.server.reload(), { code: 'INVALID_CONFIG' })
  t.equal((await requestWithGrant(rig, await cluster.token(rig, job))).status, 200)
})

t.test('an issuer that is down causes 503 for its own assertions only', async (t) => {
  const { rig, cluster, github } = await start(t)
  cluster.status = 503
  const assertion = await cluster.token(rig, job)
  t.equal(await refusal(await requestWithGrant(rig, assertion)), '503 temporarily_unavailable')
  t.equal((await requestWithGrant(rig, await github.token(rig, workflowClaims()))).status, 200)
  cluster.status = 200
  rig.pass(5_000)
  t.equal((await requestWithGrant(rig, assertion)).status, 200)
  cluster.status = 404
  github.status = 404
  rig.pass(3_600_001)
  t.equal(
    await refusal(await requestWithGrant(rig, await cluster.token(rig, job))),
    '400 invalid_grant',
    'a wrong URL is a configuration error',
  )
  t.match(rig.events.at(-1), { reason: "the issuer's keys cannot be read" })
})

t.test('a rotated key works immediately', async (t) => {
  const { rig, cluster } = await start(t)
  t.equal((await requestWithGrant(rig, await cluster.token(rig, job))).status, 200)
  const { key } = await startPlatform(t)
  cluster.key = key
  rig.pass(30_000)
  t.equal((await requestWithGrant(rig, await cluster.token(rig, job))).status, 200)
})

t.test('replicas share used assertions; without the store no token is issued', async (t) => {
  const memory = makeMemoryStore()
  const outage = { isOn: false }
  const store: Store = {
    ...memory,
    namespace: (prefix) => memory.namespace(prefix),
    set: async (name, value, options) => {
      if (outage.isOn && name.startsWith('assertion:')) throw new GatehouseError('STORE_DOWN')
      return memory.set(name, value, options)
    },
  }
  const { rig, github } = await start(t, store)
  const second = await listenFor(t, await rig.replica())
  const assertion = await github.token(rig, workflowClaims())
  outage.isOn = true
  t.equal(await refusal(await requestWithGrant(rig, assertion)), '503 temporarily_unavailable')
  outage.isOn = false
  const outcomes = await Promise.all(
    Array.from(
      { length: 8 },
      async (_, i) => (await requestWithGrant(i % 2 === 0 ? rig : second, assertion)).status,
    ),
  )
  t.equal(outcomes.filter((status) => status === 200).length, 1)
})

t.test('the rate is limited per subject and per issuer', async (t) => {
  const memory = makeMemoryStore()
  const taken: Bucket[] = []
  const store: Store = {
    ...memory,
    namespace: (prefix) => memory.namespace(prefix),
    async takeTokens(buckets) {
      taken.push(...buckets)
      return { ok: false, retryAfterMs: 1_500, refusedBy: undefined }
    },
  }
  const { rig, cluster } = await start(t, store)
  const response = await requestWithGrant(rig, await cluster.token(rig, job))
  t.equal(response.headers.get('retry-after'), '2')
  t.equal(await refusal(response), '429 temporarily_unavailable')
  t.match(taken, [
    { key: /^limit:grantAssertion:host0:/, capacity: 600, refillMs: 60_000 },
    { key: /^limit:grantAssertion:issuer0:/, capacity: 3_000, refillMs: 60_000 },
  ])
  taken.length = 0
  await requestWithGrant(rig, await cluster.token(rig, serviceAccountClaims('jobs', 'other')))
  t.same(taken, [], 'a rejected assertion takes no permit')
})

t.test('a used assertion does not count against the rate limit', async (t) => {
  const memory = makeMemoryStore()
  let permits = 0
  const store: Store = {
    ...memory,
    namespace: (prefix) => memory.namespace(prefix),
    takeTokens(buckets) {
      permits += 1
      return memory.takeTokens(buckets)
    },
  }
  const { rig, github } = await start(t, store)
  const assertion = await github.token(rig, workflowClaims())
  t.equal((await requestWithGrant(rig, assertion)).status, 200)
  t.equal(permits, 1)
  t.equal(await refusal(await requestWithGrant(rig, assertion)), '400 invalid_grant')
  t.equal(permits, 1)
})

t.test('assertions cannot use the issuer as audience if it is also a resource', async (t) => {
  const cluster = await startPlatform(t)
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      allowedAudiences: [issuer],
      assertionPolicies: [
        policyFor(trusted(cluster, 'cluster'), [{ subject: 'job', scopes, resources: [issuer] }]),
      ],
    }),
  })
  const access = await cluster.token(rig, { sub: 'job' })
  t.equal(await refusal(await requestWithGrant(rig, access)), '400 invalid_grant')
  const assertion = await cluster.token(rig, { sub: 'job', aud: `${rig.issuer}/oauth/token` })
  t.equal((await requestWithGrant(rig, assertion)).status, 200)
})
