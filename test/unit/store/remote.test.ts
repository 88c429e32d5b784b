/** The store of another process: the contract, over calls that copy their arguments and results. */
import { deserialize, serialize } from 'node:v8'
import t from 'tap'
import { GatehouseError } from '../../../schemas/index.ts'
import { makeMemoryStore, makeRemoteStore, serveStore } from '../../../runtime/store/index.ts'
import { storeContract } from './contract.ts'

function remote(options: Parameters<typeof makeMemoryStore>[0] = {}) {
  const serve = serveStore(makeMemoryStore(options))
  return makeRemoteStore(async (call) => deserialize(serialize(await serve(deserialize(serialize(call))))))
}

t.test('remote: the contract', async (t) => {
  let nowMs = 1_000_000
  const store = remote({ now: () => nowMs })
  storeContract(t, () => ({ store, pass: async (ms) => void (nowMs += ms) }))
})

t.test('remote: errors of the store are passed on, and any other failure is STORE_DOWN', async (t) => {
  const full = remote({ maxEntries: 1 })
  await full.set('a', '1')
  await t.rejects(full.set('b', '1'), { code: 'STORE_FULL' })
  const gone = makeRemoteStore(async () => {
    throw new GatehouseError('SHUTTING_DOWN')
  })
  await t.rejects(gone.get('a'), { code: 'STORE_DOWN' })
  await t.rejects(gone.ping(), { code: 'STORE_DOWN' })
})

t.test('remote: too many concurrent scans end the oldest with an error', async (t) => {
  const store = remote()
  for (let i = 0; i < 1_000; i++) await store.set(`k${i}`, '1')
  const scans = Array.from({ length: 65 }, () => store.scan()[Symbol.asyncIterator]())
  for (const scan of scans) t.equal((await scan.next()).done, false)
  const [oldest] = scans
  await t.rejects(async () => oldest?.next(), { code: 'STORE_DOWN' })
  t.equal((await scans[64]?.next())?.done, false)
})
