/** Errors in policies and entities are reported before the start, with their location. */
import t from 'tap'
import { makeAuthorizer } from '../../../runtime/policy/index.ts'
import {
  cedarViolations,
  engineAnswers,
  EngineFailure,
  engineFailures,
  PreparedPolicies,
} from '../../../schemas/cedar/index.ts'
import { callEngine } from '../../../schemas/cedar/engine.ts'
import { GatehouseError } from '../../../schemas/index.ts'

const good = 'permit(principal, action, resource);'

t.test('cedarProblems: returns nothing for valid policies', async (t) => {
  t.strictSame(cedarViolations([good], '[]'), [])
  t.strictSame(
    cedarViolations([`${good}\n// two in one text\nforbid(principal, action, resource);`], '[]'),
    [],
  )
  const entity = { uid: { __entity: { type: 'ServiceGroup', id: 'a' } }, attrs: {}, parents: [] }
  t.strictSame(cedarViolations([good], JSON.stringify([entity])), [])
})

t.test('cedarProblems: each error names the index of its policy', async (t) => {
  const violations = cedarViolations(
    ['permit(principal)', good, '', '// nothing here', 'permit(principal == ?principal, action, resource);'],
    '[]',
  )
  t.strictSame(
    violations.map(({ path }) => path),
    ['policies[0]', 'policies[2]', 'policies[3]', 'policies[4]'],
  )
  t.match(violations[0]?.message, /^is not a Cedar policy: .*character \d+/)
  t.match(violations[1]?.message, /contains no policy/)
  t.match(violations[3]?.message, /template/)
})

t.test('cedarProblems: reports errors in the entities', async (t) => {
  const uid = { type: 'ServiceGroup', id: 'a' }
  const entity = { uid, attrs: {}, parents: [] }
  for (const [text, message] of [
    ['{', /is not JSON/],
    ['{}', /must be a JSON list/],
    ['[1]', /must be a JSON list/],
    ['[{"uid":{"type":"A","id":"1"}}]', /are not Cedar entities/],
    [JSON.stringify([entity, { ...entity, attrs: { x: 1 } }]), /duplicate/],
    [JSON.stringify([{ ...entity, attrs: { x: null } }]), /null/],
    [
      JSON.stringify([
        { ...entity, parents: [{ type: 'B', id: '1' }] },
        { uid: { type: 'B', id: '1' }, attrs: {}, parents: [uid] },
      ]),
      /cycle/,
    ],
  ] as const) {
    const [violation, ...more] = cedarViolations([good], text)
    t.equal(violation?.path, 'entitiesJson', text)
    t.match(violation?.message, message)
    t.equal(more.length, 0)
  }
})

t.test('makeAuthorizer: throws one error that names every problem', async (t) => {
  const start = (policies: readonly string[], entitiesJson = '[]') =>
    makeAuthorizer({ policies, entitiesJson, groupEntityType: 'ServiceGroup' }, { serverName: 'front' })
  t.throws(() => start([good, 'nonsense'], '{'), {
    code: 'INVALID_CONFIG',
    message: /policies\[1\]: is not a Cedar policy[^]*entitiesJson: is not JSON/,
  })
  t.throws(() => start([]), { code: 'INVALID_CONFIG', message: /policies: requires at least one policy/ })
  t.doesNotThrow(() => start([good]))
  try {
    start(['nonsense'])
  } catch (error) {
    t.ok(error instanceof GatehouseError)
  }
})

const when = (condition: string): string => `permit(principal, action, resource) when { ${condition} };`
const nested = (open: string, inside: string, close: string, times: number): string =>
  open.repeat(times) + inside + close.repeat(times)

/** Texts that used to overflow or block the engine, and the expected error. */
const monsters: Readonly<Record<string, readonly [string, RegExp]>> = {
  parentheses: [
    when(nested('(', 'true', ')', 200)),
    /nests brackets more than 32 levels deep \(character \d+\)/,
  ],
  lists: [when(`${nested('[', '1', ']', 500)} == []`), /nests brackets/],
  records: [when(`${nested('{a: ', '1', '}', 200)} == {}`), /nests brackets/],
  'parentheses after a comment that ends with a return': [
    `// a\r${when(nested('(', 'true', ')', 200))}`,
    /nests brackets/,
  ],
  accessors: [when(`context${'.a'.repeat(5000)}`), /nests operators more than 64 levels deep/],
  indexes: [when(`context${'["a"]'.repeat(500)}`), /nests operators/],
  calls: [when(`context.a${'.contains(1)'.repeat(500)}`), /nests operators/],
  sums: [when(`1${' + 1'.repeat(5000)} == 1`), /nests operators/],
  products: [when(`1${' * 1'.repeat(500)} == 1`), /nests operators/],
  conjunctions: [when(`true${' && context.a'.repeat(500)}`), /nests operators/],
  alternatives: [when(`true${' || context.a'.repeat(500)}`), /nests operators/],
  conditions: [
    `permit(principal, action, resource)${' unless { context.a }'.repeat(500)};`,
    /nests operators/,
  ],
  decisions: [when(`${'if context.a then '.repeat(200)}1${' else 2'.repeat(200)} == 1`), /nests operators/],
  'decisions in lists': [
    when(`${nested('[if context.a then ', '1', ' else 2]', 31)} == [${'1 + '.repeat(40)}1]`),
    /nests operators/,
  ],
  tokens: ['; '.repeat(10_000), /contains more than 8192 tokens; split the text/],
  'a long text': [`// ${'x'.repeat(70_000)}`, /is longer than 65536 characters/],
  'a long pattern': [when(`context.a like "*${'a'.repeat(300)}*"`), /pattern longer than 256 characters/],
  'a bracket too few': ['permit(principal, action, resource', /is missing \) at the end/],
  'a bracket too many': ['permit(principal, action, resource));', /contains \) without a matching bracket/],
  'brackets crossed': [when('[(1])'), /contains \] without a matching bracket/],
  'a string without end': ['@id("x) permit(principal, action, resource);', /a string that is not closed/],
  'half a character': [when('context.a == "\ud800"'), /half a character/],
}

t.test('cedarProblems: a hostile text is rejected with a reason, and the engine keeps working', async (t) => {
  const before = engineFailures()
  for (const [name, [text, message]] of Object.entries(monsters)) {
    const violations = cedarViolations([good, text, good], '[]')
    t.equal(violations.length, 1, name)
    t.equal(violations[0]?.path, 'policies[1]', name)
    t.match(violations[0]?.message, message, name)
  }
  t.strictSame(cedarViolations([good], '[]'), [])
  t.equal(engineFailures(), before, 'none of them reached the engine')
})

t.test('cedarProblems: texts within the bounds are accepted', async (t) => {
  for (const text of [
    when(nested('(', 'true', ')', 30)),
    when(`${nested('[', '1', ']', 30)} == []`),
    when(Array.from({ length: 60 }, (_, i) => `context.a == "${i}"`).join(' || ')),
    when('context.constructor.toString has __proto__'),
    when(`["${Array.from({ length: 2000 }, (_, i) => i).join('", "')}"].contains(context.a)`),
    when(`"${'('.repeat(500)}" == "${'.a'.repeat(500)}" // ${'['.repeat(500)}\n`),
    when('if context has a then context.a else if context has b then context.b else false'),
    `permit(principal in A::B::C::"x", action in [Action::"a", Action::"b"], resource is D::E);`,
    Array.from({ length: 150 }, () => good).join('\n'),
  ])
    t.strictSame(cedarViolations([text], '[]'), [], text.slice(0, 80))
})

t.test('cedarProblems: the size of a set is bounded, and so is the number of reported errors', async (t) => {
  t.match(cedarViolations(Array(1001).fill(good), '[]'), [{ path: 'policies', message: /more than 1000/ }])
  const long = `// ${'x'.repeat(60_000)}\n${good}`
  t.match(cedarViolations(Array(5).fill(long), '[]'), [
    { path: 'policies', message: /262144 characters in total/ },
  ])
  const wrong = `permit(${'x '.repeat(3_000)});`
  const violations = cedarViolations(Array(10).fill(wrong), '[]')
  t.equal(violations.length, 4)
  t.match(violations[3], {
    path: 'policies[3]',
    message: /was not checked, because the texts before it contain too many errors/,
  })
})

t.test('cedarProblems: entities are bounded', async (t) => {
  const entity = (id: number | string, parents: readonly (number | string)[], attrs: unknown = {}) => ({
    uid: { type: 'A', id: `${id}` },
    attrs,
    parents: parents.map((parent) => ({ type: 'A', id: `${parent}` })),
  })
  let deep: unknown = 1
  for (let i = 0; i < 200; i++) deep = i % 2 ? [deep] : { a: deep }
  const layers = Array.from({ length: 30 }, (_, layer) =>
    Array.from({ length: 12 }, (_, i) =>
      entity(
        `${layer}.${i}`,
        Array.from({ length: 12 }, (_, above) => `${layer + 1}.${above}`),
      ),
    ),
  ).flat()
  for (const [entities, message] of [
    [[entity(1, [], { x: deep })], /nested more than 32 levels deep/],
    [[entity(1, [], { x: Array(30_000).fill(1) })], /contain more than 20000 values/],
    [[entity(1, [], { x: 'x'.repeat(300_000) })], /is longer than 262144 characters/],
    [Array.from({ length: 2000 }, (_, i) => entity(i, [i + 1])), /hierarchy with more than 32 levels/],
    [layers, /too many paths/],
  ] as const) {
    const violations = cedarViolations([good], JSON.stringify(entities))
    t.match(violations, [{ path: 'entitiesJson', message }])
  }
  const honest = Array.from({ length: 500 }, (_, i) => entity(i, i < 490 ? [490 + (i % 10)] : []))
  t.strictSame(cedarViolations([good], JSON.stringify(honest)), [])
  t.match(cedarViolations([good], '['.repeat(100_000)), [{ message: /is not JSON/ }])
})

t.test('engine: a failed instance is replaced, and prepared policies keep working', async (t) => {
  const policies = new PreparedPolicies({ a: 'permit(principal == A::"1", action, resource);' })
  const decide = () => {
    const uid = { type: 'A', id: '1' }
    const call = { principal: uid, action: uid, resource: uid, context: {}, entities: [] }
    const response = policies.authorize(call)
    return response.type === 'success' ? response.response.decision : response.errors
  }
  t.equal(decide(), 'allow')
  const before = engineFailures()
  const monster = { staticPolicies: when(nested('(', 'true', ')', 5000)) }
  t.throws(() => callEngine((engine) => engine.checkParsePolicySet(monster)), EngineFailure)
  t.equal(engineFailures(), before + 1)
  t.equal(decide(), 'allow', 'in a new instance, where the policies had to be prepared again')
  t.equal(engineAnswers(), true)
})

t.test('engine: its memory is bounded with many sets of policies', async (t) => {
  const sets = Array.from(
    { length: 250 },
    (_, i) => new PreparedPolicies({ a: `permit(principal == A::"${i}", action, resource);` }),
  )
  const uid = { type: 'A', id: '7' }
  const decide = (set: PreparedPolicies | undefined) =>
    set?.authorize({ principal: uid, action: uid, resource: uid, context: {}, entities: [] })
  const used = new Set<unknown>()
  for (const set of sets) {
    t.equal(set.check(), undefined)
    callEngine((engine) => used.add(engine))
  }
  t.equal(used.size, 3, 'a new engine after a hundred sets')
  t.match(decide(sets[7]), { response: { decision: 'allow' } })
  t.match(decide(sets[8]), { response: { decision: 'deny' } })
})
