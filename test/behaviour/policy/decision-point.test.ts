/**
 * An external decision point, over HTTP in both eras: its requests, the effect of its responses, and compatibility with
 * decision points of another gateway.
 */
import t from 'tap'
import { startDecisionPoint } from '../../helpers/decisions/decision-point.ts'
import { until } from '../../helpers/redis.ts'
import { sendJson } from '../../helpers/vmcp/json-server.ts'
import { type Ask, eras, startDecisionRig, toolsIn } from '../../helpers/decisions/decision-rig.ts'

const echo = (ask: Ask, text = 'hello') => ask('tools/call', { name: 'echo', arguments: { text } })
const denied = 'call denied by authorization policy'
const unavailable = 'authorization check failed: try again later'

for (const era of eras) {
  t.test(`${era} era: works with decision points of other gateways`, async (t) => {
    const point = await startDecisionPoint(({ resource }) => !resource.endsWith(':test_simple_text'))
    t.teardown(() => point.close())
    const start = (more: Record<string, unknown> = {}) =>
      startDecisionRig(t, { http: { url: point.url }, claimMapping: 'standard', ...more })
    const claims = { roles: ['dev'], groups: ['team'], scope: 'read write', clearance: 'HIGH', secret: 'x' }
    const last = () => point.asked.findLast(({ question }) => question.operation === 'mcp:tool:call')

    await t.test('an allowed call is executed', async (t) => {
      const ask = await (await start()).as(era, 'alice')
      t.match((await echo(ask)).text, 'hello')
    })
    await t.test('a denied call is rejected with code 403', async (t) => {
      const ask = await (await start()).as(era, 'alice')
      const { response } = await ask('tools/call', { name: 'test_simple_text', arguments: {} })
      t.match(response?.error, { code: 403, message: denied })
    })
    await t.test('a request contains exactly principal, operation, resource and context', async (t) => {
      const ask = await (await start()).as(era, 'alice')
      await echo(ask)
      t.same(last()?.question, {
        principal: { sub: 'alice' },
        operation: 'mcp:tool:call',
        resource: 'mrn:mcp:test-vmcp:tool:echo',
        context: {},
      })
      t.match(last(), { path: '/decision', headers: { 'content-type': 'application/json' } })
      t.notOk(last()?.headers.authorization, "the caller's token is not sent")
      await ask('prompts/get', { name: 'test_simple_prompt' })
      await ask('resources/read', { uri: 'test://static-text' })
      const more = new Set(point.asked.map(({ question }) => `${question.operation} ${question.resource}`))
      t.ok(more.has('mcp:prompt:get mrn:mcp:test-vmcp:prompt:test_simple_prompt'))
      t.ok(more.has('mcp:resource:read mrn:mcp:test-vmcp:resource:test://static-text'))
    })
    await t.test('claims have the names of mpe', async (t) => {
      const rig = await start({ claimMapping: 'mpe' })
      await echo(await rig.as(era, 'alice', claims))
      t.same(last()?.question.principal, {
        sub: 'alice',
        mroles: ['dev'],
        mgroups: ['team'],
        scopes: 'read write',
        mclearance: 'HIGH',
        mannotations: {},
      })
      await echo(await rig.as(era, 'bob', { ...claims, mroles: ['own'], mannotations: { a: 1 } }))
      t.match(last()?.question.principal, { mroles: ['own'], mannotations: { a: 1 } })
    })
    await t.test('claims have their standard names', async (t) => {
      await echo(await (await start()).as(era, 'alice', claims))
      const expected = { sub: 'alice', roles: ['dev'], groups: ['team'], scopes: 'read write' }
      t.same(last()?.question.principal, expected)
    })
    await t.test('arguments of tools and prompts are sent on request', async (t) => {
      const ask = await (await start({ context: { includeArgs: true } })).as(era, 'alice')
      await echo(ask, 'ünïcode')
      t.same(last()?.question.context, { mcp: { args: { text: 'ünïcode' } } })
      const given = { arg1: 'x', arg2: 'y' }
      await ask('prompts/get', { name: 'test_prompt_with_arguments', arguments: given })
      t.same(point.asked.at(-1)?.question.context, { mcp: { args: given } })
      await ask('tools/call', { name: 'echo', arguments: {} })
      t.same(last()?.question.context, {}, 'none')
    })
    await t.test('feature, operation and name are sent on request', async (t) => {
      const ask = await (await start({ context: { includeOperation: true } })).as(era, 'alice')
      await echo(ask)
      t.same(last()?.question.context, {
        mcp: { feature: 'tool', operation: 'call', resource_id: 'echo' },
        gatehouse: { backend: 'fixture', original: 'echo' },
      })
    })
    await t.test('without the decision point the server starts and rejects every request', async (t) => {
      const gone = await startDecisionPoint()
      await gone.close()
      const rig = await startDecisionRig(t, { http: { url: gone.url }, claimMapping: 'standard' })
      const ask = await rig.as(era, 'alice')
      for (let i = 0; i < 3; i++) t.match((await echo(ask)).response?.error, { message: unavailable })
      t.match(
        (await ask('tools/list')).response?.error,
        { message: unavailable },
        'an error, not an empty list',
      )
      t.match(await rig.status(), /decision_point.*is not returning decisions/, 'a lasting problem')
      t.match(await rig.metrics(), /decision_point_answers_total\{[^}]*outcome="unreachable"[^}]*\} [1-9]/)
      // Lines are written after the response.
      await until(() => rig.audit().length > 0)
      t.match(rig.audit()[0], {
        policy: { decision: 'deny', reason: [], errors: ['httpv1: unreachable'] },
      })
    })
  })

  t.test(`${era} era: lists contain what the decision point allows`, async (t) => {
    const point = await startDecisionPoint(({ resource }) => /:(?:echo|test_simple_text)$/.test(resource))
    t.teardown(() => point.close())
    const rig = await startDecisionRig(t, {
      http: { url: point.url },
      claimMapping: 'standard',
      context: { includeArgs: true, includeOperation: true },
    })
    const ask = await rig.as(era, 'alice')
    t.same(toolsIn(await ask('tools/list')).sort(), ['echo', 'test_simple_text'])
    t.match(point.asked[0]?.question.context, { gatehouse: { backend: 'fixture' } })
    t.notOk(
      point.asked.some(({ question }) => question.context['mcp']?.['args']),
      'without arguments',
    )
    t.same((await ask('prompts/list')).response?.result?.['prompts'], [])

    point.answer = ({ resource }) =>
      resource.endsWith(':test_simple_text')
        ? (res) => sendJson(res, { allow: 'yes' })
        : resource.endsWith(':echo')
    t.same(toolsIn(await ask('tools/list')), ['echo'], 'undecided items are left out')
    t.match(await rig.metrics(), /decision_point_answers_total\{[^}]*outcome="malformed"[^}]*\} 1/)
  })
}

t.test('tool hints are sent, and unknown tools are reported as unknown before any denial', async (t) => {
  const point = await startDecisionPoint()
  t.teardown(() => point.close())
  const rig = await startDecisionRig(t, { http: { url: point.url }, claimMapping: 'standard' })
  const ask = await rig.as('stateless', 'alice')
  t.match((await ask('tools/call', { name: 'nothing' })).response?.error, { message: /not found/ })
  point.answer = () => false
  t.match(
    (await ask('tools/call', { name: 'nothing' })).response?.error,
    { message: denied },
    'the error reveals nothing',
  )
})

t.test('only equal requests are answered from the cache', async (t) => {
  const point = await startDecisionPoint()
  t.teardown(() => point.close())
  const rig = await startDecisionRig(t, {
    http: { url: point.url },
    claimMapping: 'standard',
    context: { includeArgs: true },
    cache: { ttl: '5m', maxEntries: 100 },
  })
  const ask = await rig.as('stateless', 'alice', { groups: ['a'] })
  const asked = async (call: () => Promise<unknown>): Promise<number> => {
    const before = point.asked.length
    await call()
    return point.asked.length - before
  }
  t.equal(await asked(() => echo(ask)), 1)
  t.equal(await asked(() => echo(ask)), 0, 'the same again')
  t.equal(await asked(() => echo(ask, 'other')), 1, 'other arguments')
  const bob = await rig.as('stateless', 'bob', { groups: ['a'] })
  t.equal(await asked(() => echo(bob)), 1, 'another subject')
  const moved = await rig.as('stateless', 'alice', { groups: ['b'] })
  t.equal(await asked(() => echo(moved)), 1, 'other groups')
  point.answer = () => (res) => sendJson(res, {}, 500)
  t.match((await echo(ask, 'new')).response?.error, { message: unavailable })
  point.answer = () => true
  t.match((await echo(ask, 'new')).text, 'new', 'a failure is not cached')
})
