/** Facts about the caller's token as attributes of the principal: kind, issuer, client id, authentication method. */
import t from 'tap'
import { foreignGroupRemover } from '../../../../runtime/incoming/index.ts'
import { callerFacts, makeCaller } from '../../../../runtime/net/index.ts'
import {
  explainDecision,
  makeAuthorizer,
  type PolicyQuestion,
  type PolicySet,
  replayDecisions,
  runPolicyTests,
  type UpstreamTokenSource,
} from '../../../../runtime/policy/index.ts'
import { inputsOf } from '../../../../runtime/policy/inputs.ts'
import { cedarWarnings } from '../../../../schemas/cedar/index.ts'

const setOf = (...policies: string[]): PolicySet => ({
  serverName: 'front',
  entitiesJson: '[]',
  groupEntityType: 'ServiceGroup',
  policies,
})
const request = { action: 'call_tool', id: 'echo' } as const

type Claims = Readonly<Record<string, unknown>>

const issuer = 'https://front.example'
const machine = { iss: issuer, sub: 'client:ci', client_id: 'ci', auth_method: 'private_key_jwt' }
const user = { iss: issuer, sub: 'u-1', client_id: 'app', tsid: 's' }

async function decide(config: PolicySet, claims: Claims, origin: 'embedded' | 'external' = 'embedded') {
  const { serverName, ...rest } = config
  const authorizer = makeAuthorizer(rest, { serverName })
  const caller = makeCaller({
    issuer: String(claims['iss']),
    subject: String(claims['sub']),
    claims,
    facts: callerFacts(claims, origin),
  })
  return authorizer.decide(await authorizer.subject(caller), request)
}

const permit = (condition: string): PolicySet =>
  setOf(`permit(principal, action, resource) when { ${condition} };`)

t.test('a policy reads each fact from the principal', async (t) => {
  const rows: readonly (readonly [string, Claims, boolean])[] = [
    ['principal.kind == "machine"', machine, true],
    ['principal.kind == "machine"', user, false],
    ['principal.kind == "user"', user, true],
    [`principal.issuer == "${issuer}"`, user, true],
    ['principal.issuer == "https://other.example"', user, false],
    ['principal has clientId && principal.clientId == "ci"', machine, true],
    ['principal has clientId && principal.clientId == "ci"', user, false],
    ['principal has clientId', { iss: issuer, sub: 'u-1' }, false],
    ['principal has authMethod && principal.authMethod == "private_key_jwt"', machine, true],
    ['principal has authMethod', user, false],
    ['principal.kind == "machine" && principal is Client', machine, true],
    ['context has kind || context has clientId || resource has kind', machine, false],
  ]
  for (const [condition, claims, allowed] of rows)
    t.equal(await decide(permit(condition), claims), allowed ? 'permitted' : 'unmentioned', condition)
})

t.test('kind: how each issuer identifies its machines', async (t) => {
  const account = { sub: 'system:serviceaccount:jobs:nightly', 'kubernetes.io': { namespace: 'jobs' } }
  const rows: readonly (readonly [Claims, 'embedded' | 'external', 'user' | 'machine'])[] = [
    [machine, 'embedded', 'machine'],
    [machine, 'external', 'user'],
    [{ ...machine, tsid: 's' }, 'embedded', 'user'],
    [{ ...machine, client_id: undefined }, 'embedded', 'user'],
    [{ ...machine, sub: 'ci' }, 'embedded', 'user'],
    [{ sub: 'ci', client_id: 'ci' }, 'external', 'machine'],
    [{ sub: 'ci', azp: 'ci' }, 'external', 'machine'],
    [{ sub: 'ci', azp: 'other' }, 'external', 'user'],
    [{ sub: 'x', idtyp: 'app' }, 'external', 'machine'],
    [{ sub: 'x@clients', gty: 'client-credentials' }, 'external', 'machine'],
    [account, 'external', 'machine'],
    [{ sub: account.sub }, 'external', 'user'],
    [{ ...account, sub: 'system:serviceaccount:jobs' }, 'external', 'user'],
    [{}, 'external', 'user'],
  ]
  for (const [claims, origin, kind] of rows)
    t.equal(callerFacts(claims, origin).kind, kind, `${origin} ${JSON.stringify(claims)}`)
  t.match(callerFacts({ cid: 'okta' }, 'external'), { clientId: 'okta' })
  t.match(callerFacts({ appid: 'entra' }, 'external'), { clientId: 'entra' })
  t.equal(callerFacts(machine, 'external').authMethod, undefined, 'only the embedded server reports it')
})

t.test('configured attributes take precedence, so that policies keep their meaning', async (t) => {
  const entity = { uid: { type: 'Client', id: 'client:ci' }, attrs: { kind: 'robot' }, parents: [] }
  const set = { ...permit('principal.kind == "robot"'), entitiesJson: JSON.stringify([entity]) }
  t.equal(await decide(set, machine), 'permitted')
  t.equal(await decide(set, user), 'unmentioned')
})

t.test('two callers that differ only in a fact have separate cached decisions', async (t) => {
  const { serverName, ...config } = permit('principal.kind == "machine"')
  const authorizer = makeAuthorizer(config, { serverName })
  const claims = { sub: 'ci', client_id: 'ci' }
  const callers = (['external', 'embedded'] as const).map((origin) =>
    makeCaller({ issuer, subject: 'ci', claims: { ...claims }, facts: callerFacts(claims, origin) }),
  )
  for (const [index, caller] of callers.entries())
    t.equal(
      authorizer.decide(await authorizer.subject(caller), request),
      index === 0 ? 'permitted' : 'unmentioned',
    )
})

t.test('a fact that Cedar cannot represent denies the request', async (t) => {
  const set = setOf('permit(principal, action, resource) unless { principal.clientId == "x" };')
  t.equal(await decide(set, { ...user, client_id: '\ud800' }), 'forbidden')
})

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

t.test('primaryUpstreamProvider: machines and other issuers use their own claims', async (t) => {
  let asked = 0
  let upstream: Claims = { sub: 'ada', team: 'core' }
  const upstreamTokens: UpstreamTokenSource = {
    reserved: ['https://idp.example#'],
    ownGroups: foreignGroupRemover([{ issuer: 'https://idp.example', groupPrefix: 'idp/' }]),
    get: async (caller) => {
      asked += 1
      return caller.claims['tsid'] === undefined
        ? undefined
        : { accessToken: `${part({ alg: 'RS256' })}.${part(upstream)}.c2ln` }
    },
  }
  const { serverName, ...config } = setOf(
    'permit(principal == Client::"client:ci", action, resource);',
    'permit(principal == Client::"https://idp.example#bob", action, resource);',
    'permit(principal in ServiceGroup::"idp/admins", action, resource);',
    'permit(principal == Client::"ada", action, resource) when { principal.claim_team == "core" && principal.kind == "user" };',
  )
  const authorizer = makeAuthorizer(
    { ...config, primaryUpstreamProvider: 'corp' },
    { serverName, upstreamTokens },
  )
  const ask = async (claims: Claims, origin: 'embedded' | 'external') => {
    const facts = callerFacts(claims, origin)
    const caller = makeCaller({ issuer, subject: String(claims['sub']), claims, facts })
    return authorizer.decide(await authorizer.subject(caller), request)
  }
  t.equal(await ask(machine, 'embedded'), 'permitted')
  t.equal(await ask({ sub: 'https://idp.example#bob' }, 'external'), 'permitted')
  t.equal(asked, 0, 'upstream tokens belong to users of the embedded server')
  t.equal(await ask({ ...user }, 'embedded'), 'permitted')
  upstream = { sub: 'eve', groups: ['idp/admins'] }
  t.equal(await ask({ ...user }, 'embedded'), 'unmentioned', 'the group belongs to another issuer')
  for (const sub of ['client:ci', 'https://idp.example#bob']) {
    upstream = { sub, team: 'core' }
    t.equal(await ask({ ...user }, 'embedded'), 'forbidden', `an upstream subject cannot be ${sub}`)
  }
})

t.test('the console and the commands accept the facts', async (t) => {
  const policies = permit('principal.kind == "machine" && principal.clientId == "ci"')
  t.same(cedarWarnings({ policies: policies.policies ?? [] }), [])
  const ask = (claims: Claims, principal?: PolicyQuestion['principal']) =>
    explainDecision(policies, { ...request, claims, principal })
  t.match(await ask(machine), { decision: 'permitted' })
  t.match(await ask(user), {
    decision: 'unmentioned',
    policies: [{ outcome: 'misses', because: 'when { principal.kind == "machine" }' }],
  })
  t.match(await ask(user, { kind: 'machine', clientId: 'ci' }), { decision: 'permitted' })
  t.match(await ask({ sub: 'x', iss: issuer }, { kind: 'machine' }), { missing: ['clientId'] })
  const run = await runPolicyTests(policies, [
    { name: 'machine', questions: [{ question: { ...request, claims: machine }, expect: 'allow' }] },
    { name: 'user', questions: [{ question: { ...request, claims: user }, expect: 'deny' }] },
  ])
  t.same(run.results, [
    { name: 'machine', failures: [] },
    { name: 'user', failures: [] },
  ])
})

t.test('recorded decisions contain the facts, and are inconclusive without them', async (t) => {
  const policies = permit('principal.kind == "machine" && principal.issuer == "https://front.example"')
  const { serverName, ...config } = policies
  const authorizer = makeAuthorizer(config, { serverName })
  const line = async (claims: Claims, mode: 'read' | 'all', decision: string, { withFacts = true } = {}) => {
    const facts = callerFacts(claims, 'embedded')
    const caller = makeCaller({ issuer, subject: String(claims['sub']), claims, facts })
    const inputs = inputsOf(mode, { authorizer, subject: await authorizer.subject(caller), request })
    const { principal, ...older } = inputs
    return JSON.stringify({
      subjects: { user_id: caller.subject },
      target: { name: 'echo', type: 'tool', backend: 'b', original: 'echo' },
      policy: { decision, reason: [], inputs: withFacts ? { ...older, principal } : older },
    })
  }
  const { principal } = JSON.parse(await line(user, 'read', 'deny')).policy.inputs
  t.same(principal, { kind: 'user', issuer }, 'only facts that a policy reads')
  t.same(JSON.parse(await line(user, 'all', 'deny')).policy.inputs.principal, {
    kind: 'user',
    issuer,
    clientId: 'app',
    authMethod: null,
    actor: null,
  })
  for (const mode of ['read', 'all'] as const) {
    const same = await replayDecisions(policies, [
      await line(machine, mode, 'allow'),
      await line(user, mode, 'deny'),
    ])
    t.match(same, { flips: [], decisions: 2, inconclusive: 0 })
    const lacking = await replayDecisions(policies, [
      await line(machine, mode, 'allow', { withFacts: false }),
    ])
    t.match(JSON.stringify(lacking), /principal\.kind/)
    const elsewhere = await replayDecisions(permit('resource.kind == "x" || context.claim_a.kind == "x"'), [
      await line(machine, mode, 'allow', { withFacts: false }),
    ])
    t.notMatch(JSON.stringify(elsewhere), /principal\.kind/)
  }
})
