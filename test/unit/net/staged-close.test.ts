/** A connection that is closed in stages ends when one of its three bounds is reached. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { closeInStages, stagedCloseLimits } from '../../../runtime/net/listener/staged-close.ts'

/** Returns both ends of a connection; the client keeps its side open until the test ends it. */
async function pair(t: Test): Promise<{ client: Socket; server: Socket }> {
  const listener = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  client.on('error', () => {})
  const [server]: Socket[] = await once(listener, 'connection')
  t.teardown(() => {
    client.destroy()
    listener.close()
  })
  if (!server) throw new Error('no connection')
  return { client, server }
}

await t.test('staged close: ends when the client closes', async (t) => {
  const { client, server } = await pair(t)
  server.write('bye')
  closeInStages(server)
  let text = ''
  client.setEncoding('latin1').on('data', (part: string) => {
    text += part
  })
  await once(client, 'end')
  t.equal(text, 'bye', 'the written data arrives before the end')
  t.notOk(server.destroyed, 'the other side is still read')
  client.write('late')
  client.end()
  await once(server, 'close')
})

await t.test('staged close: bytes and time are bounded', async (t) => {
  const flood = await pair(t)
  closeInStages(flood.server, { ...stagedCloseLimits, maxBytes: 1_000 })
  flood.client.write(Buffer.alloc(2_000))
  await once(flood.server, 'close')
  t.ok(flood.server.bytesRead >= 1_000, 'bounded by the bytes read')

  const silent = await pair(t)
  closeInStages(silent.server, { ...stagedCloseLimits, idleMs: 20 })
  await once(silent.server, 'close')
  t.pass('by silence')

  const slow = await pair(t)
  closeInStages(slow.server, { ...stagedCloseLimits, totalMs: 20 })
  await once(slow.server, 'close')
  t.pass('in all')
})
