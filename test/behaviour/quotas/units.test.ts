/** Units other than calls: bytes of results, configured costs, and costs that a backend reports. */
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { textResult } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { daily, quotaEras, refusalOf, startQuotaRig } from '../../helpers/vmcp/quota-rig.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const costing = (cost: unknown) => JSON.stringify({ content: [], _meta: { 'gatehouse.dev/cost': cost } })

for (const era of quotaEras) {
  t.test(`${era}: bytes of results are counted exactly`, async (t) => {
    const result = textResult('x'.repeat(100))
    const rig = await startQuotaRig(
      t,
      { quotas: [daily({ unit: 'resultBytes', limit: result.length + 1 })] },
      { backend: { responses: { 'tools/call': () => result } } },
    )
    const ada = await rig.as(era, 'ada')
    t.equal(refusalOf(await ada.call()), undefined)
    t.equal(refusalOf(await ada.call()), undefined, 'one byte was left')
    t.match(refusalOf(await ada.call()), { unit: 'resultBytes', remaining: 0 })
    t.equal(rig.calls(), 2)
  })

  t.test(`${era}: costs per tool and per backend, and reported costs, which replace them`, async (t) => {
    let result = textResult('free of reports')
    const rig = await startQuotaRig(
      t,
      { quotas: [daily({ unit: 'cost', limit: 100 })], costs: { 'raw/costly': 60, raw: 10 } },
      { backend: { responses: { 'tools/call': () => result } } },
    )
    const ada = await rig.as(era, 'ada')
    t.equal(refusalOf(await ada.call('costly')), undefined, '60')
    t.match(refusalOf(await ada.call('costly')), { unit: 'cost', remaining: 40 }, '60 more do not fit')
    t.equal(refusalOf(await ada.call()), undefined, '70')
    result = costing(0)
    t.equal(refusalOf(await ada.call()), undefined, '70: it was free')
    result = costing(500)
    t.equal(refusalOf(await ada.call()), undefined, '570: known afterwards')
    t.match(refusalOf(await ada.call()), { remaining: 0 })
  })
}

t.test('a cost that is not a whole number of micro-units is ignored and reported', async (t) => {
  let result = ''
  const rig = await startQuotaRig(
    t,
    { quotas: [daily({ unit: 'cost', limit: 100 })], costs: { raw: 10 } },
    { backend: { responses: { 'tools/call': () => result } } },
  )
  const ada = await rig.as('stateless', 'ada')
  for (const cost of [-1_000, 0.5, 1e300, '0', null, {}, [0], true]) {
    result = costing(cost)
    t.equal(refusalOf(await ada.call()), undefined, JSON.stringify(cost))
  }
  result = '{"content":[{"type":"text","text":"gatehouse.dev/cost"}],"gatehouse.dev/cost":0}'
  t.equal(refusalOf(await ada.call()), undefined, 'elsewhere it is not a report')
  result = textResult('')
  t.equal(refusalOf(await ada.call()), undefined, 'the tenth')
  t.match(refusalOf(await ada.call()), { remaining: 0 }, 'each call has cost 10')
  t.match(await rig.status(), 'cost_unreadable')
})

t.test('without a quota of unit cost, cost reports are not read', async (t) => {
  const rig = await startQuotaRig(
    t,
    { quotas: [daily({ limit: 5 })] },
    { backend: { responses: { 'tools/call': () => costing('x') } } },
  )
  const ada = await rig.as('stateless', 'ada')
  await ada.call()
  t.notMatch(await rig.status(), 'cost_unreadable')
})

for (const transport of ['session', 'stateless', 'sse'] as const) {
  t.test(`a backend of ${transport}: only calls that arrive are counted`, async (t) => {
    const fixture = await startFixture({ era: transport === 'stateless' ? 'stateless' : 'session' })
    const backend =
      transport === 'sse' ? { url: fixture.sseUrl, transport: 'sse' as const } : { url: fixture.url }
    const vmcp = await startTestVmcp(
      { fixture: backend },
      {
        aggregation: bareNames('fixture'),
        quotas: [daily({ per: 'server', limit: 3 })],
      },
    )
    t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
    const call = () => stateless(vmcp.url, 'tools/call', { name: 'echo', arguments: { text: 'a' } })
    t.equal(refusalOf(await call()), undefined)
    t.equal(refusalOf(await call()), undefined)
    await fixture.close()
    for (let i = 0; i < 3; i++)
      t.equal(refusalOf(await call()), undefined, 'the backend is gone, which is not a quota rejection')
  })
}
