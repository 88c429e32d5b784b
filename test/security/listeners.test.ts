/**
 * Much concurrent work leaves no listeners behind: calls of one session, sessions with open streams, stateless calls
 * and subscriptions, cancelled calls, and a drain in between. Node warns about the eleventh listener of one event; the
 * helper fails on that warning.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { openSession, post, statelessRequest } from '../helpers/mcp/wire.ts'
import { bareNames } from '../helpers/vmcp/vmcp.ts'
import { startWatched, startWatchedProgram, type Watched } from '../helpers/vmcp/watched.ts'

t.setTimeout(120_000)

const atOnce = 60
const call = { name: 'echo', arguments: {} }

/** A backend whose calls wait until the test releases them. */
async function startSlowBackend(t: Test) {
  const gate = Promise.withResolvers<undefined>()
  const waiting: string[] = []
  const backend = await startRawBackend({
    responses: {
      'tools/call': async () => {
        waiting.push('a call')
        await gate.promise
        return '{"content":[]}'
      },
    },
  })
  t.teardown(() => backend.close())
  return {
    url: backend.url,
    letGo: () => gate.resolve(undefined),
    async untilWaiting(count: number) {
      while (waiting.length < count) await delay(10)
    },
  }
}

/** `statelessCalls`: a proxy forwards them unchanged to the backend, which only supports sessions here. */
async function muchAtOnce(
  t: Test,
  { url, log, drain }: Watched,
  backend: Awaited<ReturnType<typeof startSlowBackend>>,
  { statelessCalls }: { readonly statelessCalls: number },
) {
  const giveUp = new AbortController()
  const session = await openSession(url)
  const body = (id: number) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: call })
  const inOneSession = Array.from({ length: atOnce }, (_, i) => post(url, body(i + 2), session.headers))
  const stateless = Array.from({ length: statelessCalls }, () => {
    const request = statelessRequest('tools/call', call)
    return post(url, request.body, request.headers)
  })
  await backend.untilWaiting(atOnce + statelessCalls)
  const givenUp = Array.from({ length: atOnce }, (_, i) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...session.headers,
      },
      body: body(i + 1_000),
      signal: giveUp.signal,
    }).catch(() => undefined),
  )
  await backend.untilWaiting(2 * atOnce + statelessCalls)
  giveUp.abort()
  await Promise.all(givenUp)
  const sessions = await Promise.all(Array.from({ length: 20 }, () => openSession(url)))
  const streams = sessions.map(({ headers }) =>
    fetch(url, { headers: { accept: 'text/event-stream', ...headers } }).catch(() => undefined),
  )
  await Promise.all(streams)
  const drained = drain()
  backend.letGo()
  const statuses = (await Promise.all([...inOneSession, ...stateless])).map(({ status }) => status)
  t.same([...new Set(statuses)], [200], 'calls in flight get responses')
  await drained
  t.notMatch(log(), /MaxListenersExceededWarning/)
}

t.test('listeners: a virtual server leaves none behind', async (t) => {
  const backend = await startSlowBackend(t)
  const server = await startWatched(t, {
    backends: [{ name: 'slow', url: backend.url, transport: 'streamable-http' }],
    aggregation: bareNames('slow'),
  })
  await muchAtOnce(t, server, backend, { statelessCalls: atOnce })
})

t.test('listeners: a proxy leaves none behind', async (t) => {
  const backend = await startSlowBackend(t)
  const target = new URL(backend.url).origin
  const server = await startWatchedProgram(
    t,
    ['proxy', '--target-uri', target, '--host', '127.0.0.1', '--port', '0', 'slow'],
    (output) => {
      const port = / on port (\d+)/.exec(output)?.[1]
      return port === undefined ? undefined : `http://127.0.0.1:${port}/mcp`
    },
  )
  await muchAtOnce(t, server, backend, { statelessCalls: 0 })
})
