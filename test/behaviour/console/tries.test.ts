/** Trying a tool in the console: both eras, progress, questions, cancellation and limits. */
import t from 'tap'
import { startTestConsole } from '../../helpers/console/console.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'

for (const era of ['2025-11-25', '2026-07-28'] as const) {
  for (const backendEra of ['session', 'stateless'] as const) {
    t.test(`a try in era ${era} at a backend of the ${backendEra} era`, async (t) => {
      const fixture = await startFixture({ era: backendEra })
      const console = await startTestConsole({ notes: fixture.url })
      t.teardown(() => Promise.all([console.close(), fixture.close()]))
      const start = async (name: string, args: string) => {
        const { json, status } = await console.api('tries', {
          method: 'POST',
          body: { name, arguments: args, era },
        })
        t.equal(status, 200)
        return console.events(`tries/${String(json['id'])}/events`)
      }
      const echo = await start('notes_echo', '{"text":"hi","n":12345678901234567890}')
      t.match((await echo.next('done')).data, { outcome: 'success', result: /hi/, ms: Number })
      const missing = await start('notes_nothing', '{}')
      t.match((await missing.next('done')).data, { outcome: 'failure', error: { message: /nothing/ } })
      const { json } = await console.api('calls')
      t.match(json['items'], [
        { name: 'notes_nothing', outcome: 'failure' },
        { name: 'notes_echo', outcome: 'success', backend: 'notes', caller: { client: 'console' } },
      ])
    })
  }
}

t.test("a tool's question is shown on the page, and the answer goes back to the tool", async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  const names = ((await console.api('tools?limit=200')).json['items'] as { name: string }[]).map(
    ({ name }) => name,
  )
  const asking = names.find((name) => /elicit|ask/.test(name)) ?? ''
  const { json } = await console.api('tries', {
    method: 'POST',
    body: { name: asking, arguments: '{}', era: '2025-11-25' },
  })
  const id = String(json['id'])
  const events = await console.events(`tries/${id}/events`)
  const ask = await events.next('ask')
  t.match(ask.data, { mode: 'form', backend: 'notes', message: String, schema: String })
  const answered = await console.api(`tries/${id}/answers/${String(ask.data['id'])}`, {
    method: 'POST',
    body: { action: 'decline' },
  })
  t.equal(answered.status, 204)
  t.match((await events.next('done')).data, { outcome: /success|failure/ })
})

t.test(
  'rejected tries name the reason, a running try can be cancelled, and four can run at once',
  async (t) => {
    const backend = await startRawBackend({ responses: { 'tools/call': () => new Promise(() => {}) } })
    const console = await startTestConsole({ slow: backend.url })
    t.teardown(() => Promise.all([console.close(), backend.close()]))
    const start = (body: unknown) => console.api('tries', { method: 'POST', body })
    const good = { name: 'slow_echo', arguments: '{}', era: '2026-07-28' }
    t.match((await start({ ...good, arguments: '[' })).json, {
      status: 400,
      title: /arguments must be a JSON object, serialized as text/,
    })
    t.match((await start({ ...good, era: 'x' })).json, { status: 400, title: /era must be one of/ })
    t.match((await start('nothing')).json, { status: 400, title: /not valid JSON/ })
    const { json } = await start(good)
    const events = await console.events(`tries/${String(json['id'])}/events`)
    t.equal((await console.api(`tries/${String(json['id'])}`, { method: 'DELETE' })).status, 204)
    t.match((await events.next('done')).data, { outcome: 'cancelled' })
    for (let i = 0; i < 4; i++) t.equal((await start(good)).status, 200)
    t.match((await start(good)).json, { status: 429, code: 'TOO_MANY_TRIES' })
  },
)
