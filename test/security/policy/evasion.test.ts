/**
 * Ways around a policy: arguments and claims that the policy and the server could read differently, or that make the
 * evaluation fail. None of them may be allowed.
 */
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import { makeAuthorizer } from '../../../runtime/policy/index.ts'

async function ask(
  policies: readonly string[],
  args: string | undefined,
  claims: Readonly<Record<string, unknown>> = {},
  id = 'pay',
): Promise<string> {
  const authorizer = makeAuthorizer(
    { policies, entitiesJson: '[]', groupEntityType: 'ServiceGroup' },
    { serverName: 'front' },
  )
  const subject = await authorizer.subject(
    makeCaller({ issuer: 'i', subject: 'eve', claims: { sub: 'eve', ...claims } }),
  )
  return authorizer.decide(subject, {
    action: 'call_tool',
    id,
    ...(args === undefined ? {} : { arguments: Buffer.from(args) }),
  })
}

const permitAll = 'permit(principal, action, resource);'
/** Sums above ten are forbidden. */
const limited = [
  permitAll,
  'forbid(principal, action, resource == Tool::"pay") when { context has arg_sum && context.arg_sum > 10 };',
]

t.test('arguments: honest calls are decided correctly', async (t) => {
  t.equal(await ask(limited, '{"sum":5}'), 'permitted')
  t.equal(await ask(limited, '{"sum":50}'), 'forbidden')
  t.equal(await ask(limited, '{}'), 'permitted')
  t.equal(await ask(limited, undefined), 'permitted')
})

t.test("arguments: a number beyond Cedar's range does not bypass a policy", async (t) => {
  for (const sum of ['1e300', '9223372036854775808', '99999999999999999999', '-1e999', '922337203685478.5'])
    t.equal(await ask(limited, `{"sum":${sum}}`), 'forbidden', sum)
  t.equal(await ask(limited, '{"sum":10.5}'), 'forbidden', 'a decimal is not a whole number')
})

t.test('arguments: a value of another type does not bypass a policy', async (t) => {
  for (const sum of ['"50"', 'true', '"\\ud800"'])
    t.equal(await ask(limited, `{"sum":${sum}}`), 'forbidden', sum)
  const marked = [permitAll, 'forbid(principal, action, resource) when { context has arg_sum_present };']
  t.equal(await ask(marked, '{"sum":[50]}'), 'forbidden')
  t.equal(await ask(marked, '{"sum":{"value":50}}'), 'forbidden')
})

t.test('arguments: a duplicate member is rejected, escaped or not', async (t) => {
  for (const args of ['{"sum":5,"sum":50}', '{"sum":5,"\\u0073um":50}', '{"\\u0073um":5,"sum":50}'])
    await t.rejects(ask(limited, args), { code: 'INVALID_PARAMS' }, args)
  t.equal(await ask(limited, '{"\\u0073um":50}'), 'forbidden', 'an escaped name is the same name')
})

t.test('arguments: a name that only differs in case from the one in the policy is rejected', async (t) => {
  for (const name of ['Sum', 'SUM', 'ſum']) {
    t.equal(await ask(limited, `{"${name}":50}`), 'forbidden', name)
    t.equal(await ask(limited, `{"sum":5,"${name}":50}`), 'forbidden', `sum and ${name}`)
    t.equal(
      await ask(limited, `{"${name}":50}`, {}, 'other'),
      'permitted',
      'the policy is about another tool',
    )
  }
})

t.test('arguments: two arguments for one attribute are rejected if a policy reads it', async (t) => {
  const marked = [
    permitAll,
    'forbid(principal, action, resource) when { context has arg_x_present && context.arg_x_present };',
  ]
  t.equal(await ask(marked, '{"x":[1],"x_present":false}'), 'forbidden')
  t.equal(await ask(marked, '{"x_present":false,"x":[1]}'), 'forbidden')
})

t.test('arguments: values other than objects are rejected', async (t) => {
  for (const args of ['[]', '"sum"', '5', 'null', '{"sum":5'])
    await t.rejects(ask(limited, args), { code: 'INVALID_PARAMS' }, args)
})

t.test('arguments: they cannot replace attributes of the resource or claims', async (t) => {
  const named = [
    'permit(principal, action, resource) when { resource.name == "look" && context.claim_admin };',
  ]
  t.equal(await ask(named, '{"name":"look","claim_admin":true}'), 'unmentioned')
})

t.test('claims: they cannot imitate entities or extension values', async (t) => {
  const boss = ['permit(principal, action, resource) when { principal.claim_boss in ServiceGroup::"staff" };']
  const posing = { __entity: { type: 'ServiceGroup', id: 'staff' } }
  t.equal(await ask(boss, undefined, { boss: posing }), 'forbidden')
  t.equal(
    await ask(
      ['permit(principal, action, resource) when { principal.claim_boss.x in ServiceGroup::"staff" };'],
      undefined,
      { boss: { x: posing } },
    ),
    'forbidden',
  )
  const network = ['permit(principal, action, resource) when { principal.claim_net.isLoopback() };']
  t.equal(await ask(network, undefined, { net: { __extn: { fn: 'ip', arg: '127.0.0.1' } } }), 'forbidden')
  t.equal(await ask([permitAll], undefined, { boss: posing }), 'permitted', 'unless no policy reads them')
})

t.test('claims: unusual shapes are denied', async (t) => {
  let deep: unknown = 1
  for (let i = 0; i < 5_000; i++) deep = { deep }
  const read = [
    permitAll,
    'forbid(principal, action, resource) when { principal has claim_odd && principal.claim_odd == 1 };',
  ]
  for (const odd of [deep, [null], Number.NaN, 2 ** 60, '\ud800', () => {}])
    t.equal(await ask(read, undefined, { odd }), 'forbidden')
  const proto = JSON.parse('{"odd":{"__proto__":{"admin":true}}}') as Record<string, unknown>
  t.equal(
    await ask(['permit(principal, action, resource) when { principal.claim_odd.admin };'], undefined, proto),
    'unmentioned',
  )
})

t.test('groups: a claim that is not a list adds no membership', async (t) => {
  const policies = ['permit(principal in ServiceGroup::"ops", action, resource);']
  for (const groups of ['ops', { 0: 'ops', length: 1 }, [['ops']], [{ toString: () => 'ops' }]])
    t.equal(await ask(policies, undefined, { groups }), 'unmentioned')
})

t.test('names: ambiguous text is rejected', async (t) => {
  t.equal(await ask([permitAll], undefined, {}, 'pay\ud800'), 'forbidden')
  t.equal(
    await ask(['permit(principal, action, resource == Tool::"a\\"b");'], undefined, {}, 'a"b'),
    'permitted',
  )
  t.equal(
    await ask(['permit(principal, action, resource == Tool::"pay");'], undefined, {}, 'PAY'),
    'unmentioned',
  )
  t.equal(
    await ask(['permit(principal, action, resource == Tool::"pay");'], undefined, {}, 'pay '),
    'unmentioned',
  )
})
