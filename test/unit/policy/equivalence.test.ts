/**
 * Compares decisions with and without optimization: random policies, callers, entities and requests are decided as in
 * production and by the plain engine with all attributes and entities.
 */
import { createRequire } from 'node:module'
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs'
import fc from 'fast-check'
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import { makeAuthorizer } from '../../../runtime/policy/index.ts'

const engine = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as typeof Cedar

const groups = ['g0', 'g1', 'g2', 'g3']
const tools = ['t0', 't1']
const entities = [
  ...groups.map((id) => `ServiceGroup::"${id}"`),
  ...tools.map((id) => `Tool::"${id}"`),
  'Client::"ada"',
  'Client::"bob"',
  'MCP::"front"',
  'Shelf::"s0"',
  'Action::"call_tool"',
  'Action::"act"',
]
const attributes = [
  'claim_a',
  'claim_b',
  'arg_a',
  'arg_b',
  'arg_a_present',
  'level',
  'peer',
  'name',
  'readOnlyHint',
]

const variable = fc.constantFrom('principal', 'resource', 'action')
const attribute = fc.constantFrom(...attributes)
const entity = fc.constantFrom(...entities)
const scalar = fc.constantFrom('1', '2', '"x"', 'true', '"t0"')

/** Conditions that read entities by name, chains, records, and the whole context. */
const { condition } = fc.letrec<{ condition: string; value: string; holder: string }>((tie) => ({
  holder: fc.oneof(
    { depthSize: 'small' },
    variable,
    fc.constant('context'),
    entity,
    fc.tuple(tie('holder'), attribute).map(([of, name]) => `${of}.${name}`),
    fc
      .tuple(tie('condition'), tie('holder'), tie('holder'))
      .map(([c, a, b]) => `(if ${c} then ${a} else ${b})`),
    fc.tuple(tie('value')).map(([value]) => `{"left": ${value}, "Var": principal}["Var"]`),
  ),
  value: fc.oneof(
    { depthSize: 'small' },
    scalar,
    fc.tuple(tie('holder'), attribute).map(([of, name]) => `${of}["${name}"]`),
  ),
  condition: fc.oneof(
    { depthSize: 'small' },
    fc.tuple(tie('value'), tie('value')).map(([a, b]) => `${a} == ${b}`),
    fc.tuple(tie('holder'), tie('holder')).map(([a, b]) => `${a} != ${b}`),
    fc.tuple(tie('holder'), attribute).map(([of, name]) => `${of} has ${name}`),
    fc.tuple(tie('holder'), attribute).map(([of, name]) => `${of} has ${name} && ${of}.${name} == 1`),
    fc.tuple(tie('holder'), entity).map(([a, b]) => `${a} in ${b}`),
    fc.tuple(tie('holder'), entity).map(([a, b]) => `${a} in [${b}, ServiceGroup::"g3"]`),
    fc.tuple(tie('holder'), entity).map(([a, b]) => `${a} is ServiceGroup in ${b}`),
    fc.tuple(entity, tie('holder')).map(([a, b]) => `[${a}].contains(${b})`),
    fc.constant('true'),
    fc.constant('context == {claim_a: 1}'),
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]) => `(${a}) || (${b})`),
    fc.tuple(tie('condition')).map(([a]) => `!(${a})`),
  ),
}))

const policy = fc
  .record({
    effect: fc.constantFrom('permit', 'permit', 'forbid'),
    principal: fc.constantFrom(
      'principal',
      'principal == Client::"ada"',
      'principal in ServiceGroup::"g1"',
      'principal is Client',
    ),
    action: fc.constantFrom(
      'action',
      'action == Action::"call_tool"',
      'action in [Action::"act"]',
      'action == Action::"get_prompt"',
    ),
    resource: fc.constantFrom(
      'resource',
      'resource == Tool::"t0"',
      'resource is Tool in MCP::"front"',
      'resource in Shelf::"s0"',
    ),
    condition,
  })
  .map(({ effect, principal, action, resource, condition }) => ({
    effect,
    text: `${effect}(${principal}, ${action}, ${resource}) when { ${condition} };`,
  }))

/** Parents only point from lower to higher names, so there are no cycles. */
const staticEntities = fc
  .record({
    above: fc.array(fc.tuple(fc.constantFrom(0, 1, 2), fc.constantFrom(1, 2, 3)), { maxLength: 4 }),
    levels: fc.dictionary(fc.constantFrom(...groups), fc.constantFrom(1, 2), { maxKeys: 3 }),
    ada: fc.boolean(),
    shelved: fc.boolean(),
    acting: fc.boolean(),
  })
  .map(({ above, levels, ada, shelved, acting }) => {
    const group = (id: string) => ({ type: 'ServiceGroup', id })
    return [
      ...groups.map((id, at) => ({
        uid: group(id),
        attrs: levels[id] === undefined ? {} : { level: levels[id], peer: { __entity: group('g3') } },
        parents: above.filter(([from, to]) => from === at && to > at).map(([, to]) => group(`g${to}`)),
      })),
      ...(ada
        ? [
            {
              uid: { type: 'Client', id: 'ada' },
              attrs: { level: 1, peer: { __entity: group('g0') } },
              parents: [group('g1')],
            },
          ]
        : []),
      ...(shelved
        ? [{ uid: { type: 'Tool', id: 't0' }, attrs: { level: 2 }, parents: [{ type: 'Shelf', id: 's0' }] }]
        : []),
      ...(acting
        ? [
            {
              uid: { type: 'Action', id: 'call_tool' },
              attrs: { level: 1 },
              parents: [{ type: 'Action', id: 'act' }],
            },
          ]
        : []),
    ]
  })

const simple = fc.constantFrom<string | number | boolean>(1, 2, 'x', true)
const request = fc.record({
  sub: fc.constantFrom('ada', 'bob'),
  claims: fc.dictionary(fc.constantFrom('a', 'b'), simple),
  groups: fc.uniqueArray(fc.constantFrom('g0', 'g1', 'g2'), { maxLength: 2 }),
  tool: fc.constantFrom(...tools),
  arguments: fc.option(fc.dictionary(fc.constantFrom('a', 'b'), fc.oneof(simple, fc.constant([1])))),
  readOnlyHint: fc.option(fc.boolean()),
})

type Request = typeof request extends fc.Arbitrary<infer R> ? R : never
type Configured = typeof staticEntities extends fc.Arbitrary<infer S> ? S : never

/** Returns the request for the plain engine, with every attribute and every entity. */
function everything(asked: Request, configured: Configured): Omit<Cedar.AuthorizationCall, 'policies'> {
  const claims: Cedar.Context = Object.fromEntries(
    Object.entries({ sub: asked.sub, groups: asked.groups, ...asked.claims }).map(([name, value]) => [
      `claim_${name}`,
      value,
    ]),
  )
  const args: Cedar.Context = Object.fromEntries(
    Object.entries(asked.arguments ?? {}).map(([name, value]) =>
      typeof value === 'object' ? [`arg_${name}_present`, true] : [`arg_${name}`, value],
    ),
  )
  const principal = { type: 'Client', id: asked.sub }
  const action = { type: 'Action', id: 'call_tool' }
  const resource = { type: 'Tool', id: asked.tool }
  const hints = asked.readOnlyHint === null ? {} : { readOnlyHint: asked.readOnlyHint }
  const own = [
    { uid: principal, attrs: claims, parents: asked.groups.map((id) => ({ type: 'ServiceGroup', id })) },
    { uid: action, attrs: { operation: 'call' }, parents: [] },
    {
      uid: resource,
      attrs: { name: asked.tool, operation: 'call', feature: 'tool', ...hints, ...args },
      parents: [{ type: 'MCP', id: 'front' }],
    },
  ]
  const same = (a: { type: string; id: string }, b: { type: string; id: string }) =>
    a.type === b.type && a.id === b.id
  const merged = own.map((entity) => {
    const known = configured.find(({ uid }) => same(uid, entity.uid))
    return known
      ? {
          uid: entity.uid,
          attrs: { ...known.attrs, ...entity.attrs },
          parents: [...entity.parents, ...known.parents],
        }
      : entity
  })
  const others = configured.filter(({ uid }) => !own.some((entity) => same(entity.uid, uid)))
  return { principal, action, resource, context: { ...claims, ...args }, entities: [...merged, ...others] }
}

function plainDecision(
  policies: readonly { effect: string; text: string }[],
  asked: Request,
  configured: Configured,
): string {
  const told = everything(asked, configured)
  const response = engine.isAuthorized({
    ...told,
    policies: {
      staticPolicies: Object.fromEntries(policies.map(({ text }, index) => [String(index), text])),
    },
  })
  if (response.type === 'failure') return `failure ${response.errors.map(({ message }) => message).join()}`
  const { decision, diagnostics } = response.response
  if (diagnostics.errors.some(({ policyId }) => policies[Number(policyId)]?.effect === 'forbid'))
    return 'forbidden'
  if (decision === 'allow') return 'permitted'
  return diagnostics.reason.length > 0 ? 'forbidden' : 'unmentioned'
}

t.test('decisions: omitting data that no policy reads changes no decision', async (t) => {
  const seen = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(policy, { minLength: 1, maxLength: 4 }),
      staticEntities,
      fc.array(request, { minLength: 1, maxLength: 6 }),
      async (policies, configured, requests) => {
        const authorizer = makeAuthorizer(
          {
            policies: policies.map(({ text }) => text),
            entitiesJson: JSON.stringify(configured),
            groupEntityType: 'ServiceGroup',
          },
          { serverName: 'front' },
        )
        // Runs all requests twice, so that cached decisions are compared, too.
        for (const asked of [...requests, ...requests]) {
          const { sub } = asked
          const claims = { sub, groups: asked.groups, ...asked.claims }
          const subject = await authorizer.subject(makeCaller({ issuer: 'i', subject: sub, claims }))
          const decision = authorizer.decide(subject, {
            action: 'call_tool',
            id: asked.tool,
            arguments: asked.arguments === null ? undefined : Buffer.from(JSON.stringify(asked.arguments)),
            hints: asked.readOnlyHint === null ? {} : { readOnlyHint: asked.readOnlyHint },
          })
          const plain = plainDecision(policies, asked, configured)
          seen.set(plain, (seen.get(plain) ?? 0) + 1)
          if (decision !== plain) throw new Error(`here ${decision}, plainly ${plain}`)
        }
      },
    ),
    { numRuns: Number(process.env['FC_RUNS'] ?? 300) },
  )
  // Without all three decisions, the comparison would prove little.
  for (const decision of ['permitted', 'forbidden', 'unmentioned'])
    t.ok((seen.get(decision) ?? 0) > 20, `${decision}: ${seen.get(decision)} times`)
})
