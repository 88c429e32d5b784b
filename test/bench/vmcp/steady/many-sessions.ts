/**
 * Measures very many idle sessions in one process, each after one call: 20,000, or the number in SESSIONS. The verdict
 * refers to 100,000 sessions in a pod of 2 GB.
 */
import { BenchClient, callOf } from '../client.ts'
import { openLoop } from '../load.ts'
import { sessionsOf } from '../sessions.ts'
import { startBackends, startServer } from '../rig.ts'
import { progress, quantile, table } from '../table.ts'
import { type Measured, withVerdict } from './verdict.ts'

const count = Number(process.env['SESSIONS'] ?? 20_000)
const AT_ONCE = 64
const RATE = 100
const SECONDS = 5
const MB = 1024 * 1024
const pod = { sessions: 100_000, mb: 2_048 } as const

export async function manySessions(): Promise<Measured> {
  const backend = await startBackends({ tools: 20 })
  const server = await startServer(backend.urls, {}, { sessionTtlMs: 3_600_000, maxSessions: count + 100 })
  const client = new BenchClient(server.url, AT_ONCE)
  const requests = (await client.openSessions(32)).map((id) => callOf('session', 'b0_echo', id))
  await openLoop(client, requests, 500, 4)
  const before = await server.memory({ settle: true })
  const alone = await openLoop(client, requests, RATE, SECONDS)
  progress(`${count} sessions`)
  for (let opened = 0; opened < count; opened += AT_ONCE) {
    const ids = await client.openSessions(Math.min(AT_ONCE, count - opened), AT_ONCE)
    await Promise.all(ids.map((id) => client.result(callOf('session', 'b0_echo', id))))
  }
  const unsettled = await server.memory({ settle: false })
  const during = await server.memory({ settle: true })
  const beside = await openLoop(client, requests, RATE, SECONDS)
  const sessions = await sessionsOf(server.url)
  await client.close()
  await server.stop()
  await backend.stop()
  const kbEach = (during.rss - before.rss) / count / 1024
  const heapEach = ((during.liveHeap ?? 0) - (before.liveHeap ?? 0)) / count / 1024
  const wholeMb = before.rss / MB + (kbEach * pod.sessions) / 1024
  const head = [
    'idle sessions',
    'RSS MB, while they open',
    'RSS MB',
    'KB RSS each',
    'KB heap each',
    'p50 ms',
    'p99 ms',
  ]
  const rows = [
    [0, '', before.rss / MB, '', '', quantile(alone.ms, 0.5), quantile(alone.ms, 0.99)],
    [
      count,
      unsettled.rss / MB,
      during.rss / MB,
      kbEach,
      heapEach,
      quantile(beside.ms, 0.5),
      quantile(beside.ms, 0.99),
    ],
  ]
  return withVerdict('vmcp:many-sessions', table(head, rows), [
    {
      what: `${pod.sessions} fit into ${pod.mb} MB (${wholeMb.toFixed(0)}${count < pod.sessions ? ', by what each costs' : ''})`,
      isMet: wholeMb <= pod.mb,
    },
    { what: `all are there (${sessions})`, isMet: sessions >= count },
    { what: 'no call fails beside them', isMet: beside.failed === 0 },
  ])
}
