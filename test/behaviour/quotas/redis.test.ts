/** Quotas of virtual servers that share a real Redis: one budget for all replicas, over restarts, and what an outage means. */
import t, { type Test } from 'tap'
import { missingRedis, startRedis, until } from '../../helpers/redis.ts'
import { daily, quotaEras, refusalOf, startQuotaRig } from '../../helpers/vmcp/quota-rig.ts'

const start = '2026-11-23T10:00:00.000Z'

t.test('replicas on Redis', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const replica = (t: Test, keyPrefix: string, limit: number) =>
    startQuotaRig(
      t,
      {
        quotas: [daily({ per: 'server', limit })],
        sessionStorage: { provider: 'redis', address: redis.addr, keyPrefix },
      },
      { start },
    )

  for (const era of quotaEras) {
    await t.test(`${era}: calls at once at two replicas, and a third one after a restart`, async (t) => {
      const [one, two] = await Promise.all([replica(t, `${era}:`, 5), replica(t, `${era}:`, 5)])
      const [ada, bob] = await Promise.all([one.as(era, 'ada'), two.as(era, 'bob')])
      const all = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? ada : bob).call()))
      t.equal(all.filter((answer) => refusalOf(answer) === undefined).length, 5)
      t.equal(one.calls() + two.calls(), 5, 'no other call was made')
      const third = await replica(t, `${era}:`, 5)
      t.match(refusalOf(await (await third.as(era, 'eve')).call()), { quota: 'daily', remaining: 0 })
      t.match(await third.status(), 'quota daily is used up')
    })
  }

  await t.test('without Redis calls go on uncounted, which is told, and end with it', async (t) => {
    const rig = await replica(t, 'outage:', 1)
    const ada = await rig.as('stateless', 'ada')
    t.equal(refusalOf(await ada.call()), undefined)
    t.match(refusalOf(await ada.call()), { quota: 'daily' })
    redis.freeze()
    t.equal(refusalOf(await ada.call()), undefined)
    t.match(await rig.status(), 'quotas cannot be checked: calls are allowed')
    t.match(await rig.metrics(), /gatehouse_quota_fail_open_total\{server="test-vmcp"\} [1-9]/)
    redis.thaw()
    let now = Date.parse(start)
    await until(async () => {
      rig.clock.moveTo(new Date((now += 1_001)).toISOString())
      return refusalOf(await ada.call()) !== undefined
    })
    t.notMatch(await rig.status(), 'quota_store', 'the refusal came after it')
  })
})
