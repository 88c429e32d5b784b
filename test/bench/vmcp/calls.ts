/** tools/call: what the virtual server adds at fixed rates, and how much it can take, in both eras. */
import { callCost, reached } from '../aims.ts'
import { BenchClient, callOf, type Era, type Sent } from './client.ts'
import { closedLoop, openLoop } from './load.ts'
import { type Peer, startBackends, startServer } from './rig.ts'
import { progress, quantile, table } from './table.ts'

const CONNECTIONS = 32
const RATES = [100, 500, 2_000]
const SECONDS = 4
/** Calls until the engine has compiled the whole path: before that, figures are twice as high. */
const WARM_UP_CALLS_AT_ONCE = 32
const WARM_UP_ROUNDS = 600

interface Pair {
  readonly direct: BenchClient
  readonly vmcp: BenchClient
  readonly server: Peer
  readonly backend: Peer
  readonly close: () => Promise<void>
}

async function startPair(backendEra: Era): Promise<Pair> {
  const backend = await startBackends({ era: backendEra })
  const server = await startServer(backend.urls)
  const direct = new BenchClient(backend.url)
  const vmcp = new BenchClient(server.url)
  return {
    direct,
    vmcp,
    server,
    backend,
    close: async () => {
      await Promise.all([direct.close(), vmcp.close()])
      await server.stop()
      await backend.stop()
    },
  }
}

/** One request for each connection: sessions are not shared by clients. */
async function requestsOf(client: BenchClient, era: Era, tool: string): Promise<Sent[]> {
  if (era === 'stateless') return [callOf(era, tool)]
  return (await client.openSessions(CONNECTIONS)).map((session) => callOf(era, tool, session))
}

async function warmUp(client: BenchClient, requests: readonly Sent[]): Promise<void> {
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    const batch = Array.from({ length: WARM_UP_CALLS_AT_ONCE }, (_, i) => requests[i % requests.length])
    await Promise.all(batch.flatMap((request) => (request ? [client.result(request)] : [])))
  }
}

/** Added latency at fixed rates. */
export async function rates(): Promise<string> {
  const rows: (string | number)[][] = []
  for (const era of ['session', 'stateless'] as const) {
    const pair = await startPair(era)
    const direct = await requestsOf(pair.direct, era, 'echo')
    const through = await requestsOf(pair.vmcp, era, 'b0_echo')
    progress(`${era}: warming up`)
    await warmUp(pair.direct, direct)
    await warmUp(pair.vmcp, through)
    for (const rate of RATES) {
      progress(`${era}: ${rate} calls a second`)
      await openLoop(pair.direct, direct, rate, 1)
      const without = await openLoop(pair.direct, direct, rate, SECONDS)
      await openLoop(pair.vmcp, through, rate, 1)
      const before = pair.server.cpuMicros()
      const within = await openLoop(pair.vmcp, through, rate, SECONDS)
      const cpu = (pair.server.cpuMicros() - before) / within.ms.length
      const at = (share: number): number[] => [quantile(without.ms, share), quantile(within.ms, share)]
      const [p50 = 0, vmcp50 = 0] = at(0.5)
      const [p99 = 0, vmcp99 = 0] = at(0.99)
      if (rate === 500) reached(`${era}500`, vmcp99 - p99)
      if (rate === 2_000) reached(`${era}2000`, vmcp99 - p99)
      rows.push([era, rate, p50, vmcp50, vmcp50 - p50, p99, vmcp99, vmcp99 - p99, cpu, within.failed])
    }
    await pair.close()
  }
  return table(
    [
      'tools/call, open loop',
      'calls/s',
      'direct p50 ms',
      'vMCP p50 ms',
      '**added p50**',
      'direct p99 ms',
      'vMCP p99 ms',
      '**added p99**',
      'CPU µs/call',
      'failed',
    ],
    rows,
  )
}

/** Highest throughput, client era by backend era. */
export async function throughput(): Promise<string> {
  const rows: (string | number)[][] = []
  let json = Number.NaN
  for (const backendEra of ['session', 'stateless'] as const) {
    const pair = await startPair(backendEra)
    const directly = await requestsOf(pair.direct, backendEra, 'echo')
    for (const tool of backendEra === 'session' ? ['echo', 'stream'] : ['echo']) {
      const name = tool === 'echo' ? 'JSON' : 'event stream'
      progress(`${backendEra} backend, ${name}: direct`)
      const own = backendEra === 'session' ? await requestsOf(pair.direct, 'session', tool) : directly
      await closedLoop(pair.backend.url, own, 1, CONNECTIONS)
      const direct = await closedLoop(pair.backend.url, own, SECONDS, CONNECTIONS)
      for (const era of ['session', 'stateless'] as const) {
        progress(`${backendEra} backend, ${name}: ${era} clients`)
        const requests = await requestsOf(pair.vmcp, era, `b0_${tool}`)
        await warmUp(pair.vmcp, requests)
        const before = pair.server.cpuMicros()
        const { collectedMs } = await pair.server.memory({ settle: false })
        const {
          perSecond,
          p50Ms,
          p99Ms,
          requests: count,
        } = await closedLoop(pair.server.url, requests, SECONDS, CONNECTIONS)
        const cpu = (pair.server.cpuMicros() - before) / count
        const ratio = perSecond / direct.perSecond
        if (era === 'session' && backendEra === 'session') {
          const after = await pair.server.memory({ settle: false })
          if (name === 'JSON') {
            json = cpu
            reached('vmcpShare', ratio)
            reached('collection', (100_000 * (after.collectedMs - collectedMs)) / (cpu * count))
            callCost('vmcp', cpu)
          } else reached('eventsToJson', cpu / json)
        }
        rows.push([era, backendEra, name, direct.perSecond, perSecond, ratio, p50Ms, p99Ms, cpu])
      }
    }
    await pair.close()
  }
  return table(
    [
      'client',
      'backend',
      'response',
      'direct calls/s',
      'vMCP calls/s',
      'ratio',
      'p50 ms',
      'p99 ms',
      'CPU µs/call',
    ],
    rows,
  )
}

/** A result of 1 MB, one at a time and four at a time. */
export async function large(): Promise<string> {
  const rows: (string | number)[][] = []
  const pair = await startPair('session')
  const direct = await requestsOf(pair.direct, 'session', 'large')
  const through = await requestsOf(pair.vmcp, 'session', 'b0_large')
  for (const atOnce of [1, 4]) {
    progress(`1 MB, ${atOnce} at a time`)
    await closedLoop(pair.backend.url, direct, 1, atOnce)
    const without = await closedLoop(pair.backend.url, direct, SECONDS, atOnce)
    await closedLoop(pair.server.url, through, 2, atOnce)
    const before = pair.server.cpuMicros()
    const within = await closedLoop(pair.server.url, through, SECONDS, atOnce)
    const cpu = (pair.server.cpuMicros() - before) / within.requests
    const { rss } = await pair.server.memory({ settle: false })
    reached(atOnce === 1 ? 'large1' : 'large4', within.perSecond / without.perSecond)
    rows.push([
      atOnce,
      without.perSecond,
      within.perSecond,
      within.perSecond / without.perSecond,
      without.p50Ms,
      within.p50Ms,
      within.p99Ms,
      cpu,
      rss / 1024 / 1024,
    ])
  }
  await pair.close()
  return table(
    [
      '1 MB result, at a time',
      'direct/s',
      'vMCP/s',
      'ratio',
      'direct p50 ms',
      'vMCP p50 ms',
      'vMCP p99 ms',
      'CPU µs/call',
      'RSS MB',
    ],
    rows,
  )
}
