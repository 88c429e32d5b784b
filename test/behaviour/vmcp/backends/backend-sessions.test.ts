/** Backend sessions: one for each client, reopened when a backend loses it, closed with the client. */
import t from 'tap'
import { openSession, type WireSession } from '../../../helpers/mcp/wire.ts'
import { startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.test('a backend that lost the session gets a new one, and the call is executed once', async (t) => {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { name: 'raw_echo', arguments: { n: 1 } })
  backend.sessions.clear()
  const { response } = await session.request('tools/call', { name: 'raw_echo', arguments: { n: 2 } })
  t.match(response?.result, { content: [{ text: '{"n":2}' }] })
  t.equal(backend.requests.filter(({ body }) => body.includes('"n":2')).length, 1)
})

t.test('one backend session serves all calls of one client, and no other client', async (t) => {
  const backend = await startRawBackend({
    responses: { 'tools/call': ({ headers }) => textResult(String(headers['mcp-session-id'])) },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const [a, b] = await Promise.all([openSession(vmcp.url), openSession(vmcp.url)])
  const call = async (session: WireSession) =>
    (await session.request('tools/call', { name: 'raw_echo' })).text.replace(/"id":\d+/, '')
  const first = await call(a)
  t.equal(await call(a), first)
  t.not(await call(b), first)
  t.not(a.id, first)
})

t.test('the end of a client session ends the session at the backend', async (t) => {
  const backend = await startRawBackend()
  let ended: (() => void) | undefined
  const gone = new Promise<void>((resolve) => {
    ended = resolve
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { name: 'raw_echo' })
  const mine = backend.requests.findLast(({ method }) => method === 'tools/call')?.headers['mcp-session-id']
  const { delete: forget } = backend.sessions
  backend.sessions.delete = (id: string) => {
    if (id === mine) ended?.()
    return forget.call(backend.sessions, id)
  }
  await session.end()
  await gone
  t.pass('DELETE reached the backend')
})

t.test('health checks share the session of the lists, unless lists differ per caller', async (t) => {
  const number = async (more: Readonly<Record<string, unknown>>): Promise<number> => {
    const backend = await startRawBackend()
    const vmcp = await startTestVmcp({ raw: backend.url }, more)
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    await session.request('tools/list')
    const of = (name: string) => backend.requests.filter(({ method }) => method === name)
    while (of('ping').length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    return of('initialize').length
  }
  t.equal(await number({}), 1)
  t.equal(await number({ passthroughHeaders: ['x-team'] }), 2)
})
