import t from 'tap'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'
import { storeContract } from './contract.ts'

function clocked(options: { maxEntries?: number; maxBytes?: number } = {}): {
  store: Store
  pass: (ms: number) => void
} {
  let nowMs = 1_000_000
  return { store: makeMemoryStore({ now: () => nowMs, ...options }), pass: (ms) => void (nowMs += ms) }
}

t.test('memory: the contract', async (t) => {
  const { store, pass } = clocked()
  storeContract(t, () => ({ store, pass: async (ms) => pass(ms) }))
})

t.test(
  'memory: a full store rejects new keys, loses none, and accepts new keys after others expire',
  async (t) => {
    const { store, pass } = clocked({ maxEntries: 3 })
    await store.set('a', '1', { ttlMs: 1000 })
    await store.set('b', '2')
    await store.set('c', '3')
    await t.rejects(store.set('d', '4'), { code: 'STORE_FULL', status: 503 })
    t.equal(await store.set('c', '33'), true, 'existing keys can change')
    t.same(await Promise.all(['a', 'b', 'c', 'd'].map((key) => store.get(key))), ['1', '2', '33', undefined])
    pass(1000)
    t.equal(await store.set('d', '4'), true)
  },
)

t.test('memory: the size limit counts the values', async (t) => {
  const { store } = clocked({ maxBytes: 100 })
  await store.set('a', 'x'.repeat(80))
  await t.rejects(store.set('b', 'x'.repeat(80)), { code: 'STORE_FULL' })
  await t.rejects(store.set('a', 'x'.repeat(120)), { code: 'STORE_FULL' })
  t.equal(await store.set('a', 'x'), true)
  t.equal(await store.set('b', 'x'.repeat(80)), true)
  await store.delete('b')
  t.equal(await store.set('c', 'x'.repeat(90)), true, 'deleting gives the module back')
})

t.test('memory: a bucket refills continuously and never exceeds its capacity', async (t) => {
  const { store, pass } = clocked()
  const bucket = { key: 'b', capacity: 10, refillMs: 1000 }
  t.equal((await store.takeTokens([bucket], 10)).ok, true)
  t.same(await store.takeTokens([bucket]), { ok: false, retryAfterMs: 100, refusedBy: 'b' })
  pass(99)
  t.same(await store.takeTokens([bucket]), { ok: false, retryAfterMs: 1, refusedBy: 'b' })
  pass(1)
  t.equal((await store.takeTokens([bucket])).ok, true)
  // After twice the refill time the entry expires. Before that, it must not contain more than its capacity.
  for (const ms of [1_500, 100_000]) {
    pass(ms)
    t.equal((await store.takeTokens([bucket], 10)).ok, true)
    t.equal((await store.takeTokens([bucket])).ok, false)
  }
})

t.test('memory: close removes all entries', async (t) => {
  const { store } = clocked()
  await store.set('a', '1')
  await store.close()
  t.equal(await store.get('a'), undefined)
})

t.test('memory: writes with yields leave the last quarter to other writes', async (t) => {
  const entries = makeMemoryStore({ maxEntries: 8 })
  for (let n = 0; n < 6; n++) t.ok(await entries.set(`s${n}`, 'v', { yields: true }))
  await t.rejects(entries.set('s6', 'v', { yields: true }), { code: 'STORE_FULL' })
  t.ok(await entries.set('a', 'v'))
  t.ok(await entries.set('b', 'v'))
  await t.rejects(entries.set('c', 'v'), { code: 'STORE_FULL' })

  const bytes = makeMemoryStore({ maxBytes: 100 })
  t.ok(await bytes.set('s', 'x'.repeat(74), { yields: true }))
  await t.rejects(bytes.set('s', 'x'.repeat(75), { yields: true }), { code: 'STORE_FULL' })
  t.ok(await bytes.set('a', 'x'.repeat(24)))
})
