/** Arguments and results in the console: off by default, without credentials, visible to auditors and to the caller. */
import t from 'tap'
import { startTestConsole } from '../helpers/console/console.ts'
import { startLoginRig } from '../helpers/console/login.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { post, stateless } from '../helpers/mcp/wire.ts'

const secret = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'

type Items = { id: string; payload: string }[]

t.test('payloads are off by default', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  await stateless(console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text: 'hi' } })
  const [{ id, payload } = { id: '', payload: '' }] = (await console.api('calls')).json['items'] as Items
  t.equal(payload, 'none')
  t.match((await console.api(`calls/${id}/payload`)).json, { status: 404, code: 'PAYLOAD_NOT_RECORDED' })
})

t.test('stored payloads are redacted and truncated', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url }, {}, { payloads: 'all' })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  const call = (text: string) =>
    stateless(console.vmcp.url, 'tools/call', {
      name: 'notes_echo',
      arguments: { text, password: 'hunter2' },
    })
  await call(`key ${secret}`)
  const first = ((await console.api('calls')).json['items'] as Items)[0]?.id ?? ''
  const { json, text } = await console.api(`calls/${first}/payload`)
  t.match(json, { id: first, arguments: /redacted/, result: /redacted/, truncated: false })
  t.notMatch(text, new RegExp(`${secret}|hunter2`))
  await call('x'.repeat(100_000))
  const second = ((await console.api('calls')).json['items'] as Items)[0]?.id ?? ''
  const large = await console.api(`calls/${second}/payload`)
  t.match(large.json, { truncated: true })
  t.ok(large.text.length < 80_000)
})

t.test('calls without a signed-in user are stored without payloads', async (t) => {
  const console = await startTestConsole({}, {}, { payloads: 'all' })
  t.teardown(() => console.close())
  const origin = { origin: 'https://evil.example' }
  for (let i = 0; i < 3; i++) await post(console.vmcp.url, '{"jsonrpc":"2.0"}', origin)
  const items = (await console.api('calls')).json['items'] as Items
  t.same(
    items.map(({ payload }) => payload),
    ['none', 'none', 'none'],
  )
})

t.test('viewers see that a payload exists, auditors see its content', async (t) => {
  for (const [role, status] of [
    ['viewer', 403],
    ['auditor', 200],
  ] as const) {
    const fixture = await startFixture()
    const rig = await startLoginRig({
      groups: [`${role}s`],
      backends: { notes: fixture.url },
      payloads: 'all',
    })
    await stateless(rig.console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text: 'hi' } })
    const browser = await rig.signIn()
    const [{ id, payload } = { id: '', payload: '' }] = (await browser.api('calls')).json['items'] as Items
    t.equal(payload, role === 'viewer' ? 'withheld' : 'recorded')
    t.equal((await browser.api(`calls/${id}/payload`)).status, status)
    await rig.close()
    await fixture.close()
  }
})
