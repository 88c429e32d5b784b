/** Cancellation reaches the backend, in either era and for every kind of cancellation. */
import { once } from 'node:events'
import t from 'tap'
import { type Fixture, startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { openSession, statelessRequest } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

async function start(t: { teardown(work: () => unknown): void }, era: 'session' | 'stateless' | 'sse') {
  const fixture: Fixture = await startFixture({ era: era === 'stateless' ? 'stateless' : 'session' })
  const backend = era === 'sse' ? { url: fixture.sseUrl, transport: 'sse' as const } : { url: fixture.url }
  const vmcp = await startTestVmcp({ fixture: backend }, { aggregation: bareNames('fixture') })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  return { fixture, vmcp }
}

for (const era of ['session', 'stateless', 'sse'] as const) {
  t.test(`a session client cancels by notification: the ${era} backend stops`, async (t) => {
    const { fixture, vmcp } = await start(t, era)
    const session = await openSession(vmcp.url)
    const waiting = once(fixture.state.events, 'waiting')
    const cancelled = once(fixture.state.events, 'cancelled')
    const call = fetch(vmcp.url, {
      method: 'POST',
      headers: {
        ...session.headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: '{"jsonrpc":"2.0","id":"c-1","method":"tools/call","params":{"name":"wait"}}',
    })
    await waiting
    await session.notify('notifications/cancelled', { requestId: 'c-1', reason: 'enough' })
    await cancelled
    const response = await call
    t.equal(await response.text(), '', 'a cancelled request has no response')
  })

  t.test(`a stateless client disconnects: the ${era} backend stops`, async (t) => {
    const { fixture, vmcp } = await start(t, era)
    const waiting = once(fixture.state.events, 'waiting')
    const cancelled = once(fixture.state.events, 'cancelled')
    const abort = new AbortController()
    const { body, headers } = statelessRequest('tools/call', { name: 'wait' })
    const call = fetch(vmcp.url, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body,
      signal: abort.signal,
    })
    await waiting
    abort.abort()
    await t.rejects(call)
    await cancelled
    t.pass('the backend was told')
  })
}

t.test('ending a session cancels its calls in flight', async (t) => {
  const { fixture, vmcp } = await start(t, 'session')
  const session = await openSession(vmcp.url)
  const waiting = once(fixture.state.events, 'waiting')
  const cancelled = once(fixture.state.events, 'cancelled')
  const call = session.request('tools/call', { name: 'wait' })
  await waiting
  await session.end()
  await cancelled
  t.equal((await call).text, '')
})

t.test('closing the server lets calls in flight finish within the grace, then cuts them', async (t) => {
  const { fixture, vmcp } = await start(t, 'session')
  const session = await openSession(vmcp.url)
  const waiting = once(fixture.state.events, 'waiting')
  const call = session.request('tools/call', { name: 'wait' })
  call.catch(() => {})
  await waiting
  await vmcp.close()
  await t.rejects(call)
})
