/**
 * Replay of recorded decisions with other policies: the changes match rules in plain code, and data that a line omits
 * is never guessed.
 */
import t from 'tap'
import { type PolicySet, replayDecisions } from '../../../runtime/policy/index.ts'

const setOf = (...policies: string[]): PolicySet => ({
  serverName: 'front',
  entitiesJson: '[]',
  groupEntityType: 'ServiceGroup',
  policies,
})

interface Call {
  readonly user: string
  readonly groups: readonly string[]
  readonly team: string | null
  readonly tool: string
  readonly backend: string
  readonly original: string
  readonly days: number | null
}

const people = [
  { user: 'ada', groups: ['ops'], team: 'core' },
  { user: 'ben', groups: ['contractors'], team: 'core' },
  { user: 'cleo', groups: ['ops', 'contractors'], team: null },
  { user: 'dan', groups: [], team: 'web' },
]
const tools = ['search', 'delete', 'report', 'create']
const backends = ['prod', 'test']

const calls: Call[] = Array.from({ length: 10_000 }, (_, i) => {
  const person = people[i % people.length] ?? { user: '', groups: [], team: null }
  const original = tools[Math.floor(i / 4) % tools.length] ?? ''
  const backend = backends[Math.floor(i / 16) % 2] ?? ''
  const days = i % 3 === 0 ? null : i % 30
  return { ...person, backend, original, tool: `${backend}_${original}`, days }
})

/** The policies below as plain code. */
const oldRule = ({ groups, team, original }: Call): boolean =>
  groups.includes('ops') || (team === 'core' && original !== 'delete')
const newRule = (call: Call): boolean => {
  const { user, groups, team, backend, original, days } = call
  if (groups.includes('contractors') && backend === 'prod') return false
  if (original === 'delete' && backend === 'prod') return user === 'ada'
  if (original === 'report' && (days === null || days > 7)) return false
  return groups.includes('ops') || team === 'core' || (user === 'dan' && original === 'search')
}
const newPolicies = [
  'permit(principal in ServiceGroup::"ops", action, resource);',
  'permit(principal, action == Action::"call_tool", resource) when { principal has claim_team && principal.claim_team == "core" };',
  'permit(principal == Client::"dan", action, resource) when { resource.original == "search" };',
  'forbid(principal in ServiceGroup::"contractors", action, resource in Backend::"prod");',
  'forbid(principal, action, resource in BackendTool::"prod/delete") unless { principal == Client::"ada" };',
  'forbid(principal, action, resource) when { resource.original == "report" } unless { context has arg_days && context.arg_days <= 7 };',
  'permit(principal == Client::"nobody", action, resource);',
]

function lineOf(call: Call, inputs: unknown, policy: Record<string, unknown> = {}): string {
  const { user, tool, backend, original } = call
  return JSON.stringify({
    type: 'mcp_tool_call',
    subjects: { user_id: user },
    target: { method: 'tools/call', name: tool, type: 'tool', backend, original },
    policy: {
      decision: oldRule(call) ? 'allow' : 'deny',
      reason: ['policies[0]'],
      errors: [],
      inputs,
      ...policy,
    },
  })
}

const read = ({ groups, team, days }: Call) => ({
  mode: 'read',
  groups,
  attributes: { claim_team: team, arg_days: days },
})
const all = ({ user, groups, team, days }: Call) => ({
  mode: 'all',
  groups,
  claims: { sub: user, groups, ...(team === null ? {} : { team }) },
  arguments: days === null ? {} : { days },
})

for (const [mode, inputs] of Object.entries({ read, all })) {
  t.test(`replay: 10,000 lines with inputs ${mode} change as predicted by plain code`, async (t) => {
    const expected = calls.flatMap((call, index) =>
      oldRule(call) === newRule(call)
        ? []
        : [{ line: index + 1, principal: call.user, to: newRule(call) ? 'allow' : 'deny' }],
    )
    const replay = await replayDecisions(
      setOf(...newPolicies),
      calls.map((call) => lineOf(call, inputs(call))),
    )
    t.same(
      replay.flips.map(({ line, principal, to }) => ({ line, principal, to })),
      expected,
    )
    t.ok(expected.length > 1000, 'there are changes of both kinds')
    t.ok(expected.some(({ to }) => to === 'allow'))
    t.match(replay, { decisions: 10_000, skipped: 0, inconclusive: 0 })
    t.equal(replay.unchanged, 10_000 - expected.length)
    t.same(replay.idle, ['policies[6]'], 'a policy that applied to no call')
  })
}

t.test('replay: a line with missing data is inconclusive, unless its other data decides', async (t) => {
  const [first] = calls
  if (!first) return
  const told = { ...first, user: 'zoe' }
  const cases: readonly (readonly [string, readonly string[], string])[] = [
    [
      'a forbid that applies decides',
      [
        'forbid(principal, action, resource == Tool::"prod_search");',
        'permit(principal in ServiceGroup::"ops", action, resource);',
      ],
      'deny',
    ],
    [
      'a permit decides where nothing uncertain forbids',
      ['permit(principal, action, resource);', 'permit(principal in ServiceGroup::"ops", action, resource);'],
      'allow',
    ],
    [
      'nothing uncertain permits',
      [
        'permit(principal == Client::"x", action, resource);',
        'forbid(principal in ServiceGroup::"ops", action, resource);',
      ],
      'deny',
    ],
    [
      'an uncertain forbid',
      [
        'permit(principal, action, resource);',
        'forbid(principal, action, resource) when { principal has claim_x };',
      ],
      'claim_x',
    ],
    ['an uncertain permit', ['permit(principal in ServiceGroup::"ops", action, resource);'], 'groups'],
    ['an argument', ['permit(principal, action, resource) when { context.arg_days < 3 };'], 'arg_days'],
    ['a hint', ['permit(principal, action, resource) when { resource.readOnlyHint };'], 'readOnlyHint'],
  ]
  for (const [name, policies, expected] of cases) {
    for (const decision of ['allow', 'deny'] as const) {
      const { flips, inconclusive, unchanged, lacking } = await replayDecisions(setOf(...policies), [
        lineOf(told, undefined, { decision }),
      ])
      if (expected === 'allow' || expected === 'deny') {
        t.equal(inconclusive, 0, name)
        t.same(
          flips.map(({ to }) => to),
          decision === expected ? [] : [expected],
          name,
        )
        t.equal(unchanged, decision === expected ? 1 : 0, name)
      } else {
        t.match({ inconclusive, flips }, { inconclusive: 1, flips: [] }, name)
        t.same(lacking, [[expected, 1]], name)
      }
    }
  }
})

t.test('replay: lines without a decision, broken lines, and built-in tools of the gateway', async (t) => {
  const own = JSON.stringify({
    subjects: { user_id: 'ada' },
    target: { name: 'find_tool', type: 'tool' },
    policy: { decision: 'allow', reason: [], errors: [] },
  })
  const lines = [
    '{"type":"mcp_ping","target":{}}',
    'no JSON',
    '',
    '[]',
    '{"policy":{"decision":"perhaps"},"target":{"name":"x","type":"tool"}}',
    own,
  ]
  const replay = await replayDecisions(setOf('permit(principal == Client::"x", action, resource);'), lines)
  t.match(replay, { decisions: 1, skipped: 4, unchanged: 1, flips: [] })
  const forbidden = await replayDecisions(setOf('forbid(principal, action, resource);'), [own])
  t.match(forbidden.flips, [{ from: 'allow', to: 'deny', policies: ['policies[0]'] }])
  await t.rejects(replayDecisions(setOf('permit('), lines), { code: 'INVALID_CONFIG' })
})
