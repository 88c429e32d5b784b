/**
 * Sends three times as many calls as the virtual server can handle. Measures accepted and rejected calls, and the
 * recovery.
 */
import { get } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { BenchClient, callOf, type Sent } from '../client.ts'
import { Crowd, type Outcome } from './crowd.ts'
import { type Peer, startBackends, startServer } from '../rig.ts'
import { type Cell, progress, quantile, sorted, table } from '../table.ts'
import { type Measured, withVerdict } from './verdict.ts'

const SESSIONS = 64
const CONNECTIONS = 32
/** Opened in advance, so that only requests are measured. */
const CROWD_CONNECTIONS = 6_000
const TIMES = 3
const OVERLOAD_SECONDS = 15
const AFTER_SECONDS = 8
const GIVE_UP_MS = 10_000
const PROBE_MS = 200
/** A queued call waits for two seconds at most, and then runs. */
const aims = { acceptedP99Ms: 2_500, share: 0.2, probeMs: 1_000, recoveryS: 5 } as const

const head = [
  'tools/call, session era',
  'offered/s',
  'accepted/s',
  'refused/s',
  'failed',
  'accepted p50 ms',
  'p99 ms',
  'worst ms',
  'refused p50 ms',
  'slowest probe ms',
  'CPU µs/request',
  'RSS MB',
]

interface Phase {
  readonly name: string
  readonly crowd: Crowd
  /** Calls per second. Undefined: as fast as responses arrive. */
  readonly rate: number | undefined
  readonly seconds: number
}

interface Result {
  readonly row: readonly Cell[]
  readonly outcomes: readonly Outcome[]
  readonly accepted: readonly Outcome[]
  readonly ms: Float64Array
  readonly failed: number
  readonly probeMs: number
}

export async function overload(): Promise<Measured> {
  const backend = await startBackends({ tools: 20 })
  const server = await startServer(backend.urls)
  const client = new BenchClient(server.url)
  const requests = (await client.openSessions(SESSIONS)).map((id) => callOf('session', 'b0_echo', id))
  const calm = crowdOf(server.url, requests, CONNECTIONS)
  const many = crowdOf(server.url, requests, CROWD_CONNECTIONS)
  progress('warming up')
  await calm.inFlight(CONNECTIONS, 3)
  const full = await run(server, { name: 'as many as it takes', crowd: calm, rate: undefined, seconds: 4 })
  const capacity = full.accepted.length / 4
  const half = { crowd: calm, rate: capacity / 2 }
  const before = await run(server, { name: 'half of that', ...half, seconds: 4 })
  await many.connect(CROWD_CONNECTIONS)
  const three = { name: 'three times that', crowd: many, rate: capacity * TIMES, seconds: OVERLOAD_SECONDS }
  const over = await run(server, three)
  const after = await run(server, { name: 'half of it, at once after', ...half, seconds: AFTER_SECONDS })
  many.close()
  calm.close()
  await client.close()
  await server.stop()
  await backend.stop()
  const results = [full, before, over, after]
  return withVerdict(
    'vmcp:overload',
    table(
      head,
      results.map(({ row }) => row),
    ),
    rulesOf(capacity, before, over, after),
  )
}

function rulesOf(capacity: number, before: Result, over: Result, after: Result) {
  const p99 = quantile(over.ms, 0.99)
  const share = over.accepted.length / OVERLOAD_SECONDS / capacity
  const refused = over.outcomes.filter(({ status }) => status === 503)
  const recovery = recoveryOf(before, after)
  return [
    {
      what: `accepted calls take at most ${aims.acceptedP99Ms} ms (p99 ${p99.toFixed(0)})`,
      isMet: p99 <= aims.acceptedP99Ms,
    },
    {
      what: `at least ${aims.share} of the capacity is served (${share.toFixed(2)})`,
      isMet: share >= aims.share,
    },
    {
      what: `the rest, ${refused.length} calls, gets 503 with Retry-After; none fails otherwise (${over.failed})`,
      isMet: over.failed === 0 && refused.length > 0 && refused.every((one) => one.retryAfter),
    },
    {
      what: `/health and /readyz answer 200 within ${aims.probeMs} ms on new connections (slowest ${over.probeMs.toFixed(0)})`,
      isMet: over.probeMs <= aims.probeMs,
    },
    {
      what: `latency is as before within ${aims.recoveryS} s after the end (${recovery} s)`,
      isMet: recovery <= aims.recoveryS,
    },
  ]
}

/** Returns the seconds until the median of a second is at most twice the usual value, and no call is rejected. */
function recoveryOf(before: Result, after: Result): number {
  const usual = quantile(before.ms, 0.5)
  for (let second = 0; second < AFTER_SECONDS; second++) {
    const within = after.outcomes.filter(({ atMs }) => Math.floor(atMs / 1_000) === second)
    const median = quantile(sorted(within.map(({ ms }) => ms)), 0.5)
    if (within.every(({ status }) => status === 200) && median <= Math.max(2 * usual, usual + 5))
      return second
  }
  return AFTER_SECONDS
}

async function run(server: Peer, { name, crowd, rate, seconds }: Phase): Promise<Result> {
  progress(rate === undefined ? name : `${name}: ${rate.toFixed(0)} a second`)
  const cpu = server.cpuMicros()
  const probes = watchProbes(server.url)
  const outcomes = await (rate === undefined
    ? crowd.inFlight(CONNECTIONS, seconds)
    : crowd.atRate(rate, seconds))
  const spent = (server.cpuMicros() - cpu) / outcomes.length
  const probeMs = await probes.stop()
  const { rss } = await server.memory({ settle: false })
  const accepted = outcomes.filter(({ status }) => status === 200)
  const refused = sorted(outcomes.filter(({ status }) => status === 503).map(({ ms }) => ms))
  const failed = outcomes.length - accepted.length - refused.length
  const ms = sorted(accepted.map((one) => one.ms))
  const row = [
    name,
    (outcomes.length + crowd.unsent) / seconds,
    accepted.length / seconds,
    refused.length / seconds,
    failed,
    quantile(ms, 0.5),
    quantile(ms, 0.99),
    ms.at(-1),
    refused.length > 0 ? quantile(refused, 0.5) : '',
    probeMs,
    spent,
    rss / 1024 / 1024,
  ]
  return { row, outcomes, accepted, ms, failed, probeMs }
}

function crowdOf(url: string, requests: readonly Sent[], maxConnections: number): Crowd {
  return new Crowd({ url, requests, maxConnections, giveUpMs: GIVE_UP_MS })
}

/** Checks health and readiness like a kubelet, each time on a new connection. Resolves with the slowest response. */
function watchProbes(url: string): { stop(): Promise<number> } {
  let slowest = 0
  const over = new AbortController()
  const asked = (async () => {
    for (let n = 0; !over.signal.aborted; n++) {
      const from = performance.now()
      const status = await probe(new URL(n % 2 === 0 ? '/health' : '/readyz', url))
      slowest = Math.max(slowest, status === 200 ? performance.now() - from : Number.POSITIVE_INFINITY)
      await setTimeout(PROBE_MS)
    }
    return slowest
  })()
  return {
    stop() {
      over.abort()
      return asked
    },
  }
}

function probe(url: URL): Promise<number> {
  return new Promise((resolve) => {
    const req = get(url, { agent: false, timeout: GIVE_UP_MS }, (res) => {
      res.resume().on('end', () => resolve(res.statusCode ?? 0))
    })
    req.on('error', () => resolve(0)).on('timeout', () => req.destroy())
  })
}
