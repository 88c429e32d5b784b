/** What is wrong with policies and entities is said before anything starts, with its place. */
import t from 'tap'
import { GatehouseError } from '../../../schemas/index.ts'
import { checkPolicies, makeAuthorizer } from '../../../runtime/policy/index.ts'

const good = 'permit(principal, action, resource);'

t.test('checkPolicies: is silent about what can be used', async (t) => {
  t.strictSame(checkPolicies([good], '[]'), [])
  t.strictSame(checkPolicies([`${good}\n// two in one text\nforbid(principal, action, resource);`], '[]'), [])
  const entity = { uid: { __entity: { type: 'ServiceGroup', id: 'a' } }, attrs: {}, parents: [] }
  t.strictSame(checkPolicies([good], JSON.stringify([entity])), [])
})

t.test('checkPolicies: names the index of every policy at fault', async (t) => {
  const problems = checkPolicies(
    ['permit(principal', good, '', '// nothing here', 'permit(principal == ?principal, action, resource);'],
    '[]',
  )
  t.strictSame(
    problems.map(({ path }) => path),
    ['policies[0]', 'policies[2]', 'policies[3]', 'policies[4]'],
  )
  t.match(problems[0]?.message, /^is not a Cedar policy: .*character \d+/)
  t.match(problems[1]?.message, /holds no policy/)
  t.match(problems[3]?.message, /template/)
})

t.test('checkPolicies: says what is wrong with the entities', async (t) => {
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
    const [problem, ...more] = checkPolicies([good], text)
    t.equal(problem?.path, 'entitiesJson', text)
    t.match(problem?.message, message)
    t.equal(more.length, 0)
  }
})

t.test('makeAuthorizer: refuses to start and names every fault at once', async (t) => {
  const start = (policies: readonly string[], entitiesJson = '[]') =>
    makeAuthorizer({ policies, entitiesJson, groupEntityType: 'ServiceGroup' }, { serverName: 'front' })
  t.throws(() => start([good, 'nonsense'], '{'), {
    code: 'INVALID_CONFIG',
    message: /policies\[1\]: is not a Cedar policy[^]*entitiesJson: is not JSON/,
  })
  t.throws(() => start([]), { code: 'INVALID_CONFIG', message: /policies: needs at least one policy/ })
  t.doesNotThrow(() => start([good]))
  try {
    start(['nonsense'])
  } catch (error) {
    t.ok(error instanceof GatehouseError)
  }
})
