/** Validity of a declared client's token, depending on when the client was declared and removed. */
import t from 'tap'
import { DeclaredClients } from '../../../runtime/authserver/clients/declared-clients.ts'
import type { DeclaredClientSettings } from '../../../runtime/config/index.ts'
import { declared } from '../../helpers/authserver/declared-client.ts'

const ci = declared('ci', ['https://mcp.example'], { secrets: [() => 's'.repeat(32)] })

function start(settings: readonly DeclaredClientSettings[]) {
  const file = { settings, nowMs: 1_000_000_000 }
  const clients = new DeclaredClients(
    () => file.settings,
    () => file.nowMs,
  )
  const stored: string[] = []
  const store = { isDown: false }
  async function storeRemoval(id: string): Promise<void> {
    if (store.isDown) throw new Error('the store is down')
    stored.push(id)
  }
  async function reload(next: readonly DeclaredClientSettings[], laterMs: number): Promise<void> {
    file.nowMs += laterMs
    file.settings = next
    await clients.reload(storeRemoval)
  }
  return { clients, reload, store, stored, nowSec: () => file.nowMs / 1000 }
}

t.test('a client that was removed before the start has no valid tokens', async (t) => {
  const { clients, nowSec } = start([ci])
  t.equal(clients.isDeclaredSince('ci', nowSec()), true)
  t.equal(clients.isDeclaredSince('removed', nowSec()), false)
  t.equal(clients.isDeclaredSince('removed', nowSec() + 60), false)
})

t.test('while a removal cannot be stored, this process rejects the tokens issued before it', async (t) => {
  const { clients, reload, store, stored, nowSec } = start([ci])
  const before = nowSec()
  store.isDown = true
  await reload([], 1_000)
  t.equal(clients.isDeclaredSince('ci', before), false, 'removed')
  await reload([ci], 1_000)
  t.equal(clients.isDeclaredSince('ci', before), false, 'declared again')
  t.equal(clients.isDeclaredSince('ci', nowSec()), true, 'a token issued after that')
  t.same(stored, [])
  store.isDown = false
  await reload([ci], 1_000)
  t.same(stored, ['ci'], 'the next reload stores the removal')
  await reload([ci], 1_000)
  t.same(stored, ['ci'], 'once')
})
