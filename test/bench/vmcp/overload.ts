/** Three times as many calls as the virtual server can take: what is accepted, what is refused, and what comes after. */
import { get } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { BenchClient, callOf, type Sent } from './client.ts'
import { Crowd, type Outcome } from './crowd.ts'
import { startBackends, startServer } from './rig.ts'
import { progress, quantile, sorted, table } from './table.ts'

const SESSIONS = 64
const CONNECTIONS = 32
const OVERLOAD_SECONDS = 12
const AFTER_SECONDS = 8
const PATIENCE_MS = 10_000

/** What the verdict asks for. */
const aim = { acceptedP99Ms: 1_000, goodput: 0.5, healthMs: 1_000, recoverySeconds: 5 } as const

export async function overload(): Promise<string> {
  const backend = await startBackends({ tools: 20 })
  const server = await startServer(backend.urls)
  const client = new BenchClient(server.url)
  const requests = (await client.openSessions(SESSIONS)).map((id) => callOf('session', 'b0_echo', id))
  const rows: (string | number)[][] = []
  const row = (name: string, offered: number, seconds: number, outcomes: readonly Outcome[], cpu: number, health: number) => {
    const accepted = outcomes.filter(({ status }) => status === 200)
    const refused = outcomes.filter(({ status }) => status === 503)
    const ms = sorted(accepted.map((one) => one.ms))
    const refusedMs = sorted(refused.map((one) => one.ms))
    rows.push([name, offered, accepted.length / seconds, refused.length / seconds, outcomes.length - accepted.length - refused.length,
      quantile(ms, 0.5), quantile(ms, 0.99), ms.at(-1) ?? Number.NaN, quantile(refusedMs, 0.5), quantile(refusedMs, 0.99), health, cpu])
    return { ms, accepted, refused }
  }

  progress('warming up')
  const calm = crowdOf(server.url, requests, CONNECTIONS)
  await calm.inFlight(CONNECTIONS, 3)
  progress('capacity')
  let cpu = server.cpuMicros()
  let health = watchHealth(server.url)
  const full = await calm.inFlight(CONNECTIONS, 4)
  const capacity = full.length / 4
  row('as many as it takes', capacity, 4, full, (server.cpuMicros() - cpu) / full.length, await health.stop())
  progress(`half of ${capacity.toFixed(0)} a second`)
  cpu = server.cpuMicros()
  health = watchHealth(server.url)
  const before = await calm.atRate(capacity / 2, 4)
  const usual = row('half of that', capacity / 2, 4, before, (server.cpuMicros() - cpu) / before.length, await health.stop())
  progress('three times as many')
  const crowd = crowdOf(server.url, requests, 6_000)
  const f0 = performance.now()
  await crowd.connect(6_000)
  progress(`connected in ${performance.now() - f0}`)
  cpu = server.cpuMicros()
  health = watchHealth(server.url)
  const rss: number[] = []
  const sampling = setInterval(() => void server.memory({ settle: false }).then((m) => rss.push(m.rss / 1048576)), 1000)
  let from = performance.now()
  const over = await crowd.atRate(capacity * 3, OVERLOAD_SECONDS)
  clearInterval(sampling)
  progress(`drained after ${((performance.now() - from) / 1000).toFixed(1)} s, ${crowd.connections} connections; ${crowd.unsent} unsent rss ${rss.map((r) => r.toFixed(0)).join(' ')}`)
  row('three times', capacity * 3, OVERLOAD_SECONDS, over, (server.cpuMicros() - cpu) / over.length, await health.stop())
  progress('afterwards')
  cpu = server.cpuMicros()
  health = watchHealth(server.url)
  const after = await calm.atRate(capacity / 2, AFTER_SECONDS)
  row('half of it again', capacity / 2, AFTER_SECONDS, after, (server.cpuMicros() - cpu) / after.length, await health.stop())
  const statuses = new Map<string, number>()
  for (const { status, retryAfter } of over) statuses.set(`${status}${retryAfter ? '+' : ''}`, (statuses.get(`${status}${retryAfter ? '+' : ''}`) ?? 0) + 1)
  progress(JSON.stringify([...statuses]))
  for (let s = 0; s < OVERLOAD_SECONDS; s++) {
    const inSecond = sorted(over.filter((o) => o.status === 200 && Math.floor(o.atMs / 1000) === s).map((o) => o.ms))
    progress(`second ${s}: ${inSecond.length} p50 ${quantile(inSecond, 0.5).toFixed(0)} p99 ${quantile(inSecond, 0.99).toFixed(0)}`)
  }
  for (let s = 0; s < AFTER_SECONDS; s++) {
    const inSecond = sorted(after.filter((o) => Math.floor(o.atMs / 1000) === s).map((o) => o.ms))
    progress(`after ${s}: ${inSecond.length} p50 ${quantile(inSecond, 0.5).toFixed(1)} p99 ${quantile(inSecond, 0.99).toFixed(1)}`)
  }
  void aim, usual
  crowd.close()
  calm.close()
  await client.close()
  await server.stop()
  await backend.stop()
  return table(['calls', 'offered/s', 'accepted/s', 'refused/s', 'other', 'accepted p50 ms', 'p99 ms', 'worst ms', 'refused p50 ms', 'p99 ms', 'worst /health ms', 'CPU µs each'], rows)
}

function crowdOf(url: string, requests: readonly Sent[], maxConnections: number): Crowd {
  return new Crowd({ url, requests, maxConnections, patienceMs: PATIENCE_MS })
}

/** Asks for health as a kubelet does, each time on a new connection; resolves with the slowest answer in ms. */
function watchHealth(url: string): { stop(): Promise<number> } {
  let worst = 0
  let isOver = false
  const asked = (async () => {
    while (!isOver) {
      const from = performance.now()
      const status = await new Promise<number>((resolve) => {
        const req = get(new URL('/health', url), { agent: false, timeout: 10_000 }, (res) => {
          res.resume().on('end', () => resolve(res.statusCode ?? 0))
        })
        req.on('error', () => resolve(0)).on('timeout', () => req.destroy())
      })
      worst = Math.max(worst, status === 200 ? performance.now() - from : Number.POSITIVE_INFINITY)
      await setTimeout(200)
    }
    return worst
  })()
  return { stop() { isOver = true; return asked } }
}
