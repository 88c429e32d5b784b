/** Requirements for every store, tested with memory and every form of Redis. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { type Store, withLock } from '../../../runtime/store/index.ts'

export interface Subject {
  readonly store: Store
  /** Resolves when at least this much time has passed on the store's clock. */
  readonly pass: (ms: number) => Promise<void>
}

/** Registers the contract's tests. Every test works in its own namespace. */
export function storeContract(t: Test, subject: () => Subject): void {
  const fresh = (): Store => subject().store.namespace(`${randomUUID()}:`)

  t.test('set and get: a value is returned unchanged, with any bytes or length and when empty', async (t) => {
    const store = fresh()
    for (const value of ['', 'plain', 'ünïcödé \u{1f511} \0 \r\n', 'x'.repeat(100_000)]) {
      t.equal(await store.set('key', value), true)
      t.equal(await store.get('key'), value)
    }
    t.equal(await store.get('other'), undefined)
  })

  t.test('set: onlyIf writes if its condition holds, and otherwise reports the failure', async (t) => {
    const store = fresh()
    t.equal(await store.set('key', 'a', { onlyIf: 'present' }), false)
    t.equal(await store.get('key'), undefined)
    t.equal(await store.set('key', 'b', { onlyIf: 'absent' }), true)
    t.equal(await store.set('key', 'c', { onlyIf: 'absent' }), false)
    t.equal(await store.get('key'), 'b')
    t.equal(await store.set('key', 'd', { onlyIf: 'present' }), true)
    t.equal(await store.get('key'), 'd')
  })

  t.test('set: of many concurrent writers with onlyIf absent, exactly one succeeds', async (t) => {
    const store = fresh()
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, n) => store.set('k', `${n}`, { onlyIf: 'absent' })),
    )
    t.equal(all.filter(Boolean).length, 1)
    t.equal(await store.get('k'), String(all.indexOf(true)))
  })

  t.test('ttl: an expired entry is absent to every operation', async (t) => {
    const store = fresh()
    const { pass } = subject()
    await Promise.all(['get', 'take', 'touch', 'nx', 'del'].map((k) => store.set(k, 'v', { ttlMs: 30 })))
    // Read before it expires, so that a slow machine cannot miss it.
    await store.set('swap', 'v')
    const seen = await store.read('swap')
    await store.touch('swap', 30)
    await pass(31)
    t.equal(await store.get('get'), undefined)
    t.equal(await store.take('take'), undefined)
    t.equal(await store.touch('touch', 1000), false)
    t.equal(await store.swap('swap', seen, 'w'), false)
    t.equal(await store.delete('del'), false)
    t.equal(await store.set('nx', 'w', { onlyIf: 'absent' }), true)
  })

  t.test('ttl: touch extends it, swap without ttl keeps it, and a plain set clears it', async (t) => {
    const store = fresh()
    const { pass } = subject()
    await store.set('touched', 'v', { ttlMs: 400 })
    await store.set('alive', 'v', { ttlMs: 400 })
    await store.set('cleared', 'v', { ttlMs: 400 })
    t.equal(await store.touch('touched', 60_000), true)
    t.equal(await store.swap('alive', await store.read('alive'), 'w'), true)
    t.equal(await store.set('cleared', 'w'), true)
    await pass(401)
    t.equal(await store.get('touched'), 'v')
    t.equal(await store.get('alive'), undefined)
    t.equal(await store.get('cleared'), 'w')
  })

  t.test('ttl: only a positive whole number of milliseconds is accepted', async (t) => {
    const store = fresh()
    for (const ttlMs of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await t.rejects(store.set('key', 'v', { ttlMs }), RangeError)
      await t.rejects(store.touch('key', ttlMs), RangeError)
    }
    t.equal(await store.get('key'), undefined)
  })

  t.test('take: of many concurrent takers, exactly one gets the value', async (t) => {
    const store = fresh()
    await store.set('key', 'once', { ttlMs: 60_000 })
    const all = await Promise.all(Array.from({ length: 20 }, () => store.take('key')))
    t.same(
      all.filter((value) => value !== undefined),
      ['once'],
    )
    t.equal(await store.get('key'), undefined)
  })

  t.test('delete: returns whether the key existed', async (t) => {
    const store = fresh()
    await store.set('key', 'v')
    t.equal(await store.delete('key'), true)
    t.equal(await store.delete('key'), false)
  })

  t.test('swap: writes only if the entry is unchanged since it was read', async (t) => {
    const store = fresh()
    t.equal(await store.swap('key', undefined, 'a', 60_000), true, 'read as absent, and still absent')
    t.equal(await store.swap('key', undefined, 'b', 60_000), false, 'read as absent, but present now')
    const seen = await store.read('key')
    t.equal(seen?.value, 'a')
    t.equal(await store.touch('key', 50_000), true)
    t.equal(await store.swap('key', seen, 'c'), true, 'a touch does not change the value')
    t.equal(await store.swap('key', seen, 'd'), false, 'the value that was read has changed')
    t.equal(await store.swap('key', await store.read('key'), undefined), true, 'deletes')
    t.equal(await store.get('key'), undefined)
  })

  t.test('swap: of many concurrent swaps after one read, exactly one succeeds', async (t) => {
    const store = fresh()
    await store.set('key', '0')
    const seen = await store.read('key')
    const all = await Promise.all(Array.from({ length: 20 }, (_, n) => store.swap('key', seen, `${n + 1}`)))
    t.equal(all.filter(Boolean).length, 1)
    t.equal(await store.get('key'), String(all.indexOf(true) + 1))
  })

  t.test(
    'takeTokens: a bucket grants its capacity at once, then rejects with a wait, then refills',
    async (t) => {
      const store = fresh()
      const { pass } = subject()
      const bucket = { key: 'b', capacity: 3, refillMs: 600_000 }
      for (let n = 0; n < 3; n++) t.match(await store.takeTokens([bucket]), { ok: true, retryAfterMs: 0 })
      const refused = await store.takeTokens([bucket])
      t.match(refused, { ok: false, refusedBy: 'b' })
      t.ok(
        refused.retryAfterMs > 0 && refused.retryAfterMs <= 200_000,
        `waits for one token: ${refused.retryAfterMs}`,
      )
      const quick = { key: 'q', capacity: 2, refillMs: 40 }
      t.equal((await store.takeTokens([quick], 2)).ok, true)
      await pass(41)
      t.equal((await store.takeTokens([quick], 2)).ok, true, 'full again after the refill time')
    },
  )

  t.test('takeTokens: takes from all buckets or none, and returns the longest wait', async (t) => {
    const store = fresh()
    const wide = { key: 'wide', capacity: 2, refillMs: 600_000 }
    const narrow = { key: 'narrow', capacity: 1, refillMs: 900_000 }
    t.equal((await store.takeTokens([wide, narrow])).ok, true)
    t.match(await store.takeTokens([wide, narrow]), { ok: false, refusedBy: 'narrow' })
    t.equal(
      (await store.takeTokens([wide])).ok,
      true,
      'the rejected request took nothing from the other bucket',
    )
    t.match(await store.takeTokens([wide, narrow]), { ok: false, refusedBy: 'narrow' })
    t.equal((await store.takeTokens([])).ok, true)
  })

  t.test('takeTokens: concurrent takers never get more than the available tokens', async (t) => {
    const store = fresh()
    const bucket = { key: 'b', capacity: 5, refillMs: 600_000 }
    const all = await Promise.all(Array.from({ length: 20 }, () => store.takeTokens([bucket])))
    t.equal(all.filter((taken) => taken.ok).length, 5)
  })

  t.test('count: sums grow to their limit, all or none, and are returned', async (t) => {
    const store = fresh()
    const sum = (key: string, add: number, limit?: number) => ({ key, add, limit, ttlMs: 60_000 })
    t.same(await store.count([]), { ok: true, sums: [] })
    t.same(await store.count([sum('a', 3, 5), sum('b', 1)]), { ok: true, sums: [3, 1] })
    t.same(await store.count([sum('b', 1), sum('a', 3, 5)]), { ok: false, sums: [1, 3] }, 'the current sums')
    t.same(await store.count([sum('a', 2, 5)]), { ok: true, sums: [5] }, 'exactly to the limit')
    t.same(
      await store.count([sum('a', 0, 5)]),
      { ok: false, sums: [5] },
      'nothing fits where nothing is left',
    )
    t.same(
      await store.count([sum('a', 7)]),
      { ok: true, sums: [12] },
      'without a limit it may exceed the old one',
    )
    t.same(await store.count([sum('a', -2, 5)]), { ok: true, sums: [10] }, 'a reduction is never rejected')
    t.same(await store.count([sum('a', -99), sum('gone', -1)]), { ok: true, sums: [0, 0] })
    t.equal(await store.get('gone'), undefined, 'an expired sum is not created again')
    t.same(await store.count([sum('c', 0, 5)]), { ok: true, sums: [0] })
    t.equal(await store.get('c'), undefined, 'nothing was added')
  })

  t.test('count: large sums are exact up to the largest safe integer', async (t) => {
    const store = fresh()
    const sum = (add: number) => store.count([{ key: 'a', add, ttlMs: 60_000 }])
    const most = 9e15
    t.same((await sum(1e15 + 1)).sums, [1e15 + 1])
    t.same((await sum(most - 1e15 - 2)).sums, [most - 1])
    t.same((await sum(5)).sums, [most])
  })

  t.test('count: concurrent calls never exceed a limit', async (t) => {
    const store = fresh()
    const counters = [{ key: 'a', add: 1, limit: 7, ttlMs: 60_000 }]
    const all = await Promise.all(Array.from({ length: 20 }, () => store.count(counters)))
    t.equal(all.filter(({ ok }) => ok).length, 7)
  })

  t.test('count: a sum expires with its ttl', async (t) => {
    const store = fresh()
    await store.count([{ key: 'a', add: 3, ttlMs: 30 }])
    await subject().pass(31)
    t.same((await store.count([{ key: 'a', add: 1, ttlMs: 60_000 }])).sums, [1])
  })

  t.test('count: amounts that cannot be counted exactly are a programming error', async (t) => {
    const store = fresh()
    await t.rejects(store.count([{ key: 'a', add: 0.5, ttlMs: 1 }]), RangeError)
    await t.rejects(store.count([{ key: 'a', add: 2 ** 53, ttlMs: 1 }]), RangeError)
    await t.rejects(store.count([{ key: 'a', add: 1, limit: -1, ttlMs: 1 }]), RangeError)
    await t.rejects(store.count([{ key: 'a', add: 1, ttlMs: 0 }]), RangeError)
  })

  t.test('takeTokens: a bucket that can never grant a request is a programming error', async (t) => {
    const store = fresh()
    await t.rejects(store.takeTokens([{ key: 'b', capacity: 1, refillMs: 1000 }], 2), RangeError)
    await t.rejects(store.takeTokens([{ key: 'b', capacity: 0, refillMs: 1000 }]), RangeError)
    await t.rejects(store.takeTokens([{ key: 'b', capacity: 1, refillMs: 0 }]), RangeError)
  })

  t.test('namespace: prefixes separate keys, and can be nested', async (t) => {
    const store = fresh()
    const inner = store.namespace('a:').namespace('b:')
    await inner.set('key', 'v')
    t.equal(await store.get('a:b:key'), 'v')
    t.equal(await store.namespace('a:').get('key'), undefined)
    await inner.close()
    t.equal(await store.get('a:b:key'), 'v', 'closing a namespace closes nothing')
  })

  t.test('lock: one holder at a time, and it is released afterwards, even after a failure', async (t) => {
    const store = fresh()
    let inside = 0
    let most = 0
    const work = async (): Promise<void> => {
      inside += 1
      most = Math.max(most, inside)
      await store.ping()
      inside -= 1
    }
    const options = { ttlMs: 30_000, waitMs: 30_000, retryMs: 1 }
    await Promise.all(Array.from({ length: 5 }, () => withLock(store, 'l', options, work)))
    t.equal(most, 1)
    const failing = withLock(store, 'l', options, async () => {
      throw new Error('inside')
    })
    await t.rejects(failing, { message: 'inside' })
    t.equal(await withLock(store, 'l', { ...options, waitMs: 0 }, async () => 'free'), 'free')
  })

  t.test('lock: a lock that stays held ends in STORE_DOWN, and its holder keeps it', async (t) => {
    const store = fresh()
    await withLock(store, 'l', { ttlMs: 30_000, waitMs: 0 }, async () => {
      const second = withLock(store, 'l', { ttlMs: 30_000, waitMs: 0 }, async () => 'never')
      await t.rejects(second, { code: 'STORE_DOWN' })
      t.not(await store.get('lock:l'), undefined)
    })
  })

  t.test('ping: resolves while the store responds', async (t) => {
    await t.resolves(fresh().ping())
  })

  t.test('scan: returns every key of the namespace and no other, and patterns have no effect', async (t) => {
    const store = fresh()
    const odd = store.namespace('a*?[x]^-\\:')
    const keys = Array.from({ length: 1200 }, (_, n) => `k${n}`)
    await Promise.all(keys.map((key) => odd.set(key, 'v')))
    await store.set('aaaa[x]^-\\:other', 'v')
    await odd.set('gone', 'v', { ttlMs: 20 })
    await subject().pass(20)
    const found = new Set<string>()
    let pages = 0
    for await (const page of odd.scan()) {
      pages++
      t.ok(page.length <= 1100, 'a page is bounded')
      for (const key of page) found.add(key)
    }
    t.ok(pages > 1)
    t.same([...found].toSorted(), keys.toSorted())
    for await (const page of fresh().scan()) t.same(page, [])
  })

  t.test('scan: concurrent writes and deletions do not disturb it', async (t) => {
    const store = fresh()
    await Promise.all(Array.from({ length: 700 }, (_, n) => store.set(`stays${n}`, 'v')))
    const found = new Set<string>()
    for await (const page of store.scan()) {
      for (const key of page) found.add(key)
      await store.set(`new${found.size}`, 'v')
      for (const key of page) if (key.startsWith('new')) await store.delete(key)
    }
    for (let n = 0; n < 700; n++) if (!found.has(`stays${n}`)) t.fail(`stays${n} did not come`)
  })
}
