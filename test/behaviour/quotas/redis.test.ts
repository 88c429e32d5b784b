/**
 * Quotas of virtual servers that share a real Redis: one budget for all replicas, across restarts, and calls during an
 * outage.
 */
import t, { type Test } from 'tap'
import { missingRedis, startRedis, until } from '../../helpers/redis.ts'
import { daily, type QuotaCaller, quotaEras, refusalOf, startQuotaRig } from '../../helpers/vmcp/quota-rig.ts'

type Rig = Awaited<ReturnType<typeof startQuotaRig>>

const start = '2026-11-23T10:00:00.000Z'

/** Number of calls that were not counted. A busy machine may delay a Redis response by a second. */
async function uncounted(rig: Rig): Promise<number> {
  return Number(/^gatehouse_quota_fail_open_total\{[^}]*\} (\d+)/m.exec(await rig.metrics())?.[1] ?? 0)
}

/** Makes calls until a quota rejects one, with a second between two calls. */
async function refused(rig: Rig, caller: QuotaCaller): Promise<Record<string, unknown> | undefined> {
  let now = rig.clock.now()
  let refusal: Record<string, unknown> | undefined
  await until(async () => {
    rig.clock.moveTo(new Date((now += 1_001)).toISOString())
    refusal = refusalOf(await caller.call())
    return refusal !== undefined
  })
  return refusal
}

t.test('replicas on Redis', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const replica = (t: Test, keyPrefix: string, limit: number) =>
    startQuotaRig(
      t,
      {
        incomingAuth: { type: 'anonymous' },
        quotas: [daily({ per: 'server', limit })],
        sessionStorage: { provider: 'redis', address: redis.addr, keyPrefix },
      },
      { start },
    )

  for (const era of quotaEras) {
    await t.test(
      `${era}: simultaneous calls at two replicas, and a third replica after a restart, share the budget`,
      async (t) => {
        const [one, two] = await Promise.all([replica(t, `${era}:`, 5), replica(t, `${era}:`, 5)])
        const [ada, bob] = await Promise.all([one.as(era, 'ada'), two.as(era, 'bob')])
        const all = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? ada : bob).call()))
        const made = all.filter((answer) => refusalOf(answer) === undefined).length
        const lost = (await uncounted(one)) + (await uncounted(two))
        t.ok(made >= 5 && made <= 5 + lost, `${made} made, ${lost} of them uncounted`)
        t.equal(one.calls() + two.calls(), made, 'no other call was made')
        const third = await replica(t, `${era}:`, 5)
        t.match(await refused(third, await third.as(era, 'eve')), { quota: 'daily', remaining: 0 })
        t.match(await third.status(), 'quota daily is exhausted')
      },
    )
  }

  await t.test('without Redis, calls are allowed and reported as uncounted until it is back', async (t) => {
    const rig = await replica(t, 'outage:', 1)
    const ada = await rig.as('stateless', 'ada')
    t.match(await refused(rig, ada), { quota: 'daily' })
    const before = await uncounted(rig)
    redis.freeze()
    t.equal(refusalOf(await ada.call()), undefined)
    t.match(await rig.status(), 'quotas cannot be checked: calls are allowed')
    t.equal((await uncounted(rig)) - before, 1)
    redis.thaw()
    await refused(rig, ada)
    t.notMatch(await rig.status(), 'quota_store', 'the rejection comes after the outage')
  })
})
