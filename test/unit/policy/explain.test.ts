/** The explanation of a decision: determining policies, and the first failed part of every other policy. */
import t from 'tap'
import { explainDecision, type PolicyQuestion, type PolicySet } from '../../../runtime/policy/index.ts'

const setOf = (...policies: string[]): PolicySet => ({
  serverName: 'front',
  entitiesJson: '[]',
  groupEntityType: 'ServiceGroup',
  policies,
})

const call: PolicyQuestion = {
  action: 'call_tool',
  id: 'a_create',
  origin: { backend: 'github', original: 'create_issue' },
  claims: { sub: 'ada' },
}

const policies = [
  'permit(principal in ServiceGroup::"ops", action, resource);',
  `permit(principal, action == Action::"call_tool", resource in BackendTool::"github/create_issue")
     when { principal has claim_email && principal.claim_email like "*@example.com" && context.claim_level > 3 };`,
  'forbid(principal, action, resource) unless { resource.name like "a*" || principal.claim_admin };',
  'permit(principal, action == Action::"get_prompt", resource);',
]

t.test(
  'explain: each permit that does not apply names its first failed part and the absent attributes',
  async (t) => {
    const explained = await explainDecision(setOf(...policies), call)
    t.match(explained, {
      decision: 'unmentioned',
      determining: [],
      missing: ['claim_email', 'claim_level'],
      policies: [
        {
          id: 'policies[0]',
          effect: 'permit',
          outcome: 'misses',
          because: 'principal in ServiceGroup::"ops"',
        },
        {
          id: 'policies[1]',
          outcome: 'misses',
          because: 'when { principal has claim_email }',
          absent: ['claim_email'],
        },
        {
          id: 'policies[2]',
          effect: 'forbid',
          outcome: 'misses',
          because: 'unless { resource.name like "a*" }',
        },
      ],
      leftOut: 0,
    })
    t.equal(explained.policies.length, 3, 'policies about another action explain nothing')
  },
)

t.test('explain: names the part that is false for this caller', async (t) => {
  const low = { ...call, claims: { sub: 'ada', email: 'ada@example.com', level: 3 } }
  const { policies: parts } = await explainDecision(setOf(...policies), low)
  t.equal(parts[1]?.because, 'when { context.claim_level > 3 }')
  t.equal(parts[1]?.absent, undefined)
  const elsewhere = { ...call, origin: { backend: 'gitlab', original: 'create_issue' } }
  const moved = await explainDecision(setOf(...policies), elsewhere)
  t.equal(moved.policies[1]?.because, 'resource in BackendTool::"github/create_issue"')
  const high = { ...call, claims: { sub: 'ada', email: 'ada@example.com', level: 4 } }
  t.match(await explainDecision(setOf(...policies), high), {
    decision: 'permitted',
    determining: ['policies[1]'],
    missing: [],
    policies: [{ outcome: 'misses' }, { outcome: 'matches' }, { outcome: 'misses' }],
  })
})

t.test(
  'explain: a forbid determines the decision, and a permit that would have allowed is listed',
  async (t) => {
    const explained = await explainDecision(
      setOf(
        'permit(principal, action, resource);',
        'forbid(principal, action, resource == Tool::"a_create");',
      ),
      call,
    )
    t.match(explained, {
      decision: 'forbidden',
      determining: ['policies[1]'],
      policies: [
        { id: 'policies[0]', outcome: 'matches' },
        { id: 'policies[1]', outcome: 'matches' },
      ],
    })
  },
)

t.test('explain: a part that fails with an error is reported as an error', async (t) => {
  const explained = await explainDecision(
    setOf('permit(principal, action, resource) when { principal.claim_team == "x" };'),
    call,
  )
  t.match(explained, {
    errors: ['policies[0]'],
    policies: [{ outcome: 'fails', because: 'when { principal.claim_team == "x" }', absent: ['claim_team'] }],
  })
})

t.test('explain: arguments and hints are part of the request', async (t) => {
  const set = setOf(
    'permit(principal, action, resource) when { context.arg_days < 8 && resource.readOnlyHint };',
  )
  const with8 = { ...call, arguments: { days: 8 }, hints: { readOnlyHint: true } }
  t.match(await explainDecision(set, with8), { policies: [{ because: 'when { context.arg_days < 8 }' }] })
  t.equal((await explainDecision(set, { ...with8, arguments: { days: 7 } })).decision, 'permitted')
})

t.test('explain: many large policies are bounded and do not block other work', async (t) => {
  const clause = Array.from({ length: 30 }, (_, i) => `context has claim_c${i}`).join(' && ')
  const many = Array.from(
    { length: 250 },
    (_, i) => `permit(principal, action, resource) when { ${clause} && ${i} > 0 };`,
  )
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const explained = await explainDecision(setOf(...many), call)
  isDone = true
  t.ok(turns >= 100, `other work had ${turns} turns`)
  t.equal(explained.policies.length, 200)
  t.equal(explained.leftOut, 50)
  t.ok(explained.policies.every(({ because }) => because === 'when { context has claim_c0 }'))
})

t.test("explain: policies are named in their own order, independent of the engine's order", async (t) => {
  const many = Array.from({ length: 12 }, () => 'permit(principal, action, resource);')
  const fails = Array.from(
    { length: 5 },
    () => 'permit(principal, action, resource) when { context.arg_x > 1 };',
  )
  const { determining, errors } = await explainDecision(setOf(...many, ...fails), call)
  t.same(
    determining,
    many.map((_, index) => `policies[${index}]`),
  )
  t.same(
    errors,
    fails.map((_, index) => `policies[${many.length + index}]`),
  )
})
