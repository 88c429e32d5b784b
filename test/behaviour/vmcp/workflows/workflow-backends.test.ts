/** Workflows and the backends of their steps: backends that are down or slow, and policies. */
import { EventEmitter, once } from 'node:events'
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { startTokenIssuer } from '../../../helpers/authserver/token-issuer.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.test('a backend that is down: its workflows are unavailable until it is back', async (t) => {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp(
    { lab: backend.url },
    {
      compositeTools: [{ name: 'w', steps: [{ id: 'a', tool: 'lab.echo' }] }],
      operational: { failureHandling: { partialFailureMode: 'best_effort' } },
    },
  )
  t.teardown(() => vmcp.close())
  const up = await openSession(vmcp.url)
  t.match((await up.request('tools/list')).text, /"w"/)
  await backend.close()
  const response = await up.request('tools/call', { name: 'w', arguments: {} })
  t.match(response.response?.result, {
    isError: true,
    content: [{ text: /^Workflow execution failed: step "a": tool lab\.echo: / }],
  })
  t.notMatch(response.text, String(backend.port))
})

t.test('the timeout of a step overrides a shorter one of the backend', async (t) => {
  const called = new EventEmitter()
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const backend = await startRawBackend({
    responses: {
      'tools/call': async () => {
        called.emit('call')
        await released
        return '{"content":[{"type":"text","text":"late"}]}'
      },
    },
  })
  const step = { id: 'a', tool: 'lab.echo' }
  const vmcp = await startTestVmcp(
    { lab: backend.url },
    {
      operational: { timeouts: { default: '700ms' } },
      compositeTools: [
        { name: 'short', steps: [step] },
        { name: 'long', steps: [{ ...step, timeout: '1m' }] },
      ],
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const call = async (name: string) =>
    (await session.request('tools/call', { name, arguments: {} })).response?.result
  const arrived = once(called, 'call')
  const long = call('long')
  await arrived
  t.match(await call('short'), { isError: true, content: [{ text: /step "a": tool lab\.echo: .*in time/ }] })
  release()
  t.match(await long, { structuredContent: { text: 'late' } }, 'was called earlier and still waits')
})

t.test('policies check the workflow once, by its own name, and its steps are part of it', async (t) => {
  const [issuer, fixture] = await Promise.all([startTokenIssuer(), startFixture()])
  const authz = {
    type: 'cedar',
    policies: ['permit(principal, action == Action::"call_tool", resource == Tool::"w");'],
  }
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    {
      incomingAuth: { ...issuer.incomingAuth, authz },
      compositeTools: ['w', 'v'].map((name) => ({ name, steps: [{ id: 'a', tool: 'fixture.echo' }] })),
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), fixture.close(), issuer.close()]))
  const headers = { authorization: `Bearer ${await issuer.token('ada')}` }
  const session = await openSession(vmcp.url, { headers })
  const call = (name: string) => session.request('tools/call', { name, arguments: {} })
  t.match((await call('w')).response?.result, { structuredContent: { text: '{}' } })
  t.match((await call('v')).response?.error, { code: 403 })
  t.match((await call('fixture_echo')).response?.error, { code: 403 })
  const { response } = await session.request('tools/list')
  t.match(response?.result?.['tools'], [{ name: 'w' }])
})
