import { randomBytes } from 'node:crypto'
import t from 'tap'
import { makeMemoryStore, sealId, sealStore } from '../../../runtime/store/index.ts'
import { storeContract } from './contract.ts'

t.test('sealed: a sealed store meets the contract', async (t) => {
  let nowMs = 1_000_000
  const secret = randomBytes(32)
  const store = sealStore(makeMemoryStore({ now: () => nowMs }), () => [secret])
  storeContract(t, () => ({ store, pass: async (ms) => void (nowMs += ms) }))
})

t.test('sealed: the stored value is unreadable, and equal values are stored differently', async (t) => {
  const inner = makeMemoryStore()
  const secret = randomBytes(32)
  const store = sealStore(inner, () => [secret])
  await store.set('a', 'refresh-token-of-alice')
  await store.set('b', 'refresh-token-of-alice')
  const [a = '', b = ''] = [await inner.get('a'), await inner.get('b')]
  t.notMatch(a + Buffer.from(a, 'base64url').toString('latin1'), /alice|refresh/)
  t.not(a, b)
})

t.test(
  'sealed: rotation: the new secret seals, old secrets still open, and dropped secrets do not',
  async (t) => {
    const inner = makeMemoryStore()
    const [old, current] = [randomBytes(32), randomBytes(40)]
    let secrets = [old]
    const unreadable: string[] = []
    const store = sealStore(inner, () => secrets, {
      onUnreadable: (key, why) => unreadable.push(`${key} ${why}`),
    })
    for (const key of ['read', 'used', 'unused']) await store.set(key, 'v1')
    secrets = [current, old]
    await store.set('new', 'v2')
    t.same([await store.get('used'), await store.get('new')], ['v1', 'v2'])
    t.match(await store.read('read'), { value: 'v1' })
    secrets = [current]
    t.same([await store.get('unused'), await store.get('new')], [undefined, 'v2'])
    t.same(
      [await store.get('used'), await store.get('read')],
      ['v1', 'v1'],
      'sealed again when they were read',
    )
    t.same(unreadable, ['unused unknown-key'])
  },
)

t.test('sealed: resealing changes neither the ttl nor the version', async (t) => {
  let nowMs = 0
  const inner = makeMemoryStore({ now: () => nowMs })
  const [old, current] = [randomBytes(32), randomBytes(32)]
  let secrets = [old]
  const store = sealStore(inner, () => secrets)
  await store.set('a', 'v1', { ttlMs: 1000 })
  await store.set('b', 'v1', { ttlMs: 1000 })
  const seen = await store.read('a')
  secrets = [current, old]
  nowMs = 400
  t.equal(await store.get('a'), 'v1', 'sealed again')
  t.match(await store.reseal('b'), { value: 'v1', sealedBy: sealId(current), resealed: true })
  t.match(await store.reseal('b'), { resealed: false, sealedBy: sealId(current) })
  t.equal(await store.swap('a', seen, 'v2'), true, 'the value that was read is still stored')
  t.equal(await store.swap('a', seen, 'v3'), false, 'and now no more')
  nowMs = 999
  t.same([await store.get('a'), await store.get('b')], ['v2', 'v1'])
  nowMs = 1000
  t.same([await store.get('a'), await store.get('b')], [undefined, undefined])
})

t.test('sealed: of many concurrent swaps during a reseal, exactly one succeeds', async (t) => {
  const inner = makeMemoryStore()
  const [one, two] = [randomBytes(32), randomBytes(32)]
  // Two replicas with a different current secret, as during a rotation.
  const replicas = [sealStore(inner, () => [one, two]), sealStore(inner, () => [two, one])]
  await replicas[0]?.set('k', '0')
  for (let round = 0; round < 20; round++) {
    const seen = await replicas[round % 2]?.read('k')
    const tries = replicas.flatMap((store) => [
      store.swap('k', seen, `${round + 1}`),
      store.get('k').then(() => false),
      store.swap('k', seen, `${round + 1}`),
    ])
    t.equal((await Promise.all(tries)).filter(Boolean).length, 1, `round ${round}`)
  }
})

t.test('sealed: an unsealed or unreadable value is not changed', async (t) => {
  const inner = makeMemoryStore()
  const unreadable: string[] = []
  const store = sealStore(inner, () => [randomBytes(32)], { onUnreadable: (key) => unreadable.push(key) })
  await inner.set('lock', 'somebody')
  await inner.set('foreign', `g1.${'A'.repeat(8)}.${'A'.repeat(60)}`)
  for (const key of ['lock', 'foreign', 'absent']) t.equal(await store.reseal(key), undefined)
  t.equal(await inner.get('lock'), 'somebody')
  t.same(unreadable, [], 'a pass over everything reports nothing')
})

t.test('sealed: a value that was changed or moved to another key is not readable', async (t) => {
  const inner = makeMemoryStore()
  const secret = randomBytes(32)
  const unreadable: string[] = []
  const sealed = sealStore(inner, () => [secret], {
    onUnreadable: (key, why) => unreadable.push(`${key} ${why}`),
  })
  const store = sealed.namespace('upstream:')
  await store.set('alice', 'token of alice')
  const raw = (await inner.get('upstream:alice')) ?? ''
  await inner.set('upstream:mallory', raw)
  t.equal(await store.get('mallory'), undefined)
  const [head, id, body = ''] = raw.split('.')
  const bytes = Buffer.from(body, 'base64url')
  for (const at of [0, 13, bytes.length - 1]) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    await inner.set('upstream:alice', `${head}.${id}.${changed.toString('base64url')}`)
    t.equal(await store.get('alice'), undefined)
  }
  for (const junk of ['', 'plain', `${head}.${id}.AA`, `${head}.${id}`, `g0.${id}.${body}`]) {
    await inner.set('upstream:alice', junk)
    t.equal(await store.get('alice'), undefined)
  }
  t.equal(unreadable.length, 9)
  t.equal(unreadable[0], 'upstream:mallory tampered')
})
