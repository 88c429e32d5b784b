/**
 * Reports about quotas: to the caller in advance, and to operators in log, status, metrics and audit log, without user
 * names.
 */
import t from 'tap'
import { makeLog } from '../../../runtime/observe/index.ts'
import { textResult } from '../../helpers/mcp/raw-backend.ts'
import { daily, leftIn, quotaEras, refusalOf, startQuotaRig } from '../../helpers/vmcp/quota-rig.ts'

const resetsAt = '2026-11-24T00:00:00.000Z'

for (const era of quotaEras) {
  t.test(
    `${era}: from 80% usage, a result reports the remaining budget; otherwise it is unchanged`,
    async (t) => {
      const meta = '{"content":[],"_meta":{"own":{"n":12345678901234567890}},"other":1e2}'
      const results = [textResult('plain'), meta, '{"content":[],"_meta":"none of an object"}']
      let next = 0
      const rig = await startQuotaRig(
        t,
        { quotas: [daily({ limit: 10 }), daily({ name: 'wide', limit: 100 })] },
        { backend: { responses: { 'tools/call': () => results[next] } } },
      )
      const ada = await rig.as(era, 'ada')
      for (let i = 0; i < 7; i++) t.equal(leftIn(await ada.call()), undefined)
      const left = (remaining: number) => [
        { quota: 'daily', per: 'user', unit: 'calls', window: 'day', limit: 10, remaining, resetsAt },
      ]
      t.strictSame(leftIn(await ada.call()), left(2))
      next = 1
      const told = await ada.call()
      t.strictSame(leftIn(told), left(1))
      t.match(told.text, '"own":{"n":12345678901234567890}', 'existing members stay, byte for byte')
      t.match(told.text, '"other":1e2')
      next = 2
      const odd = await ada.call()
      if (era === 'session') t.match(odd.text, '"_meta":"none of an object"')
      t.match(refusalOf(await ada.call()), { remaining: 0 })
    },
  )

  t.test(`${era}: the audit log names the quota`, async (t) => {
    const quotas = [
      daily({ limit: 1 }),
      daily({ name: 'soft', limit: 1, action: 'warn', match: { tool: 'costly' } }),
    ]
    const rig = await startQuotaRig(t, { quotas })
    const [ada, bob] = await Promise.all([rig.as(era, 'ada'), rig.as(era, 'bob')])
    await ada.call()
    await ada.call()
    t.strictSame(await rig.audited(1), [[{ name: 'daily', enforced: true }]])
    const line = rig.audit().find((one) => one.quotas)
    t.match(line, {
      outcome: 'application_error',
      metadata: {
        extra: era === 'session' ? { denial_reason: 'quota_exceeded' } : { jsonrpc_error_code: 429 },
      },
    })
    rig.reload({ quotas: quotas.slice(1) })
    await bob.call('costly')
    await bob.call('costly')
    t.strictSame((await rig.audited(2)).slice(1), [[{ name: 'soft', enforced: false }]])
  })
}

t.test('operators: the problem opens at 80%, changes, and ends with the window', async (t) => {
  const lines: string[] = []
  const log = makeLog({ destination: { write: (line) => void lines.push(line) } })
  const rig = await startQuotaRig(t, { quotas: [daily({ limit: 5 })] }, { log })
  const ada = await rig.as('stateless', 'ada')
  const problem = async () =>
    (
      JSON.parse(await rig.status()) as { problem_details: { type: string; message: string }[] }
    ).problem_details.find(({ type }) => type === 'quota_level')?.message
  for (let i = 0; i < 3; i++) await ada.call()
  t.equal(await problem(), undefined)
  await ada.call()
  t.equal(await problem(), `quota daily is at 80% or more for at least one user until ${resetsAt}`)
  await ada.call()
  t.match(await problem(), /^quota daily is exhausted for at least one user until .*: calls are rejected/)
  await ada.call()
  const metrics = await rig.metrics()
  t.match(metrics, 'gatehouse_quota_usage_ratio{server="test-vmcp",quota="daily",per="user"} 1')
  t.match(
    metrics,
    'gatehouse_quota_exceeded_calls_total{server="test-vmcp",quota="daily",per="user",action="block"} 1',
  )
  rig.clock.moveTo('2026-11-24T00:00:00Z')
  t.equal(await problem(), undefined, 'without a call')
  t.match(await rig.metrics(), 'gatehouse_quota_usage_ratio{server="test-vmcp",quota="daily",per="user"} 0')
  t.notMatch([metrics, await rig.status(), ...lines].join(''), /"ada"|ada@/)
  t.match(lines.join(''), /"event":"quota_level".*"after":"exhausted"/)
})

t.test('operators: removing a quota removes its problems', async (t) => {
  const rig = await startQuotaRig(t, { quotas: [daily({ limit: 1 })] })
  const ada = await rig.as('stateless', 'ada')
  await ada.call()
  t.match(await rig.status(), 'quota daily is exhausted')
  rig.reload({ quotas: [daily({ limit: 100 })] })
  t.notMatch(await rig.status(), 'quota_level')
  await ada.call()
  t.notMatch(await rig.status(), 'quota_level')
})

t.test('counters in memory cause a warning at startup', async (t) => {
  const lines: string[] = []
  const log = makeLog({ destination: { write: (line) => void lines.push(line) } })
  await startQuotaRig(t, { quotas: [daily()], costs: { raw: 1 } }, { log })
  t.match(lines.join(''), /quotas: counters are kept in memory.*each replica counts separately/)
  t.match(lines.join(''), /costs: has no effect, because no quota uses the unit cost/)
})
