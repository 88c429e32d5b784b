/** Validity of a machine's token: its subject, and a revocation during a lookup. */
import t from 'tap'
import type { State } from '../../../runtime/authserver/storage/state.ts'
import { MachineTokens } from '../../../runtime/authserver/tokens/machine-tokens.ts'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'

const nowMs = 1_000_000_000
const token = { sub: 'client:ci', client_id: 'ci', iat: nowMs / 1000, jti: 'one' }

function start(store: Pick<Store, 'get' | 'set'>): MachineTokens {
  return new MachineTokens({
    state: { store } as unknown as State,
    now: () => nowMs,
    isDeclaredSince: () => true,
  })
}

t.test('the subject of a machine token must be its client', async (t) => {
  const tokens = start(makeMemoryStore())
  t.equal(await tokens.isLive(token), true)
  t.equal(await tokens.isLive({ ...token, sub: 'client:other' }), false)
  t.equal(await tokens.isLive({ ...token, sub: 'ci' }), false)
})

t.test('a lookup that began before a revocation is not cached after it', async (t) => {
  const store = makeMemoryStore()
  const answered = Promise.withResolvers<void>()
  const tokens = start({
    set: (...args) => store.set(...args),
    async get(key) {
      const value = await store.get(key)
      await answered.promise
      return value
    },
  })
  const early = tokens.isLive(token)
  await tokens.revoke(token.jti, nowMs / 1000 + 900)
  answered.resolve()
  await early
  t.equal(await tokens.isLive(token), false)
})
