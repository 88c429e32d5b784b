/** One caller with a thousand calls in flight, and what that does to others. */
import { setTimeout } from 'node:timers/promises'
import { callOf } from './client.ts'
import { Crowd, type Outcome } from './crowd.ts'
import { startBackends, startServer } from './rig.ts'
import { type Cell, progress, quantile, sorted, table } from './table.ts'

const IN_FLIGHT = 1_000
const OTHERS = 10
const OTHERS_RATE = 100
const SECONDS = 5

export async function fairness(): Promise<string> {
  const backend = await startBackends({ era: 'stateless', tools: 20 })
  const server = await startServer(backend.urls)
  const rows: Cell[][] = []
  for (const [tool, what] of [['b0_tool_3', '25 ms'], ['b0_echo', 'at once']] as const) {
    const requests = [callOf('stateless', tool)]
    const crowdFrom = (localAddress: string, maxConnections: number) =>
      new Crowd({ url: server.url, requests, maxConnections, patienceMs: 30_000, localAddress })
    const others = Array.from({ length: OTHERS }, (_, i) => crowdFrom(`127.0.0.${i + 10}`, 100))
    const directly = new Crowd({ url: backend.url, requests: [callOf('stateless', tool.slice(3))], maxConnections: 100, patienceMs: 30_000 })
    const measure = async () => { void directly.atRate(OTHERS_RATE, SECONDS); return measure1() }
    const measure1 = async () => (await Promise.all(others.map(async (one, i) => (await setTimeout(i * 10), one.atRate(OTHERS_RATE / OTHERS, SECONDS))))).flat()
    progress(`${what}: warming up`)
    const hog = crowdFrom('127.0.0.2', IN_FLIGHT)
    await hog.inFlight(32, 3)
    progress(`${what}: without`)
    const alone = await measure()
    const d0 = directly.outcomes
    progress(`${what}: with`)
    const load = hog.inFlight(IN_FLIGHT, SECONDS + 4)
    await setTimeout(3_000)
    const beside = await measure()
    const of = await load
    const row = (name: string, outcomes: readonly Outcome[], seconds: number) => {
      const ms = sorted(outcomes.filter(({ status }) => status === 200).map((one) => one.ms))
      rows.push([what, name, ms.length / seconds, outcomes.length - ms.length, quantile(ms, 0.5), quantile(ms, 0.9), quantile(ms, 0.99)])
      return quantile(ms, 0.5)
    }
    row('others, alone', alone, SECONDS)
    row('direct, alone', d0, SECONDS)
    row('direct, beside', directly.outcomes, SECONDS)
    row('others, beside it', beside, SECONDS)
    row('the one with a thousand', of, SECONDS + 4)
    hog.close()
    for (const one of others) one.close()
  }
  await server.stop()
  await backend.stop()
  return table(['tool responds', 'callers', 'calls/s', 'refused or failed', 'p50 ms', 'p90 ms', 'p99 ms'], rows)
}
