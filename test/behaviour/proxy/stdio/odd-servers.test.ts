/** `proxy stdio` with servers that deviate from the protocol in an unambiguous way. */
import t from 'tap'
import { startOddBackend } from '../../../helpers/mcp/odd-backend.ts'
import { harmlessOddities } from '../../../helpers/mcp/oddities.ts'
import { initialize, initialized, startStdio } from '../../../helpers/proxy/stdio-rig.ts'

t.setTimeout(120_000)
t.jobs = 4

for (const oddity of harmlessOddities) {
  // Here the content type determines whether a stream follows.
  if (oddity.reported === 'content_type') continue
  t.test(oddity.name, async (t) => {
    const server = await startOddBackend([oddity])
    t.teardown(() => server.close())
    const rig = startStdio(t, server.url)
    /** Returns the next response and skips other messages of the server. */
    const response = async (id: number) => {
      for (;;) {
        const message = await rig.message()
        if (message.id !== undefined) {
          t.equal(message.id, id)
          return message
        }
      }
    }
    rig.send(initialize)
    t.match(await response(0), { jsonrpc: '2.0', result: { protocolVersion: '2025-11-25' } })
    rig.send(initialized)
    rig.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    t.match(await response(1), { jsonrpc: '2.0', result: { tools: [{ name: 'echo' }] } })
    rig.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo' } })
    const called = await response(2)
    t.match(called, { jsonrpc: '2.0', result: { content: [{ text: 'called' }] } })
    t.notOk('error' in called)
  })
}
