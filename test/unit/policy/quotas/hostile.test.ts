/** Quotas under attack: many concurrent calls, many groups, a full memory. */
import t from 'tap'
import { GatehouseError } from '../../../../schemas/index.ts'
import { makeMemoryStore, type Store } from '../../../../runtime/store/index.ts'
import { callerOf, quota, quotasOn } from './rig.ts'

t.test('a thousand concurrent calls for the last unit: only one is made', async (t) => {
  const { call, reserve } = quotasOn(makeMemoryStore(), [quota({ limit: 10 })])
  for (let i = 0; i < 9; i++) await call()
  const all = await Promise.allSettled(Array.from({ length: 1_000 }, () => reserve()))
  t.equal(all.filter(({ status }) => status === 'fulfilled').length, 1)
})

t.test('thousands of groups are hashed once per call, for any number of quotas', async (t) => {
  const groups = Array.from({ length: 10_000 }, (_, i) => `group-${i}`)
  let reads = 0
  const claims = { sub: 'ada' }
  Object.defineProperty(claims, 'groups', { enumerable: true, get: () => (reads++, groups) })
  const caller = { ...callerOf('ada'), claims }
  const quotas = Array.from({ length: 32 }, (_, i) => quota({ name: `q${i}`, per: 'group', limit: 100 }))
  const { call } = quotasOn(makeMemoryStore(), quotas)
  t.equal(await call({}, caller), undefined)
  t.ok(reads <= 2, `${reads} times`)
})

/** Returns a store that accepts reservations, and reports that it is full for amounts added after a call. */
function fullAfterwards(inner: Store): Store {
  return {
    ...inner,
    namespace: (prefix) => fullAfterwards(inner.namespace(prefix)),
    async count(counters) {
      if (counters.every(({ limit }) => limit === undefined)) throw new GatehouseError('STORE_FULL')
      return inner.count(counters)
    },
  }
}

t.test('a full memory is not an outage: further calls are counted', async (t) => {
  const { call, settled, kinds } = quotasOn(fullAfterwards(makeMemoryStore()), [
    quota({ limit: 1 }),
    quota({ name: 'bytes', unit: 'resultBytes', limit: 100 }),
  ])
  t.equal(await call({ bytes: 5 }), undefined)
  await settled()
  t.ok(kinds().includes('full'))
  t.notOk(kinds().includes('store_down'))
  t.equal(await call(), 'QUOTA_EXCEEDED')
})

t.test('a clock that is set back during an outage does not prevent a retry of the store', async (t) => {
  let now = Date.parse('2026-11-23T10:00:00Z')
  let isDown = true
  const flaky = (inner: Store): Store => ({
    ...inner,
    namespace: (prefix) => flaky(inner.namespace(prefix)),
    async count(counters) {
      if (isDown) throw new GatehouseError('STORE_DOWN')
      return inner.count(counters)
    },
  })
  const { call, kinds, events } = quotasOn(flaky(makeMemoryStore()), [quota({ limit: 1 })], {
    now: () => now,
  })
  t.equal(await call(), undefined)
  isDown = false
  now -= 86_400_000
  events.length = 0
  t.equal(await call(), undefined)
  t.equal(await call(), 'QUOTA_EXCEEDED', 'the previous call was counted')
  t.ok(kinds().includes('store_up'))
})
