/**
 * Cached decisions. A decision must not be reused when a value that a policy reads differs. The tests count calls of
 * the real engine.
 */
import { createRequire } from 'node:module'
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs'
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import { makeAuthorizer } from '../../../runtime/policy/index.ts'
import type { AccessRequest } from '../../../runtime/policy/requests.ts'

const engine = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as {
  statefulIsAuthorized: typeof Cedar.statefulIsAuthorized
}
const real = engine.statefulIsAuthorized
let calls = 0
engine.statefulIsAuthorized = (call) => {
  calls++
  return real(call)
}

/** Decides the requests in order and returns the number of engine calls for each. */
function counter(policies: readonly string[], entitiesJson = '[]') {
  const authorizer = makeAuthorizer(
    { policies, entitiesJson, groupEntityType: 'ServiceGroup' },
    { serverName: 'front' },
  )
  return async function count(
    claims: Readonly<Record<string, unknown>>,
    question: Partial<Omit<AccessRequest, 'arguments'>> & { readonly arguments?: string } = {},
  ): Promise<number> {
    const caller = makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada', ...claims } })
    const subject = await authorizer.subject(caller)
    const { arguments: args, ...rest } = question
    const before = calls
    authorizer.decide(subject, {
      action: 'call_tool',
      id: 'echo',
      ...rest,
      ...(args === undefined ? {} : { arguments: Buffer.from(args) }),
    })
    return calls - before
  }
}

t.test('memo: a repeated request of the same caller calls the engine once', async (t) => {
  const count = counter(['permit(principal in ServiceGroup::"ops", action, resource);'])
  t.equal(await count({ groups: ['ops'] }), 1)
  t.equal(await count({ groups: ['ops'] }), 0)
  t.equal(await count({ groups: ['ops'] }, { arguments: '{"x":1}' }), 0, 'no policy reads the arguments')
  t.equal(await count({ groups: ['ops'] }, { id: 'other' }), 1)
  t.equal(await count({ groups: ['ops'] }, { action: 'get_prompt' }), 1)
  t.equal(await count({ groups: ['dev'] }), 1, 'another group')
  t.equal(await count({ groups: ['ops'], sub: 'bob' }), 1, 'another principal')
})

t.test('memo: a new token is cached unless a policy reads a changed claim', async (t) => {
  const count = counter(['permit(principal, action, resource) when { principal.claim_level > 3 };'])
  t.equal(await count({ level: 4, exp: 1, jti: 'a' }), 1)
  t.equal(await count({ level: 4, exp: 2, jti: 'b' }), 0)
  t.equal(await count({ level: 5, exp: 2, jti: 'b' }), 1)
})

t.test('memo: hints are part of the key when a policy reads them', async (t) => {
  const count = counter(['permit(principal, action, resource) when { resource has readOnlyHint };'])
  t.equal(await count({}, { hints: { readOnlyHint: true } }), 1)
  t.equal(await count({}, { hints: { readOnlyHint: false } }), 1)
  t.equal(await count({}), 1)
  t.equal(
    await count({}, { hints: { readOnlyHint: true, openWorldHint: true } }),
    0,
    'no policy reads that hint',
  )
})

t.test(
  'memo: decisions that read arguments are not cached, other decisions of the same policies are',
  async (t) => {
    const count = counter([
      'permit(principal, action, resource);',
      'forbid(principal, action == Action::"call_tool", resource == Tool::"pay") when { context has arg_sum && context.arg_sum > 10 };',
    ])
    t.equal(await count({}, { id: 'pay', arguments: '{"sum":1}' }), 1)
    t.equal(await count({}, { id: 'pay', arguments: '{"sum":1}' }), 1)
    t.equal(await count({}, { id: 'echo', arguments: '{"sum":1}' }), 1, 'the first time')
    t.equal(await count({}, { id: 'echo', arguments: '{"sum":2}' }), 0, 'no policy reads its arguments')
    t.equal(
      await count({}, { id: 'pay', arguments: '{"note":"x"}' }),
      1,
      'no argument that a policy reads is given',
    )
    t.equal(await count({}, { id: 'pay', arguments: '{"note":"y"}' }), 0)
    t.equal(await count({}, { id: 'pay' }), 0, 'the same as in a list')
  },
)

t.test('memo: a policy that reads the whole context is evaluated for every argument', async (t) => {
  const count = counter([
    'permit(principal, action, resource) unless { context == {claim_sub: "ada", arg_x: 1} };',
  ])
  t.equal(await count({}, { arguments: '{"x":1}' }), 1)
  t.equal(await count({}, { arguments: '{"x":2}' }), 1)
})

t.test('memo: overlong names are not cached', async (t) => {
  const count = counter(['permit(principal, action, resource);'])
  t.equal(await count({}, { id: 'x'.repeat(600) }), 1)
  t.equal(await count({}, { id: 'x'.repeat(600) }), 1)
})
