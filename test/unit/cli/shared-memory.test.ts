/** Memory that the workers of a virtual server share: each kind of record has its own bounds. */
import t from 'tap'
import { offerMemory, sharedMemory } from '../../../runtime/cli/vmcp/shared-memory.ts'

t.test('one kind of record that is full does not affect the others', async (t) => {
  const offers = offerMemory({
    sessions: { maxEntries: 2 },
    tasks: { maxEntries: 2 },
    counters: { maxEntries: 2 },
    proofs: { maxEntries: 2 },
    logins: {},
  })
  const { sessions, tasks, counters, logins } = sharedMemory({
    call: async (name, argument) => offers[name]?.(argument),
  })
  await tasks.set('a', '1')
  await tasks.set('b', '1')
  await t.rejects(tasks.set('c', '1'), { code: 'STORE_FULL' })
  await sessions.set('a', '1')
  await sessions.set('b', '1')
  await t.rejects(sessions.set('c', '1'), { code: 'STORE_FULL' })
  await logins.set('a', 'for the logins')
  t.equal(await logins.get('a'), 'for the logins')
  t.equal(await counters.get('a'), undefined)
  t.match(await counters.count([{ key: 'q', add: 1, limit: 1, ttlMs: 1_000 }]), { ok: true })
})

t.test('requests to the primary have a timeout', async (t) => {
  const given: unknown[] = []
  const { sessions } = sharedMemory({
    async call(_name, _argument, options) {
      given.push(options)
    },
  })
  await sessions.get('a')
  t.match(given, [{ withinMs: 10_000 }])
})
