/** Backends that deviate from the protocol in an unambiguous way are used, and the deviation is reported. */
import t from 'tap'
import { until } from '../../../helpers/redis.ts'
import { type OddBackend, type Oddity, startOddBackend } from '../../../helpers/mcp/odd-backend.ts'
import { harmlessOddities } from '../../../helpers/mcp/oddities.ts'
import { json, startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(180_000)
t.jobs = 4

interface Status {
  readonly problem_details: readonly { readonly type: string; readonly message: string }[]
}

async function start(
  t: { teardown(work: () => unknown): void },
  backend: OddBackend,
  transport: 'streamable-http' | 'sse' = 'streamable-http',
) {
  const vmcp = await startTestVmcp(
    { odd: { url: backend.url, transport } },
    { operational: { timeouts: { default: '10s' } } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  return {
    session: await openSession(vmcp.url),
    async deviations() {
      const status = (await (await fetch(`${vmcp.origin}/status`)).json()) as Status
      return status.problem_details.filter(({ type }) => type === 'backend_deviates')
    },
  }
}

/** The stateless era has neither sessions nor client notifications. */
const isOfSessions = ({ area }: Oddity): boolean => area === 'session-id' || area === 'notification'

for (const era of ['session', 'stateless'] as const) {
  for (const oddity of harmlessOddities) {
    if (era === 'stateless' && isOfSessions(oddity)) continue
    t.test(`${era} era: ${oddity.name}`, async (t) => {
      const { session, deviations } = await start(t, await startOddBackend([oddity], { era }))
      t.match((await session.request('tools/list')).text, 'odd_echo')
      t.match((await session.request('tools/call', { name: 'odd_echo' })).response?.result, {
        content: [{ text: 'called' }],
      })
      if (oddity.reported === undefined) t.same(await deviations(), [])
      else await until(async () => (await deviations()).length === 1)
    })
  }
}

/** On a stream of many responses, an invalid event does not affect the other events. */
const unreadable: Oddity = {
  name: 'an event that is not a message before each response',
  area: 'stream',
  reported: 'event_unreadable',
  change(reply, { http, id }) {
    if (http === 'POST' && id !== undefined) reply.body = `hello\n\ndata: ${String(reply.body)}`
  },
}

for (const oddity of [
  ...harmlessOddities.filter(({ area }) => area === 'envelope' || area === 'notification'),
  unreadable,
]) {
  t.test(`HTTP+SSE: ${oddity.name}`, async (t) => {
    const { session, deviations } = await start(t, await startOddBackend([oddity], { era: 'sse' }), 'sse')
    t.match((await session.request('tools/list')).text, 'odd_echo')
    t.match((await session.request('tools/call', { name: 'odd_echo' })).response?.result, {
      content: [{ text: 'called' }],
    })
    t.equal((await deviations()).length, oddity.reported === undefined ? 0 : 1)
  })
}

const unreadableProgress = [
  '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progressToken":2}}',
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","level":"error","data":1}}',
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","LEVEL":"error","data":1}}',
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"_meta":{"io.modelcontextprotocol/a":1,"io.modelcontextprotocol/a":2},"level":"info","data":1}}',
]
const unreadableCancellations = [
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}',
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"REQUESTID":2}}',
]

/** Sends a notification before the response to a call. */
function notifiedBefore(notification: string, era: 'session' | 'stateless' | 'sse'): Oddity {
  return {
    name: notification.slice(0, 120),
    area: 'stream',
    change(reply, { http, id, method }) {
      if (http !== 'POST' || id === undefined || method !== 'tools/call') return
      const stream = `${notification}\n\ndata: ${String(reply.body).trim()}`
      reply.body = era === 'sse' ? stream : `data: ${stream}\n\n`
      reply.headers = { ...reply.headers, 'content-type': 'text/event-stream' }
    },
  }
}

for (const era of ['session', 'stateless', 'sse'] as const) {
  const notifications =
    era === 'stateless' ? unreadableProgress : [...unreadableProgress, ...unreadableCancellations]
  for (const notification of notifications) {
    const oddity = notifiedBefore(notification, era)
    t.test(`${era}: drops and reports only the notification ${oddity.name}`, async (t) => {
      const backend = await startOddBackend([oddity], { era })
      const { session, deviations } = await start(t, backend, era === 'sse' ? 'sse' : undefined)
      const called = await session.request('tools/call', { name: 'odd_echo', _meta: { progressToken: 1 } })
      t.match(called.response?.result, { content: [{ text: 'called' }] })
      t.equal(called.messages.length, 1, 'the notification is not forwarded')
      t.match(await deviations(), [{ message: /events that cannot be read as messages/ }])
    })
  }
}

t.test('a session id is sent exactly as the backend issued it, up to the size of a header', async (t) => {
  for (const length of [513, 8_000]) {
    const id = 'i'.repeat(length)
    let isIssued = false
    const backend = await startRawBackend({
      sessions: false,
      before(req, res, body) {
        if (!body.includes('"initialize"')) return false
        isIssued = true
        const message = JSON.parse(body) as { id: unknown }
        const result =
          '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}'
        json(res, `{"jsonrpc":"2.0","id":${String(message.id)},"result":${result}}`, { 'mcp-session-id': id })
        backend.sessions.add(id)
        return true
      },
    })
    const vmcp = await startTestVmcp({ raw: backend.url })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    t.match((await session.request('tools/call', { name: 'raw_echo' })).response?.result, { content: [{}] })
    t.ok(isIssued)
    const calls = backend.requests.filter(({ method }) => method === 'tools/call')
    t.same(
      calls.map(({ headers }) => headers['mcp-session-id']),
      [id],
    )
  }
})
