import { randomBytes } from 'node:crypto'
import t from 'tap'
import { makeMemoryStore, sealStore } from '../../../runtime/store/index.ts'
import { storeContract } from './contract.ts'

t.test('sealed: the contract holds through the seal', async (t) => {
  let nowMs = 1_000_000
  const secret = randomBytes(32)
  const store = sealStore(makeMemoryStore({ now: () => nowMs }), () => [secret])
  storeContract(t, () => ({ store, pass: async (ms) => void (nowMs += ms) }))
})

t.test('sealed: nothing of the value is readable below, and equal values look different', async (t) => {
  const inner = makeMemoryStore()
  const secret = randomBytes(32)
  const store = sealStore(inner, () => [secret])
  await store.set('a', 'refresh-token-of-alice')
  await store.set('b', 'refresh-token-of-alice')
  const [a = '', b = ''] = [await inner.get('a'), await inner.get('b')]
  t.notMatch(a + Buffer.from(a, 'base64url').toString('latin1'), /alice|refresh/)
  t.not(a, b)
})

t.test('sealed: rotation: the new secret seals, old ones still open, dropped ones do not', async (t) => {
  const inner = makeMemoryStore()
  const [old, current] = [randomBytes(32), randomBytes(40)]
  let secrets = [old]
  const unreadable: string[] = []
  const store = sealStore(inner, () => secrets, {
    onUnreadable: (key, why) => unreadable.push(`${key} ${why}`),
  })
  await store.set('old', 'v1')
  secrets = [current, old]
  await store.set('new', 'v2')
  t.same([await store.get('old'), await store.get('new')], ['v1', 'v2'])
  secrets = [current]
  t.same([await store.get('old'), await store.get('new')], [undefined, 'v2'])
  t.same(unreadable, ['old unknown-key'])
})

t.test('sealed: a value that was changed or moved to another key is not read', async (t) => {
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
