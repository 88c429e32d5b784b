/** Whether a token of a declared client is still valid, by when the client was declared and removed. */
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
  function reload(next: readonly DeclaredClientSettings[], laterMs: number): void {
    file.nowMs += laterMs
    file.settings = next
    clients.reload()
  }
  return { clients, reload, nowSec: () => file.nowMs / 1000 }
}

t.test('a client that was removed before the start has no valid tokens', async (t) => {
  const { clients, nowSec } = start([ci])
  t.equal(clients.isDeclaredSince('ci', nowSec()), true)
  t.equal(clients.isDeclaredSince('removed', nowSec()), false)
  t.equal(clients.isDeclaredSince('removed', nowSec() + 60), false)
})

t.test('tokens from before a removal stay invalid for as long as they could be valid', async (t) => {
  const { clients, reload, nowSec } = start([ci])
  const before = nowSec()
  reload([], 1_000)
  t.equal(clients.isDeclaredSince('ci', before), false, 'removed')
  reload([ci], 1_000)
  t.equal(clients.isDeclaredSince('ci', before), false, 'added again')
  t.equal(clients.isDeclaredSince('ci', nowSec()), true, 'a token from after that')
  for (const minutes of [1, 29, 31]) {
    reload([ci], minutes * 60_000)
    t.equal(clients.isDeclaredSince('ci', before), false, `${minutes} minutes later`)
  }
})
