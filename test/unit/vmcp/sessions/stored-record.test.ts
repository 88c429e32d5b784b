/** How a replica's copy of a session follows the shared record. */
import t from 'tap'
import { makeCaller } from '../../../../runtime/net/index.ts'
import { makeEvents } from '../../../../runtime/observe/index.ts'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import { noAbilities } from '../../../../runtime/vmcp/model/client.ts'
import { sessionRecords } from '../../../../runtime/vmcp/clients/sessions/records.ts'
import { SessionTable } from '../../../../runtime/vmcp/clients/sessions/table.ts'

const caller = makeCaller({ issuer: 'https://idp.example.com', subject: 'ada', claims: {} })
const other = makeCaller({ issuer: 'https://idp.example.com', subject: 'eve', claims: {} })
const facts = { protocolVersion: '2025-11-25', abilities: noAbilities, info: undefined }

function twoReplicas() {
  const store = makeMemoryStore()
  const replica = (): SessionTable =>
    new SessionTable({
      ttlMs: 60_000,
      maxSessions: 10,
      now: Date.now,
      records: sessionRecords(store, { server: 'group:name', ttlMs: 60_000, now: Date.now }),
      events: makeEvents(),
      onEnd() {},
    })
  return { a: replica(), b: replica(), store }
}

t.test('a change by another replica reaches the next request', async (t) => {
  const { a, b } = twoReplicas()
  const { id } = await a.open(facts, caller)
  const copy = await b.find(id, caller)
  t.equal(await b.find(id, caller), copy, 'an unchanged record')
  const own = await a.find(id, caller)
  for (const level of ['debug', 'error', 'debug']) {
    own.logLevel = level
    await a.save(own)
    t.equal((await b.find(id, caller)).logLevel, level)
  }
})

t.test('another replica may restore the value from before a local change', async (t) => {
  const { a, b } = twoReplicas()
  const { id } = await a.open(facts, caller)
  const own = await a.find(id, caller)
  const copy = await b.find(id, caller)
  own.logLevel = 'debug'
  await a.save(own)
  await b.find(id, caller)
  copy.logLevel = undefined
  await b.save(copy)
  t.equal((await a.find(id, caller)).logLevel, undefined)
})

t.test('a read of the unchanged record does not undo a change that is being saved', async (t) => {
  const { a } = twoReplicas()
  const session = await a.open(facts, caller)
  await a.find(session.id, caller)
  session.logLevel = 'debug'
  t.equal((await a.find(session.id, caller)).logLevel, 'debug')
})

t.test('an unchanged record is returned only to its owner', async (t) => {
  const { a, b } = twoReplicas()
  const { id } = await a.open(facts, caller)
  await b.find(id, caller)
  await t.rejects(b.find(id, other), { code: 'SESSION_NOT_FOUND' })
  await t.rejects(a.find(id, other), { code: 'SESSION_NOT_FOUND' })
  await a.end(id, caller)
  await t.rejects(b.find(id, caller), { code: 'SESSION_NOT_FOUND' })
})

t.test('a copy that is removed from the process during a read is restored from the record', async (t) => {
  const { a, b } = twoReplicas()
  const { id } = await a.open(facts, caller)
  const copy = await b.find(id, caller)
  const found = b.find(id, caller)
  b.close()
  t.not(await found, copy)
  t.equal((await found).isOver, false)
})
