/**
 * Measures very many idle connections: the cost of each, and the effect on other clients. Opens as many as the limit of
 * open files allows for two processes, up to 100,000, from several loopback addresses. Each has made one call, and is
 * within its idle timeout of two minutes.
 */
import { execFileSync } from 'node:child_process'
import { BenchClient, callOf } from '../client.ts'
import { Crowd } from './crowd.ts'
import { openLoop } from '../load.ts'
import { startBackends, startServer } from '../rig.ts'
import { progress, quantile, table } from '../table.ts'
import { type Measured, withVerdict } from './verdict.ts'

const MOST = 100_000
/** Open files of a process that are reserved for other purposes. */
const OTHER_FILES = 1_000
/** The kernel has about 28,000 ports for each address. */
const PER_ADDRESS = 10_000
const AT_ONCE = 64
const RATE = 100
const SECONDS = 5
const MB = 1024 * 1024
const aims = { kbEach: 25, times: 2 } as const

export async function idleConnections(): Promise<Measured> {
  const count = Math.min(MOST, filesLimit() - OTHER_FILES)
  const backend = await startBackends({ tools: 20 })
  const server = await startServer(backend.urls)
  const client = new BenchClient(server.url)
  const requests = (await client.openSessions(32)).map((id) => callOf('session', 'b0_echo', id))
  progress('warming up')
  await openLoop(client, requests, 500, 4)
  const before = await server.memory({ settle: true })
  const alone = await openLoop(client, requests, RATE, SECONDS)
  progress(`${count} connections`)
  const crowds: Crowd[] = []
  for (let opened = 0; opened < count; opened += PER_ADDRESS) {
    const crowd = new Crowd({
      url: server.url,
      requests,
      maxConnections: Math.min(PER_ADDRESS, count - opened),
      giveUpMs: 30_000,
      localAddress: `127.0.0.${crowds.length + 2}`,
    })
    crowds.push(crowd)
    await crowd.openUsed(AT_ONCE)
  }
  progress('idle')
  const during = await server.memory({ settle: true })
  const cpu = server.cpuMicros()
  const beside = await openLoop(client, requests, RATE, SECONDS)
  const perCall = (server.cpuMicros() - cpu) / beside.ms.length
  const open = crowds.reduce((sum, { connections }) => sum + connections, 0)
  for (const crowd of crowds) crowd.close()
  await client.close()
  await server.stop()
  await backend.stop()
  const kbEach = (during.rss - before.rss) / count / 1024
  const heapEach = ((during.liveHeap ?? 0) - (before.liveHeap ?? 0)) / count / 1024
  const [p50, p50Beside] = [quantile(alone.ms, 0.5), quantile(beside.ms, 0.5)]
  const head = [
    'idle connections',
    'RSS MB',
    'KB RSS each',
    'KB heap each',
    'others p50 ms',
    'p99 ms',
    'CPU µs/call',
  ]
  const rows = [
    [0, before.rss / MB, '', '', p50, quantile(alone.ms, 0.99), ''],
    [count, during.rss / MB, kbEach, heapEach, p50Beside, quantile(beside.ms, 0.99), perCall],
  ]
  return withVerdict('vmcp:idle-connections', table(head, rows), [
    { what: `each costs at most ${aims.kbEach} KB (${kbEach.toFixed(1)})`, isMet: kbEach <= aims.kbEach },
    {
      what: `the p50 of others does not double (${(p50Beside / p50).toFixed(2)} times), none fails`,
      isMet: p50Beside < aims.times * p50 && beside.failed === 0,
    },
    { what: `all stay open (${open})`, isMet: open === count },
  ])
}

function filesLimit(): number {
  return Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }))
}
