/** The credential cache: single flight, expiry margin, abort of one waiter, size limit, and unambiguous keys. */
import t from 'tap'
import { CredentialCache, type ObtainedCredential } from '../../../runtime/outgoing/cache.ts'

/** Returns a source whose responses the test releases. */
function source() {
  const waiting: ((value: ObtainedCredential) => void)[] = []
  return {
    get count() {
      return waiting.length
    },
    obtain: () =>
      new Promise<ObtainedCredential>((resolve) => {
        waiting.push(resolve)
      }),
    release: (index: number, value: ObtainedCredential) => waiting[index]?.(value),
  }
}

const token = (accessToken: string, expiresAt?: number): ObtainedCredential => ({
  credential: { accessToken },
  expiresAt,
})

await t.test('CredentialCache: one request per key for any number of waiting callers', async (t) => {
  const cache = new CredentialCache(() => 0)
  const from = source()
  const waiting = Array.from({ length: 50 }, () => cache.get('k', 0, from.obtain))
  await Promise.resolve()
  t.equal(from.count, 1)
  from.release(0, token('a', 1_000))
  t.same(new Set(await Promise.all(waiting)).size, 1)
})

await t.test(
  'CredentialCache: used until the margin before expiry, or half the lifetime of a short-lived one',
  async (t) => {
    let now = 0
    let made = 0
    const cache = new CredentialCache(() => now)
    const obtain = (lifetime: number | undefined) => async () => {
      made += 1
      return token(`t${made}`, lifetime === undefined ? undefined : now + lifetime)
    }
    await cache.get('long', 30_000, obtain(3_600_000))
    await cache.get('short', 30_000, obtain(20_000))
    await cache.get('unknown', 0, obtain(undefined))
    await cache.get('dead', 30_000, obtain(0))
    t.equal(made, 4)
    now = 9_999
    await cache.get('short', 30_000, obtain(20_000))
    t.equal(made, 4)
    now = 10_000
    await cache.get('short', 30_000, obtain(20_000))
    await cache.get('dead', 30_000, obtain(0))
    t.equal(made, 6, 'the short-lived one was renewed at half its lifetime, and the expired one never cached')
    now = 59_999
    await cache.get('unknown', 0, obtain(undefined))
    t.equal(made, 6)
    now = 60_000
    await cache.get('unknown', 0, obtain(undefined))
    t.equal(made, 7)
    now = 3_569_999
    await cache.get('long', 30_000, obtain(3_600_000))
    t.equal(made, 7)
    now = 3_570_000
    await cache.get('long', 30_000, obtain(3_600_000))
    t.equal(made, 8)
  },
)

await t.test('CredentialCache: a failure reaches all waiting callers and is not cached', async (t) => {
  const cache = new CredentialCache(() => 0)
  let fail = true
  const obtain = async () => {
    if (fail) throw new Error('down')
    return token('a', 1_000)
  }
  const both = [cache.get('k', 0, obtain), cache.get('k', 0, obtain)]
  for (const each of both) await t.rejects(each, { message: 'down' })
  fail = false
  t.same(await cache.get('k', 0, obtain), { accessToken: 'a' })
})

await t.test('CredentialCache: a caller that stops waiting does not affect the others', async (t) => {
  const cache = new CredentialCache(() => 0)
  const from = source()
  const controller = new AbortController()
  const leaving = cache.get('k', 0, from.obtain, controller.signal)
  const staying = cache.get('k', 0, from.obtain)
  controller.abort(new Error('gone'))
  await t.rejects(leaving, { message: 'gone' })
  from.release(0, token('a', 1_000))
  t.same(await staying, { accessToken: 'a' })
  t.equal(from.count, 1)
  await t.rejects(cache.get('k', 0, from.obtain, controller.signal), { message: 'gone' }, 'already aborted')
})

await t.test('CredentialCache: a rejected credential is replaced once, by the first caller', async (t) => {
  let now = 0
  const cache = new CredentialCache(() => now)
  let made = 0
  const get = () => cache.get('k', 0, async () => token(`t${++made}`, now + 100_000))
  const first = await get()
  t.equal(cache.refused('k', first), false, 'just obtained, so a new one would be rejected, too')
  t.equal(await get(), first)
  now = 5_000
  t.equal(cache.refused('k', first), true)
  const second = await get()
  t.not(second, first)
  t.equal(cache.refused('k', first), true, 'a late rejection of the first one')
  t.equal(await get(), second, 'does not cost the second')
  t.equal(made, 2)
})

await t.test('CredentialCache: the number of entries is bounded', async (t) => {
  const cache = new CredentialCache(() => 0)
  for (let i = 0; i < 10_100; i++) await cache.get(String(i), 0, async () => token('a', 1_000))
  t.ok(cache.size <= 10_000)
})

await t.test(
  'CredentialCache.key: different parts never make the same key, and absent differs from empty',
  async (t) => {
    const keys = [
      ['a', 'bc'],
      ['ab', 'c'],
      ['abc'],
      ['a', undefined],
      ['a', ''],
      ['a'],
      ['a","b'],
      ['a', 'b'],
    ]
    t.equal(new Set(keys.map((parts) => CredentialCache.key(...parts))).size, keys.length)
  },
)
