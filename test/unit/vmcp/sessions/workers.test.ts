/** A session whose requests reach two workers: two tables on one store, each with its own copy. */
import t from 'tap'
import { makeCaller } from '../../../../runtime/net/index.ts'
import { makeEvents } from '../../../../runtime/observe/index.ts'
import { makeMemoryStore, type Store } from '../../../../runtime/store/index.ts'
import { noAbilities } from '../../../../runtime/vmcp/model/client.ts'
import { offerSessions } from '../../../../runtime/vmcp/clients/processes/offered-sessions.ts'
import {
  type OtherWorkers,
  makeOtherWorkers,
} from '../../../../runtime/vmcp/clients/sessions/other-workers.ts'
import { sessionRecords } from '../../../../runtime/vmcp/clients/sessions/records.ts'
import { SessionTable } from '../../../../runtime/vmcp/clients/sessions/table.ts'

const caller = makeCaller({ issuer: 'https://idp.example.com', subject: 'ada', claims: {} })
const other = makeCaller({ issuer: 'https://idp.example.com', subject: 'eve', claims: {} })
const facts = { protocolVersion: '2025-11-25', abilities: noAbilities, info: undefined }
const ttlMs = 60_000
const freshMs = 5_000

type Handlers = Readonly<Record<string, (argument: unknown) => unknown>>

function twoWorkers(options: { readonly deaf?: boolean } = {}) {
  let now = 1_000_000
  let reads = 0
  const memory = makeMemoryStore({ now: () => now })
  const store: Store = {
    ...memory,
    get(key) {
      reads++
      return memory.get(key)
    },
  }
  const offered: Handlers[] = []
  const worker = (id: number): SessionTable => {
    const others = async (name: string, argument?: unknown): Promise<readonly unknown[]> =>
      options.deaf ? [] : offered.flatMap((one, at) => (at === id ? [] : [one[name]?.(argument)]))
    const elsewhere: OtherWorkers = makeOtherWorkers(
      { others, any: async (name, argument) => (await others(name, argument)).includes(true) },
      `w${id}.`,
    )
    const table = new SessionTable({
      ttlMs,
      maxSessions: 10,
      now: () => now,
      records: sessionRecords(store, { server: 'group:name', ttlMs, now: () => now }),
      events: makeEvents(),
      freshMs,
      otherWorkers: elsewhere,
      onEnd() {},
    })
    offerSessions({ offer: (handlers) => void offered.push(handlers) }, table)
    return table
  }
  return {
    a: worker(0),
    b: worker(1),
    reads: () => reads,
    pass(ms: number) {
      now += ms
    },
  }
}

t.test('a copy is valid for a moment, or until another worker changes the session', async (t) => {
  const { a, b, reads, pass } = twoWorkers()
  const { id } = await a.open(facts, caller)
  const copy = await b.find(id, caller)
  const before = reads()
  for (let i = 0; i < 5; i++) await b.find(id, caller)
  t.equal(reads(), before, 'requests of a known session do not read the store')
  const own = await a.find(id, caller)
  own.subscriptions.set('file:///a', 'files')
  await a.save(own)
  t.equal((await b.find(id, caller)).subscriptions.get('file:///a'), 'files', 'a change is seen at once')
  t.equal(await b.find(id, caller), copy, 'by the same copy')
  const again = reads()
  pass(freshMs)
  await b.find(id, caller)
  t.equal(reads(), again + 1)
})

t.test(
  'a session that one worker ends is ended on the other worker before the client gets the response',
  async (t) => {
    const { a, b } = twoWorkers()
    const { id } = await a.open(facts, caller)
    await b.find(id, caller)
    await a.end(id, caller)
    await t.rejects(async () => b.find(id, caller), { code: 'SESSION_NOT_FOUND' })
  },
)

t.test('the owner of a copy is checked on each request, even without reading the store', async (t) => {
  const { a, b } = twoWorkers()
  const { id } = await a.open(facts, caller)
  await b.find(id, caller)
  await t.rejects(async () => b.find(id, other), { code: 'SESSION_NOT_FOUND' })
})

t.test('a lost message between workers delays the end of a session only for a moment', async (t) => {
  const { a, b, pass } = twoWorkers({ deaf: true })
  const { id } = await a.open(facts, caller)
  await b.find(id, caller)
  await a.end(id, caller)
  pass(freshMs)
  await t.rejects(async () => b.find(id, caller), { code: 'SESSION_NOT_FOUND' })
})

t.test('a session with a request in flight does not expire', async (t) => {
  const { a, pass } = twoWorkers()
  const used = await a.open(facts, caller)
  const unused = await a.open(facts, caller)
  used.inFlight.add({ id: '1', cancel() {} })
  for (let waited = 0; waited < 3 * ttlMs; waited += ttlMs / 4) {
    pass(ttlMs / 4)
    a.evict()
    await Promise.resolve()
  }
  t.equal(await a.find(used.id, caller), used)
  await t.rejects(async () => a.find(unused.id, caller), { code: 'SESSION_NOT_FOUND' })
})

t.test('cancellations of unknown requests are forwarded, a bounded number at a time', async (t) => {
  let open = 0
  const ends: (() => void)[] = []
  const others = (): Promise<readonly unknown[]> => {
    open++
    return new Promise((resolve) => ends.push(() => resolve([])))
  }
  const elsewhere = makeOtherWorkers({ others, any: async () => false }, 'w0.')
  for (let i = 0; i < 1_000; i++) elsewhere.cancel('s', String(i))
  t.equal(open, 64)
  void elsewhere.endCopies('s')
  elsewhere.invalidateCopies('s')
  t.equal(open, 66, 'messages that keep copies correct are always sent')
  for (const end of ends) end()
  await new Promise(setImmediate)
  elsewhere.cancel('s', 'later')
  t.equal(open, 67)
})
