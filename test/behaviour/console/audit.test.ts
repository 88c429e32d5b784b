/** The audit log and the log contain the actions of console users: user, action, target, and rejections. */
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startTestConsole } from '../../helpers/console/console.ts'
import { startLoginRig } from '../../helpers/console/login.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { until } from '../../helpers/redis.ts'

type Line = { type: string; outcome: string; subjects: Record<string, string>; target: { name?: string } }

function auditFile(t: Test) {
  const logFile = join(mkdtempSync(join(t.testdir(), 'audit-')), 'audit.log')
  const lines = (): Line[] =>
    readFileSync(logFile, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line)
  return { audit: { enabled: true, logFile }, lines }
}

t.test('actions and views of payloads are recorded, including rejected ones', async (t) => {
  const { audit, lines } = auditFile(t)
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url }, { audit }, { payloads: 'all' })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  await openSession(console.vmcp.url)
  await stateless(console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text: 'x' } })
  const [{ id } = { id: '' }] = (await console.api('calls')).json['items'] as { id: string }[]
  const [{ hash } = { hash: '' }] = (await console.api('sessions')).json['items'] as { hash: string }[]
  await console.api(`calls/${id}/payload`)
  await console.api('backends/notes/recheck', { method: 'POST' })
  await console.api('backends/nothing/recheck', { method: 'POST' })
  await console.api(`sessions/${hash}`, { method: 'DELETE' })
  await console.api('policies/explain', { method: 'POST', body: { action: 'call_tool', name: 'notes_echo' } })
  const tried = { name: 'notes_echo', arguments: '{"text":"x"}', era: '2026-07-28' }
  await console.api('tries', { method: 'POST', body: tried })
  await until(() => lines().some(({ type }) => type === 'console_tool_tried'))
  t.same(
    lines()
      .filter(({ type }) => type.startsWith('console_'))
      .map(({ type, outcome, target, subjects }) => [type, outcome, target.name, subjects['user_id']]),
    [
      ['console_payload_viewed', 'success', id, 'anonymous'],
      ['console_backend_rechecked', 'success', 'notes', 'anonymous'],
      ['console_backend_rechecked', 'failure', 'nothing', 'anonymous'],
      ['console_session_ended', 'success', hash, 'anonymous'],
      ['console_decision_explained', 'success', 'notes_echo', 'anonymous'],
      ['console_tool_tried', 'success', 'notes_echo', 'anonymous'],
    ],
  )
  t.notMatch((await console.api('connect')).json, { firstCall: undefined }, 'a client has called')
})

t.test('logins and missing roles are recorded', async (t) => {
  const { audit, lines } = auditFile(t)
  const rig = await startLoginRig({ groups: ['viewers'], more: { audit } })
  t.teardown(() => rig.close())
  const browser = await rig.signIn()
  const headers = { 'x-gatehouse-csrf': String((await browser.api('me')).json['csrf']) }
  await browser.api('backends/notes/recheck', { method: 'POST', body: {}, headers })
  await browser.api('/logout', { method: 'POST', headers })
  await until(() => lines().some(({ type }) => type === 'console_logout'))
  t.match(
    lines().map(({ type, outcome, subjects }) => [type, outcome, subjects['user_id']]),
    [
      ['console_login_completed', 'success', 'alice'],
      ['console_backend_rechecked', 'denied', 'alice'],
      ['console_logout', 'success', 'alice'],
    ],
  )
})

t.test("a try does not count as a client's first call", async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  const body = { name: 'notes_echo', arguments: '{"text":"x"}', era: '2026-07-28' }
  await console.api('tries', { method: 'POST', body })
  await until(async () => ((await console.api('calls')).json['items'] as unknown[]).length > 0)
  t.notOk((await console.api('connect')).json['firstCall'])
})
