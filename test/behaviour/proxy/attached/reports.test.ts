/**
 * Reports about an attached server: an event and a log line with the next step, metrics next to the probes, and the
 * record from which the hooks set the condition Attached.
 */
import t, { type Test as TapTest } from 'tap'
import { makeLog, logEvents, makeEvents } from '../../../../runtime/observe/index.ts'
import type { EventFields, EventType } from '../../../../runtime/observe/events/fields.ts'
import { eventTable } from '../../../../runtime/observe/events/table.ts'
import { programMetrics, prometheusName } from '../../../../schemas/metrics/index.ts'
import { attachedBridge, isReady, sessionProgram, startApiStub } from '../../../helpers/kube/attach-stub.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { until } from '../../../helpers/redis.ts'

type Line = Readonly<Record<string, unknown>>

async function told(t: TapTest, words: readonly string[] = sessionProgram, spoil = {}) {
  const { stub, baseUrl } = await startApiStub(t, words)
  Object.assign(stub, spoil)
  const events = makeEvents()
  const seen: { type: EventType; fields: EventFields[EventType] }[] = []
  const lines: Line[] = []
  const output: string[] = []
  const log = makeLog({
    name: 'stdio-bridge',
    level: 'info',
    format: 'json',
    destination: { write: (line) => void lines.push(JSON.parse(line) as Line) },
  })
  const stop = logEvents(events, log)
  t.teardown(stop)
  events.listen(({ type, fields }) => void seen.push({ type, fields }))
  const bridge = await attachedBridge(t, baseUrl, { log, events, onLine: (line) => output.push(line) })
  const metrics = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${bridge.healthPort}/metrics`)).text()
  return { stub, bridge, events, seen, lines, output, metrics }
}

/** Resolves when the event under test has arrived. */
function happened(seen: readonly { type: EventType; fields: object }[], type: EventType, wanted: object) {
  return until(() =>
    seen.some(
      (one) =>
        one.type === type &&
        Object.entries(wanted).every(([name, value]) =>
          Object.entries(one.fields).some(([n, v]) => n === name && v === value),
        ),
    ),
  )
}

function sample(text: string, name: string, labels: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`${name}{${labels}} `))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}

const own = 'server="notes"'

t.test('reports: a server is attached, killed, restarted and initialized again', async (t) => {
  const { stub, bridge, events, seen, lines, output, metrics } = await told(t)
  await happened(seen, 'attach_state', { attached: true })
  await until(() => isReady(bridge))
  const first = await metrics()
  t.equal(sample(first, 'gatehouse_attach_up', own), 1)
  t.equal(sample(first, 'gatehouse_attach_attachments_total', own), 1)
  t.equal(sample(first, 'gatehouse_attach_initializations_total', own), 1)
  const session = await openSession(bridge.url)
  const call = session.request('tools/call', { name: 'wait', arguments: {} })
  await until(() => output.includes('fixture: waiting'))
  t.equal(sample(await metrics(), 'gatehouse_attach_requests', `${own},state="with_server"`), 1)
  await stub.kill()
  await call
  await happened(seen, 'attach_state', { attached: false, ended: 'stream_ended' })
  await until(() => events.problems().length > 0)
  const down = await metrics()
  t.equal(sample(down, 'gatehouse_attach_up', own), 0)
  t.equal(sample(down, 'gatehouse_problems', 'type="attach_state"'), 1)
  stub.restarts++
  stub.start()
  await happened(seen, 'server_initialized', { again: true, restarts: 1 })
  await happened(seen, 'attach_state', { attached: true, again: true, restarts: 1 })
  const after = await metrics()
  t.equal(sample(after, 'gatehouse_attach_up', own), 1)
  t.equal(sample(after, 'gatehouse_attach_attachments_total', own), 2)
  t.equal(sample(after, 'gatehouse_attach_initializations_total', own), 2)
  t.equal(sample(after, 'gatehouse_attach_detachments_total', `${own},cause="stream_ended"`), 1)
  t.equal(sample(after, 'gatehouse_attach_requests_lost_total', own), 1)
  t.equal(sample(after, 'gatehouse_attach_server_restarts', own), 1)
  t.equal(events.problems().length, 0)
  t.match(
    lines
      .filter(({ event }) => event === 'attach_state')
      .slice(0, 2)
      .map(({ message }) => message),
    ['attached to the server', 'not attached to the server'],
  )
  t.ok(
    lines.some(
      ({ event, reason, fix }) => event === 'attach_state' && reason === 'StreamEnded' && fix !== undefined,
    ),
  )
  t.match(
    lines.find(({ event }) => event === 'server_requests_lost'),
    { count: 1, level: 'warn' },
  )
  t.match(events.recent(), [{ type: 'server_requests_lost', reason: 'server_lost' }])
})

t.test('reports: a broken stream is attached again, without initialization', async (t) => {
  const { stub, bridge, seen, metrics } = await told(t)
  await happened(seen, 'attach_state', { attached: true })
  await until(() => isReady(bridge))
  stub.streams.cut()
  await happened(seen, 'attach_state', { attached: true, again: true })
  const text = await metrics()
  t.equal(sample(text, 'gatehouse_attach_attachments_total', own), 2)
  t.equal(sample(text, 'gatehouse_attach_initializations_total', own), 1)
  t.equal(seen.filter(({ type }) => type === 'server_initialized').length, 1)
})

t.test('reports: a container restarts behind an open stream', async (t) => {
  const { stub, bridge, seen, metrics } = await told(t)
  await happened(seen, 'attach_state', { attached: true })
  await until(() => isReady(bridge))
  stub.streams.forget()
  await stub.restart()
  await happened(seen, 'attach_state', { attached: true, again: true })
  t.equal(sample(await metrics(), 'gatehouse_attach_detachments_total', `${own},cause="server_restarted"`), 1)
})

t.test('reports: attaching is denied: one problem with its next step, until it is allowed', async (t) => {
  const refusal = { code: 403, message: 'pods "server-0" is forbidden: cannot create pods/attach' }
  const { stub, bridge, events, seen, lines, metrics } = await told(t, sessionProgram, { refusal })
  await happened(seen, 'attach_state', { attached: false, reason: 'AccessRefused' })
  await until(() => stub.record['attach.json']?.includes('AccessRefused') === true)
  t.match(events.problems(), [
    {
      type: 'attach_state',
      message: 'not attached to the server: AccessRefused',
      fix: /Role and RoleBinding/,
    },
  ])
  t.match(
    lines.find(({ reason }) => reason === 'AccessRefused'),
    { event: 'attach_state', level: 'warn', why: /is forbidden/, fix: /Role and RoleBinding/ },
  )
  t.equal(sample(await metrics(), 'gatehouse_attach_up', own), 0)
  Object.assign(stub, { refusal: undefined })
  await happened(seen, 'attach_state', { attached: true })
  await until(() => isReady(bridge))
  t.equal(events.problems().length, 0)
  t.equal(sample(await metrics(), 'gatehouse_attach_up', own), 1)
})

t.test('reports: a line over the limit', async (t) => {
  const { bridge, events, seen, lines, metrics } = await told(t, ['test/helpers/mcp/once-program.ts'])
  const session = await openSession(bridge.url)
  await session.request('long', { bytes: 65 * 1024 * 1024 })
  await happened(seen, 'server_line_too_long', { limit_bytes: 64 * 1024 * 1024 })
  t.equal(sample(await metrics(), 'gatehouse_attach_lines_too_long_total', own), 1)
  t.match(
    lines.find(({ event }) => event === 'server_line_too_long'),
    { level: 'warn', fix: /smaller results/ },
  )
  t.match(events.recent(), [{ type: 'server_line_too_long', reason: 'line_too_long' }])
})

t.test('reports: a proxy that stops detaches, which is not a problem', async (t) => {
  const { bridge, events, seen, lines } = await told(t)
  await happened(seen, 'attach_state', { attached: true })
  await bridge.close()
  t.match(seen.at(-1), { type: 'attach_state', fields: { attached: false, ended: 'proxy_ended' } })
  t.match(lines.at(-1), { level: 'info', message: 'detached from the server: this proxy is shutting down' })
  t.equal(events.problems().length, 0)
})

t.test('reports: the metrics page contains every metric in the table, and no others', async (t) => {
  const { bridge, seen, metrics } = await told(t)
  await happened(seen, 'attach_state', { attached: true })
  await until(() => isReady(bridge))
  const families = new Set([...(await metrics()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
  t.same(families, new Set(programMetrics.attach.map(prometheusName)))
  t.equal((await fetch(`http://127.0.0.1:${bridge.healthPort}/metrics`, { method: 'POST' })).status, 404)
})

t.test('reports: this file covers every event about an attached server', async (t) => {
  const driven = new Set([
    'attach_state',
    'server_initialized',
    'server_requests_lost',
    'server_line_too_long',
  ])
  const own = Object.keys(eventTable).filter((type) => /^(?:attach_|server_(?!overloaded))/.test(type))
  t.same(new Set(own), driven)
})
