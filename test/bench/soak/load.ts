/**
 * Sends plain calls from a separate process, to keep the server at a share of its capacity together with all other
 * clients.
 *
 * Arguments: the MCP endpoint, a tool that responds at once, and the share. Measures the throughput of the server on
 * this machine, first alone and then, after its parent has started the other clients, next to them. Sends both values
 * to the parent, and then the figures of each minute. SIGTERM ends it.
 */
import { setTimeout } from 'node:timers/promises'
import { BenchClient, callOf } from '../vmcp/client.ts'
import { Crowd, type Outcome } from '../vmcp/steady/crowd.ts'
import { quantile, sorted } from '../vmcp/table.ts'

export interface LoadMinute {
  /** Calls with a result. */
  readonly calls: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly slowestMs: number
  /** Calls with a 503 response. */
  readonly refused: number
  /** Number of other outcomes, by name. */
  readonly failed: Readonly<Record<string, number>>
}

/** Calls per second: the capacity of the server without other clients, or the rate from now on. */
export type LoadTold = { readonly capacity: number } | { readonly rate: number } | LoadMinute

const SESSIONS = 64
const CONNECTIONS = 32
/** Duration until the engine has compiled the whole path. */
const WARM_UP_SECONDS = 15
const CAPACITY_SECONDS = 10
/** Duration until the other clients have reached their steady number. */
const OTHERS_SECONDS = 20
const MINUTE_SECONDS = 60
/** Pause between two checks for due requests, to leave the other cores to the server. */
const PAUSE_MS = 1
const MAX_CONNECTIONS = 4_096
const GIVE_UP_MS = 30_000
/** Less than the keep-alive timeout of the server. */
const MAX_IDLE_MS = 60_000

/** Names of the special statuses of `Crowd`. */
const ends: Readonly<Record<number, string>> = {
  0: `no response in ${GIVE_UP_MS} ms`,
  1: 'connection cut',
  2: 'an error for a response',
}

function minuteOf(outcomes: readonly Outcome[], unsent: number): LoadMinute {
  const ms = sorted(outcomes.filter(({ status }) => status === 200).map((one) => one.ms))
  const failed: Record<string, number> = unsent > 0 ? { 'all connections busy': unsent } : {}
  let refused = 0
  for (const { status } of outcomes) {
    if (status === 503) refused++
    else if (status !== 200) {
      const end = ends[status] ?? `HTTP ${status}`
      failed[end] = (failed[end] ?? 0) + 1
    }
  }
  return {
    calls: ms.length,
    perSecond: ms.length / MINUTE_SECONDS,
    p50Ms: quantile(ms, 0.5),
    p99Ms: quantile(ms, 0.99),
    slowestMs: ms.at(-1) ?? Number.NaN,
    refused,
    failed,
  }
}

async function main(url: string, tool: string, share: number): Promise<never> {
  const tell = (told: LoadTold): void => void process.send?.(told)
  const client = new BenchClient(url, SESSIONS)
  const sessions = await client.openSessions(SESSIONS)
  const requests = sessions.map((id) => callOf('session', tool, id))
  const limits = { maxConnections: MAX_CONNECTIONS, giveUpMs: GIVE_UP_MS, maxIdleMs: MAX_IDLE_MS }
  const crowd = new Crowd({ url, requests, ...limits })
  await crowd.inFlight(CONNECTIONS, WARM_UP_SECONDS)
  const capacity = await capacityFor(crowd)
  tell({ capacity })
  await setTimeout(OTHERS_SECONDS * 1_000)
  // Remaining capacity next to the other clients, minus the share that stays free.
  const rate = Math.max(1, (await capacityFor(crowd)) - (1 - share) * capacity)
  tell({ rate })
  for (;;) tell(minuteOf(await crowd.atRate(rate, MINUTE_SECONDS, PAUSE_MS), crowd.unsent))
}

async function capacityFor(crowd: Crowd): Promise<number> {
  const outcomes = await crowd.inFlight(CONNECTIONS, CAPACITY_SECONDS)
  return outcomes.filter(({ status }) => status === 200).length / CAPACITY_SECONDS
}

if (import.meta.main) {
  const [url = '', tool = '', share = ''] = process.argv.slice(2)
  await main(url, tool, Number(share))
}
