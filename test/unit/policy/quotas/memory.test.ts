/** Quotas in memory: counting, refunds, moving clocks, and an unlimited number of callers. */
import t from 'tap'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import { callerOf, quota, quotasOn } from './rig.ts'

function clockAt(time: string) {
  let now = Date.parse(time)
  return { now: () => now, moveTo: (to: string) => void (now = Date.parse(to)) }
}

t.test('a sent call counts even if it fails; a call that is not sent is refunded', async (t) => {
  const { call } = quotasOn(makeMemoryStore(), [quota()])
  t.equal(await call({ sent: false }), undefined)
  t.equal(await call({ sent: false }), undefined)
  t.equal(await call(), undefined)
  t.equal(await call(), undefined)
  t.equal(await call(), 'QUOTA_EXCEEDED')
})

t.test('concurrent calls are counted, so no more than the limit are made', async (t) => {
  const { reserve } = quotasOn(makeMemoryStore(), [quota({ limit: 5 })])
  const all = await Promise.allSettled(Array.from({ length: 20 }, () => reserve()))
  t.equal(all.filter(({ status }) => status === 'fulfilled').length, 5)
})

t.test(
  'bytes are added after a call: the last call may exceed the limit, and the next is rejected',
  async (t) => {
    const { call } = quotasOn(makeMemoryStore(), [quota({ unit: 'resultBytes', limit: 100 })])
    t.equal(await call({ bytes: 60 }), undefined)
    t.equal(await call({ bytes: 60 }), undefined)
    t.equal(await call({ bytes: 60 }), 'QUOTA_EXCEEDED')
  },
)

t.test('costs: the price is reserved, and the reported cost replaces it', async (t) => {
  const costs = { 'b/echo': 30, b: 5 }
  const { call, reserve } = quotasOn(makeMemoryStore(), [quota({ unit: 'cost', limit: 100 })], { costs })
  t.equal(await call(), undefined, '30')
  t.equal(await call({ cost: 0 }), undefined, '30')
  t.equal(await call({ cost: 50 }), undefined, '80')
  t.equal(await call(), 'QUOTA_EXCEEDED', 'not enough is left for its price')
  t.equal(await call({}, undefined, 'other'), undefined, 'a cheaper tool still fits: 85')
  t.equal(await call({ sent: false, cost: 9 }, undefined, 'other'), undefined, '85')
  const left = (await reserve(undefined, 'other'))?.settle({ sent: true, bytes: 0 })
  t.match(left, [{ quota: 'q', unit: 'cost', limit: 100, remaining: 10 }])
})

t.test('the caller is informed from 80 % on', async (t) => {
  const { reserve } = quotasOn(makeMemoryStore(), [
    quota({ limit: 10 }),
    quota({ name: 'wide', limit: 1_000 }),
  ])
  for (let i = 1; i <= 7; i++) t.same((await reserve())?.settle({ sent: true, bytes: 0 }), [], String(i))
  t.match((await reserve())?.settle({ sent: true, bytes: 0 }), [{ quota: 'q', remaining: 2 }])
})

t.test(
  'a clock that moves forward starts a new period, and a clock that moves back uses its old counts',
  async (t) => {
    const clock = clockAt('2026-11-30T23:00:00Z')
    const store = makeMemoryStore({ now: clock.now })
    const { call } = quotasOn(store, [quota({ window: 'month' })], { now: clock.now })
    await call()
    await call()
    t.equal(await call(), 'QUOTA_EXCEEDED')
    clock.moveTo('2026-12-01T00:00:00Z')
    t.equal(await call(), undefined, 'a new month')
    clock.moveTo('2026-11-30T23:30:00Z')
    t.equal(await call(), 'QUOTA_EXCEEDED', 'the month before is still used up')
    clock.moveTo('2026-12-31T23:59:59Z')
    t.equal(await call(), undefined)
    t.equal(await call(), 'QUOTA_EXCEEDED')
  },
)

t.test('a call that ends in the next period counts for the period of its start', async (t) => {
  const clock = clockAt('2026-11-23T10:59:59Z')
  const store = makeMemoryStore({ now: clock.now })
  const { reserve, call } = quotasOn(store, [quota({ window: 'hour', unit: 'resultBytes', limit: 10 })], {
    now: clock.now,
  })
  const late = await reserve()
  clock.moveTo('2026-11-23T11:00:01Z')
  late?.settle({ sent: true, bytes: 50 })
  t.equal(await call(), undefined, 'this hour has its full budget')
})

t.test('expiry: counters of past periods are deleted', async (t) => {
  const clock = clockAt('2026-11-23T10:00:00Z')
  const store = makeMemoryStore({ now: clock.now })
  const { call } = quotasOn(store, [quota({ window: 'hour' })], { now: clock.now })
  const stored = async () => (await Array.fromAsync(store.scan())).flat().length
  await call()
  t.equal(await stored(), 1)
  clock.moveTo('2026-11-23T12:00:01Z')
  t.equal(await stored(), 0)
})

t.test(
  'unlimited callers: memory is bounded, the first callers keep their budgets, and the rest share one',
  async (t) => {
    const store = makeMemoryStore({ maxEntries: 100 })
    const quotas = [quota({ limit: 3 }), quota({ name: 'all', per: 'server', limit: 1_000 })]
    const { call, kinds } = quotasOn(store, quotas)
    const first = callerOf('first')
    t.equal(await call({}, first), undefined)
    let refused = 0
    for (let i = 0; i < 200; i++) if (await call({}, callerOf(`caller ${i}`))) refused++
    const entries = (await Array.fromAsync(store.scan())).flat()
    t.ok(entries.length <= 100, `${entries.length} entries`)
    t.ok(kinds().includes('full'))
    t.ok(refused > 100, `${refused} rejected: the shared budget is used up`)
    t.equal(await call({}, first), undefined)
    t.equal(await call({}, first), undefined)
    t.equal(await call({}, first), 'QUOTA_EXCEEDED', 'its own budget')
    const sums = await store.namespace('quota:{team:front}:').get(entriesOf(entries, 'all:'))
    t.equal(Number(sums), 201 - refused + 2, 'the quota of the server has counted each call')
  },
)

function entriesOf(keys: readonly string[], start: string): string {
  const prefix = 'quota:{team:front}:'
  return keys.find((key) => key.startsWith(prefix + start))?.slice(prefix.length) ?? ''
}

t.test('unlimited groups: 256 have their own budgets, and the rest count as no group', async (t) => {
  const store = makeMemoryStore()
  const { call } = quotasOn(store, [quota({ per: 'group', limit: 1 })])
  const groups = Array.from({ length: 300 }, (_, i) => `g${String(i).padStart(3, '0')}`)
  t.equal(await call({}, callerOf('many', { groups })), undefined)
  t.equal((await Array.fromAsync(store.scan())).flat().length, 257)
  t.equal(await call({}, callerOf('none')), 'QUOTA_EXCEEDED')
  t.equal(await call({}, callerOf('one', { groups: ['g000'] })), 'QUOTA_EXCEEDED')
  t.equal(await call({}, callerOf('other', { groups: ['g299'] })), undefined)
})
