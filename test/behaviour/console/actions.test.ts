/** Sessions, policies, configuration, connecting, and checks on demand. */
import t from 'tap'
import { startTestConsole } from '../../helpers/console/console.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const authz = {
  type: 'cedar',
  policies: [
    'permit(principal, action, resource);',
    'forbid(principal, action, resource == Tool::"notes_fail");',
  ],
  entitiesJson: '[]',
}

t.test('sessions are listed by hash and can be ended', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  const session = await openSession(console.vmcp.url)
  const { json, text } = await console.api('sessions')
  t.match(json['items'], [{ hash: /^[0-9a-f]{12}$/, era: '2025-11-25', mine: true, streams: 0 }])
  t.notMatch(text, session.id)
  const [{ hash } = { hash: '' }] = json['items'] as { hash: string }[]
  t.equal((await console.api(`sessions/${hash}`, { method: 'DELETE' })).status, 204)
  t.equal((await session.request('tools/list')).status, 404)
  t.equal((await console.api(`sessions/${hash}`, { method: 'DELETE' })).status, 404)
})

t.test('policies are listed with their decisions, and denied calls name them', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole(
    { notes: fixture.url },
    { incomingAuth: { type: 'anonymous', authz } },
  )
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  await stateless(console.vmcp.url, 'tools/call', { name: 'notes_fail', arguments: {} })
  t.match((await console.api('calls')).json['items'], [
    { name: 'notes_fail', outcome: 'denied', denied: { by: 'policy', policies: ['policies[1]'] } },
  ])
  t.match((await console.api('policies')).json, {
    enabled: true,
    items: [
      { id: 'policies[0]', effect: 'permit' },
      { id: 'policies[1]', effect: 'forbid', decided: 1 },
    ],
  })
})

t.test(
  'policies are parsed by the engine: several in a text, shadow policies, counters that follow the text',
  async (t) => {
    const fixture = await startFixture()
    const both = `// forbid( everything)
    permit(principal, action, resource);
    forbid(principal, action, resource == Tool::"notes_fail");`
    const config = (policies: readonly string[]) => ({
      incomingAuth: {
        type: 'anonymous',
        authz: {
          type: 'cedar',
          policies,
          shadowPolicies: ['forbid(principal, action, resource == Tool::"notes_echo");'],
          entitiesJson: '[]',
        },
      },
    })
    const console = await startTestConsole({ notes: fixture.url }, config([both]))
    t.teardown(() => Promise.all([console.close(), fixture.close()]))
    const call = (name: string) =>
      stateless(console.vmcp.url, 'tools/call', { name, arguments: { text: 'x' } })
    await call('notes_fail')
    await call('notes_echo')
    const { json } = await console.api('policies')
    t.match(json['items'], [
      { id: 'policies[0].0', effect: 'permit', shadow: false, decided: 1 },
      { id: 'policies[0].1', effect: 'forbid', shadow: false, decided: 1 },
      { id: 'shadowPolicies[0]', effect: 'forbid', shadow: true, decided: 1 },
    ])
    const other = 'permit(principal == Client::"nobody", action, resource);'
    console.vmcp.reload(vmcpConfig({ notes: fixture.url }, config([other, both])))
    await call('notes_fail')
    t.match((await console.api('policies')).json['items'], [
      { id: 'policies[0]', decided: 0 },
      { id: 'policies[1].0', decided: 1 },
      { id: 'policies[1].1', decided: 2 },
      { id: 'shadowPolicies[0]' },
    ])
    t.throws(() => console.vmcp.reload(vmcpConfig({ notes: fixture.url }, config(['nonsense']))))
    t.match((await console.api('policies')).json['problems'], [/cannot be used.*vmcp validate/])
  },
)

t.test('a policy that cannot be evaluated is listed as a problem', async (t) => {
  const fixture = await startFixture()
  const policies = [...authz.policies, 'forbid(principal, action, resource) when { context.arg_n > "a" };']
  const console = await startTestConsole(
    { notes: fixture.url },
    { incomingAuth: { type: 'anonymous', authz: { ...authz, policies } } },
  )
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  await stateless(console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text: 'x', n: 1 } })
  t.match((await console.api('policies')).json['problems'], [/^policies\[2\] failed to evaluate once;/])
})

t.test('the configuration view contains no secrets', async (t) => {
  const injection = { headerName: 'x-team', headerValue: 'planted-injected' }
  const console = await startTestConsole(
    { notes: 'http://127.0.0.1:9/mcp?token=planted-secret' },
    {
      telemetry: {
        endpoint: '127.0.0.1:9',
        metricsEnabled: true,
        headers: { 'x-honeycomb-team': 'planted-collector' },
      },
      outgoingAuth: {
        source: 'inline',
        backends: { notes: { type: 'header_injection', headerInjection: injection } },
      },
    },
  )
  t.teardown(() => console.close())
  const { json } = await console.api('config')
  t.match(json['effective'], /name: test-vmcp/)
  t.match(json['effective'], /x-honeycomb-team: "?\[redacted\]/)
  t.match(json['effective'], /headerName: x-team/)
  t.notMatch(JSON.stringify(json), /planted-/)
})

t.test('connect: commands and links contain no credentials, and the first call is shown', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  const before = await console.api('connect')
  t.match(before.json, { url: console.vmcp.url, name: 'test-vmcp', auth: false })
  t.notOk(before.json['firstCall'])
  t.match(before.text, `claude mcp add --transport http test-vmcp ${console.vmcp.url}`)
  await stateless(console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text: 'x' } })
  t.match((await console.api('connect')).json, { firstCall: /^20/ })
})

t.test('a backend can be checked on demand', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  t.match((await console.api('backends/notes/recheck', { method: 'POST', body: {} })).json, {
    health: 'healthy',
  })
  t.match(await console.api('backends/notes/recheck', { method: 'POST' }), { status: 200 }, 'without a body')
  t.equal((await console.api('backends/nothing/recheck', { method: 'POST' })).status, 404)
  t.match((await console.api('tries', { method: 'POST' })).json, { status: 400, code: 'BAD_REQUEST' })
  const text = { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } }
  t.equal((await console.api('backends/notes/recheck', text)).status, 415)
})
