/**
 * Sends the policy engine texts, entities and requests that are made to overflow or block it. Each gets a response, the
 * engine does not fail, and a valid policy still decides correctly afterwards.
 *
 * CI runs the same 300 cases of each kind every time; FC_RUNS=3000 runs ten times as many other cases.
 */
import fc from 'fast-check'
import t from 'tap'
import { validateResource } from '../../hooks/index.ts'
import { makeCaller } from '../../runtime/net/index.ts'
import { makeAuthorizer } from '../../runtime/policy/index.ts'
import type { Authorizer } from '../../runtime/policy/authorizer.ts'
import type { AccessRequest } from '../../runtime/policy/requests.ts'
import type { PolicySubject } from '../../runtime/policy/subject.ts'
import { cedarViolations, engineFailures } from '../../schemas/cedar/index.ts'
import { GatehouseError } from '../../schemas/index.ts'

const runs = process.env['FC_RUNS']
const cases = runs === undefined ? { numRuns: 300, seed: 20_261_010 } : { numRuns: Number(runs) }

/** Wrappers of an expression, which replaces `@`. */
const around = [
  '(@)',
  '[@]',
  '{a: @}',
  '{"a": @}.a',
  '!@',
  '-@',
  '!(@)',
  'if @ then true else false',
  'if true then @ else 1',
  'if context.x then 1 else @',
  '(if @ then [@] else 2)',
  '@.a',
  '@["a"]',
  '@.contains(1)',
  'context.contains(@)',
  'ip(@)',
  '@ && true',
  'context.x && @',
  '@ || context has y',
  'false || @',
  '@ == 1',
  '1 < @',
  '@ + 1',
  '1 - @',
  '@ * 2',
  '@ has a.b.c',
  '@ in [principal, @]',
  'principal is A in @',
  '@ like "*a*"',
  '[1, @, {b: @}]',
] as const
const leaves = ['true', '1', '"x"', 'principal', 'context.x', 'A::"b"', '[]', '{}', 'context'] as const
const tokens = [
  ...'()[]{},;.!-+*<>@"/\\?|&='.split(''),
  ...[
    '//\r',
    '//\n',
    '&&',
    '||',
    '==',
    '::',
    '"x"',
    'if ',
    'then ',
    'else ',
    'when ',
    'unless ',
    'permit',
    'forbid',
  ],
  ...['principal', ' in ', ' has ', ' like ', ' is ', '?principal', '1', 'é', '\ud800', '\u2028', '\0'],
] as const

/** Number of repetitions: mostly near the bounds, sometimes far beyond. */
const often = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 6 }) },
  { weight: 4, arbitrary: fc.integer({ min: 7, max: 70 }) },
  { weight: 1, arbitrary: fc.integer({ min: 100, max: 4000 }) },
)

/** An expression in many wrappers. A wrapper that doubles it is used only a few times. */
const expression = fc
  .tuple(
    fc.constantFrom(...leaves),
    fc.array(fc.tuple(fc.constantFrom(...around), often), { minLength: 1, maxLength: 4 }),
  )
  .map(([leaf, wrappers]) => {
    let text: string = leaf
    for (const [wrapper, times] of wrappers) {
      const doubles = wrapper.split('@').length > 2
      for (let i = 0; i < (doubles ? Math.min(times, 6) : times) && text.length < 100_000; i++)
        text = wrapper.replaceAll('@', () => text)
    }
    return text
  })

const policyText = fc.oneof(
  { weight: 6, arbitrary: expression.map((body) => `permit(principal, action, resource) when { ${body} };`) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom('when { true }', 'unless { context.x }', 'unless { false } when { context has a }'),
        often,
      )
      .map(([clause, times]) => `forbid(principal, action, resource) ${`${clause} `.repeat(times)};`),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.constantFrom('', 'permit(principal, action, resource) when { '),
        fc.array(fc.tuple(fc.constantFrom(...tokens), often), { maxLength: 12 }),
      )
      .map(([before, soup]) => before + soup.map(([token, times]) => token.repeat(times)).join('')),
  },
)

/** A JSON value that is deep, wide or malformed. */
const value: fc.Arbitrary<unknown> = fc.oneof(
  fc.tuple(fc.constantFrom('list', 'record', 'both', '__entity', '__extn'), often).map(([shape, times]) => {
    let inner: unknown = 1
    for (let i = 0; i < times; i++) {
      if (shape === 'list' || (shape === 'both' && i % 2)) inner = [inner]
      else inner = { [shape.startsWith('__') ? shape : 'a']: inner }
    }
    return inner
  }),
  often.map((times) => 'é'.repeat(times * 40)),
  often.map((times) => Array.from({ length: times }, (_, i) => i)),
  often.map((times) => Object.fromEntries(Array.from({ length: times }, (_, i) => [`a${i}`, `${i}`]))),
  fc.constantFrom<unknown>(null, true, 1e308, -1, 2 ** 53, '\ud800', { __entity: { type: 'A', id: '1' } }),
  fc.json({ maxDepth: 3 }).map((text) => JSON.parse(text) as unknown),
)

const entities = fc.oneof(
  fc.array(
    fc.record({
      uid: fc.constantFrom<unknown>(
        { type: 'A', id: '1' },
        { __entity: { type: 'Client', id: 'ada' } },
        1,
        {},
      ),
      attrs: fc.oneof(fc.dictionary(fc.string(), value, { maxKeys: 3 }), value),
      parents: fc.oneof(fc.constant([]), value),
    }),
    { maxLength: 3 },
  ),
  fc.tuple(often, fc.integer({ min: 1, max: 20 })).map(([length, width]) =>
    Array.from({ length }, (_, i) => ({
      uid: { type: 'A', id: `${i}` },
      attrs: {},
      parents: Array.from({ length: width }, (_, k) => ({ type: 'A', id: `${i + k + 1}` })),
    })),
  ),
  value,
)

/** Calls the engine with a deeper stack than any server has. */
function deep<T>(levels: number, call: () => T): T {
  return levels === 0 ? call() : deep(levels - 1, call)
}

/** Expects a decision, or the rejection of an invalid request. */
function decide(authorizer: Authorizer, subject: PolicySubject, question: AccessRequest): void {
  try {
    deep(200, () => authorizer.decide(subject, question))
  } catch (error) {
    if (!(error instanceof GatehouseError) || error.code !== 'INVALID_PARAMS') throw error
  }
}

const claims = { sub: 'ada' }
const caller = makeCaller({ issuer: 'i', subject: 'ada', claims })
const config = { entitiesJson: '[]', groupEntityType: 'ServiceGroup' }

async function goodPolicyDecides(): Promise<void> {
  const authorizer = makeAuthorizer(
    { ...config, policies: ['permit(principal == Client::"ada", action, resource == Tool::"a");'] },
    { serverName: 's' },
  )
  const subject = await authorizer.subject(caller)
  const [yes, no] = ['a', 'b'].map((id) => authorizer.decide(subject, { action: 'call_tool', id }))
  if (yes !== 'permitted' || no !== 'unmentioned') throw new Error(`a good policy decides ${yes}, ${no}`)
}

function authzConfig(policies: readonly string[], entitiesJson: string): unknown {
  return {
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPAuthzConfig',
    metadata: { name: 'x', namespace: 'x' },
    spec: { type: 'cedarv1', config: { policies, entities_json: entitiesJson } },
  }
}

t.test('hostile policies and entities are checked, and accepted ones decide', async (t) => {
  const before = engineFailures()
  let accepted = 0
  await fc.assert(
    fc.asyncProperty(policyText, entities, value, async (policy, document, argument) => {
      const entitiesJson = JSON.stringify(document)
      const violations = deep(200, () => cedarViolations([policy], entitiesJson))
      const refused = validateResource(authzConfig([policy], entitiesJson)).violations
      if (refused.length > 0 !== violations.length > 0) throw new Error('admission checks otherwise')
      for (const usable of violations.length === 0 ? [entitiesJson] : ['[]']) {
        if (cedarViolations([policy], usable).length > 0) continue
        accepted += 1
        const authorizer = makeAuthorizer(
          { ...config, policies: [policy], entitiesJson: usable },
          { serverName: 's' },
        )
        const subject = await authorizer.subject(
          makeCaller({ issuer: 'i', subject: 'ada', claims: { ...claims, x: argument, groups: argument } }),
        )
        const question = {
          action: 'call_tool',
          id: 'a',
          arguments: Buffer.from(JSON.stringify({ x: argument, y: 1 })),
        } as const
        decide(authorizer, subject, question)
      }
      await goodPolicyDecides()
    }),
    cases,
  )
  t.ok(accepted > cases.numRuns / 10, `${accepted} hostile cases were accepted and decided`)
  t.equal(engineFailures(), before, 'the bounds protect the engine')
})

t.test('hostile claims and requests always get a decision', async (t) => {
  const before = engineFailures()
  const policies = [
    'permit(principal, action, resource) when { context has claim_x && context.claim_x == context.arg_x };',
    'forbid(principal, action, resource) when { resource has arg_y && resource.arg_y like "*a*b*" };',
    'forbid(principal, action, resource) when { context == {arg_z: 1} };',
  ]
  const authorizer = makeAuthorizer({ ...config, policies }, { serverName: 's' })
  await fc.assert(
    fc.asyncProperty(value, value, fc.string({ maxLength: 20 }), async (claim, argument, id) => {
      const subject = await authorizer.subject(
        makeCaller({ issuer: 'i', subject: id, claims: { sub: id, x: claim, roles: claim } }),
      )
      const json = JSON.stringify({ x: claim, y: argument, z: 1 })
      decide(authorizer, subject, { action: 'call_tool', id, arguments: Buffer.from(json) })
      await goodPolicyDecides()
    }),
    cases,
  )
  t.equal(engineFailures(), before)
})
