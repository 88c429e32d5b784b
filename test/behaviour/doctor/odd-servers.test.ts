/** The doctor accepts responses of servers that deviate from the protocol, and waits only for the response. */
import t from 'tap'
import { askMcp, initializeParams } from '../../../runtime/toolkit/mcp-client/mcp.ts'
import { makePeers } from '../../../runtime/toolkit/mcp-client/peers.ts'
import { startOddBackend } from '../../helpers/mcp/odd-backend.ts'
import {
  encodingOddities,
  envelopeOddities,
  notificationOddities,
  streamOddities,
} from '../../helpers/mcp/oddities.ts'

for (const oddity of [...encodingOddities, ...envelopeOddities, ...notificationOddities, ...streamOddities]) {
  t.test(oddity.name, async (t) => {
    const server = await startOddBackend([oddity])
    const url = new URL(server.url)
    const peers = await makePeers({ target: url, timeoutMs: 10_000 })
    t.teardown(() => Promise.all([peers.close(), server.close()]))
    const opened = await askMcp(peers, url, {
      method: 'initialize',
      params: initializeParams,
      era: 'session',
    })
    t.match(opened, { result: { protocolVersion: '2025-11-25' }, reply: { ended: /end|enough/ } })
    const confirmed = await askMcp(peers, url, {
      method: 'notifications/initialized',
      era: 'session',
      notification: true,
    })
    t.match(confirmed, { reply: { status: /^20[024]$/, ended: 'enough' } })
  })
}
