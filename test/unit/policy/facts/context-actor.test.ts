/** `context.actor`: the client that currently acts for the user. */
import t from 'tap'
import { callerFacts, makeCaller, type TokenOrigin } from '../../../../runtime/net/index.ts'
import {
  explainDecision,
  makeAuthorizer,
  type PolicySet,
  replayDecisions,
  runPolicyTests,
} from '../../../../runtime/policy/index.ts'
import { inputsOf } from '../../../../runtime/policy/inputs.ts'
import { userKey } from '../../../../runtime/policy/limits/rate-limit.ts'
import { cedarWarnings } from '../../../../schemas/cedar/index.ts'

const setOf = (...policies: string[]): PolicySet => ({
  serverName: 'front',
  entitiesJson: '[]',
  groupEntityType: 'ServiceGroup',
  policies,
})
const request = { action: 'call_tool', id: 'echo' } as const
const onlyAgent = setOf(
  'permit(principal, action, resource) when { context has actor && context.actor == "client:agent" };',
)

type Claims = Readonly<Record<string, unknown>>

const issuer = 'https://front.example'
const user = { iss: issuer, sub: 'u-1', client_id: 'app', tsid: 's' }
const delegated = { ...user, client_id: 'agent', act: { sub: 'client:agent' } }
const chained = { ...delegated, act: { sub: 'client:other', act: { sub: 'client:agent' } } }

function callerOf(claims: Claims, origin: TokenOrigin = 'embedded') {
  const facts = callerFacts(claims, origin)
  return makeCaller({ issuer: String(claims['iss']), subject: String(claims['sub']), claims, facts })
}

async function decide(config: PolicySet, claims: Claims, origin?: TokenOrigin) {
  const { serverName, ...rest } = config
  const authorizer = makeAuthorizer(rest, { serverName })
  return authorizer.decide(await authorizer.subject(callerOf(claims, origin)), request)
}

t.test('policies read the outermost actor from the context only', async (t) => {
  t.equal(await decide(onlyAgent, delegated), 'permitted')
  t.equal(await decide(onlyAgent, user), 'unmentioned')
  t.equal(await decide(onlyAgent, chained), 'unmentioned', 'an earlier actor has no effect')
  const noAgents = setOf(
    'permit(principal, action, resource);',
    'forbid(principal, action, resource) when { context has actor };',
  )
  t.equal(await decide(noAgents, user), 'permitted')
  t.equal(await decide(noAgents, delegated), 'forbidden')
  const onPrincipal = setOf('permit(principal, action, resource) when { principal has actor };')
  t.equal(await decide(onPrincipal, delegated), 'unmentioned')
  const kind = setOf('permit(principal, action, resource) when { principal.kind == "user" };')
  t.equal(await decide(kind, delegated), 'permitted', 'the principal is still the user')
})

t.test('an actor from another issuer never equals a declared client', async (t) => {
  const rows: readonly (readonly [act: unknown, origin: TokenOrigin, actor: string | undefined])[] = [
    [{ sub: 'client:agent' }, 'embedded', 'client:agent'],
    [{ sub: 'client:agent' }, 'external', `${issuer}#client:agent`],
    [{ sub: 'bot', iss: 'https://elsewhere.example' }, 'external', `${issuer}#bot`],
    [{ client_id: 'bot' }, 'external', `${issuer}#`],
    ['bot', 'external', `${issuer}#`],
    [['bot'], 'external', `${issuer}#`],
    [null, 'external', undefined],
    [undefined, 'external', undefined],
  ]
  for (const [act, origin, actor] of rows)
    t.equal(callerFacts({ ...user, act }, origin).actor, actor, `${JSON.stringify(act)} ${origin}`)
  t.equal(callerFacts({ sub: 'u', act: { sub: 'bot' } }, 'external').actor, '#bot')
  t.equal(await decide(onlyAgent, delegated, 'external'), 'unmentioned')
})

t.test('decisions with different actors are cached separately', async (t) => {
  const { serverName, ...rest } = onlyAgent
  const authorizer = makeAuthorizer(rest, { serverName })
  const decisionFor = async (claims: Claims) =>
    authorizer.decide(await authorizer.subject(callerOf(claims)), request)
  t.equal(await decisionFor(delegated), 'permitted')
  t.equal(await decisionFor(user), 'unmentioned')
  t.equal(await decisionFor(chained), 'unmentioned')
  t.equal(await decisionFor({ ...delegated }), 'permitted')
})

t.test('the actor is recorded for a policy that uses the whole context', (t) => {
  const { serverName, ...whole } = setOf('permit(principal, action, resource) when { context == {} };')
  t.same([...makeAuthorizer(whole, { serverName }).facts], ['actor'])
  t.end()
})

t.test('an actor that Cedar cannot represent denies the request', async (t) => {
  const open = setOf(
    'permit(principal, action, resource) unless { context has actor && context.actor == "x" };',
  )
  t.equal(await decide(open, { ...delegated, act: { sub: 'client:\ud800' } }), 'forbidden')
})

t.test('a delegated caller has its own key, and shares the budget of the user', async (t) => {
  const [own, acting, external] = [
    callerOf(user),
    callerOf(delegated),
    callerOf({ ...user, act: { sub: 'client:agent' } }, 'external'),
  ]
  t.equal(new Set([own.key, acting.key, external.key]).size, 3)
  t.equal(own.key, `${issuer}\0u-1`)
  t.equal(userKey(acting), userKey(own))
})

t.test('the console and the commands accept the actor', async (t) => {
  const question = { ...request, claims: delegated }
  t.equal((await explainDecision(onlyAgent, question)).decision, 'permitted')
  const overridden = { ...question, principal: { actor: 'client:other' } }
  t.equal((await explainDecision(onlyAgent, overridden)).decision, 'unmentioned')
  const without = { ...question, principal: { actor: null } }
  t.equal((await explainDecision(onlyAgent, without)).decision, 'unmentioned')
  t.same(cedarWarnings({ policies: onlyAgent.policies ?? [] }), [])
  const run = await runPolicyTests(onlyAgent, [
    { name: 'agent', questions: [{ question, expect: 'allow' }] },
    { name: 'user', questions: [{ question: { ...request, claims: user }, expect: 'deny' }] },
  ])
  t.same(run.results, [
    { name: 'agent', failures: [] },
    { name: 'user', failures: [] },
  ])
})

t.test('recorded decisions contain the actor, and are inconclusive without it', async (t) => {
  const { serverName, ...config } = onlyAgent
  const authorizer = makeAuthorizer(config, { serverName })
  const line = async (claims: Claims, mode: 'read' | 'all', decision: string, { withActor = true } = {}) => {
    const caller = callerOf(claims)
    const inputs = inputsOf(mode, { authorizer, subject: await authorizer.subject(caller), request })
    const { principal, ...older } = inputs
    return JSON.stringify({
      subjects: { user_id: caller.subject },
      target: { name: 'echo', type: 'tool', backend: 'b', original: 'echo' },
      policy: { decision, reason: [], inputs: withActor ? { ...older, principal } : older },
    })
  }
  t.same(JSON.parse(await line(delegated, 'read', 'allow')).policy.inputs.principal, {
    actor: 'client:agent',
  })
  for (const mode of ['read', 'all'] as const) {
    const lines = [await line(delegated, mode, 'allow'), await line(user, mode, 'deny')]
    t.match(await replayDecisions(onlyAgent, lines), { flips: [], decisions: 2, inconclusive: 0 })
    const lacking = [await line(delegated, mode, 'allow', { withActor: false })]
    t.match(JSON.stringify(await replayDecisions(onlyAgent, lacking)), /context\.actor/)
  }
})
