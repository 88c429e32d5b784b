/**
 * Runs two replicas on one real Redis behind a round-robin balancer, under load. One replica is killed with SIGKILL;
 * later both restart one after the other, as in a rolling update. Clients send a call again when the connection broke
 * or the response was 502, 503 or 504, like real clients.
 */
import { setTimeout } from 'node:timers/promises'
import { missingRedis, startRedis } from '../../helpers/redis.ts'
import { type Balancer, startBalancer } from './balancer.ts'
import { BenchClient, callOf, type Era } from './client.ts'
import { type Peer, startBackends, startServer } from './rig.ts'
import { progress, table } from './table.ts'

const CLIENTS = 20
/** Pause of each client between two calls: real load, but far below the capacity of a core. */
const THINK_MS = 20
const RETRY_MS = 50
const GIVE_UP_MS = 10_000
const RETRIED: ReadonlySet<number> = new Set([502, 503, 504])

interface Tally {
  calls: number
  /** Calls that were sent more than once. */
  retried: number
  lost: number
  /** Sessions that the server reported as lost. */
  sessionsLost: number
  longestMs: number
  readonly violations: Map<string, number>
}

export async function replicas(): Promise<string> {
  if (missingRedis) return missingRedis
  const redis = await startRedis()
  const backend = await startBackends({ tools: 20 })
  const more = { sessionStorage: { provider: 'redis', address: redis.addr, db: 0, keyPrefix: 'bench:' } }
  const replica = (): Promise<Peer> => startServer(backend.urls, more)
  const pair: [Peer, Peer] = [await replica(), await replica()]
  const balancer = await startBalancer(pair.map(portOf))
  const rows: (string | number)[][] = []
  try {
    rows.push(await underLoad('nothing happens', balancer, async () => setTimeout(4_000)))
    rows.push(
      await underLoad('kill -9 of one', balancer, async () => {
        await setTimeout(2_000)
        await pair[0].stop('SIGKILL')
        await setTimeout(4_000)
      }),
    )
    pair[0] = await replica()
    balancer.ports = pair.map(portOf)
    rows.push(
      await underLoad('rolling restart of both (SIGTERM)', balancer, async () => {
        for (const n of [0, 1] as const) {
          await setTimeout(1_500)
          const old = pair[n]
          pair[n] = await replica()
          // Stops new connections before the signal, as Kubernetes removes an endpoint before the pod ends.
          balancer.ports = pair.map(portOf)
          await setTimeout(200)
          await old.stop('SIGTERM')
        }
        await setTimeout(1_500)
      }),
    )
  } finally {
    balancer.close()
    await Promise.all(pair.map((each) => each.stop('SIGKILL')))
    await Promise.all([backend.stop(), redis.stop()])
  }
  return table(
    [
      'two replicas, one Redis, 40 clients',
      'calls',
      'sent again',
      '**lost**',
      'sessions',
      '**sessions continued**',
      'longest pause ms',
      'why sent again',
    ],
    rows,
  )
}

function portOf({ url }: Peer): number {
  return Number(new URL(url).port)
}

async function underLoad(
  name: string,
  balancer: Balancer,
  event: () => Promise<void>,
): Promise<(string | number)[]> {
  progress(`replicas: ${name}`)
  const tally: Tally = { calls: 0, retried: 0, lost: 0, sessionsLost: 0, longestMs: 0, violations: new Map() }
  let over = false
  const eras = ['session', 'stateless'] as const
  const clients = await Promise.all(
    Array.from({ length: 2 * CLIENTS }, async (_, i) => {
      // One connection each, like separate programs.
      const client = new BenchClient(balancer.url, 1)
      const era = eras[i % 2] ?? 'session'
      return { client, era, session: era === 'session' ? await client.openSession() : undefined }
    }),
  )
  const work = clients.map(({ client, era, session }) => callOnAndOn(client, era, session, tally, () => over))
  await event()
  over = true
  await Promise.all(work)
  await Promise.all(clients.map(({ client }) => client.close()))
  const why = [...tally.violations].map(([what, times]) => `${what} ${times}`).join(', ')
  const continued = CLIENTS - tally.sessionsLost
  return [name, tally.calls, tally.retried, tally.lost, CLIENTS, continued, tally.longestMs, why]
}

async function callOnAndOn(
  client: BenchClient,
  era: Era,
  session: string | undefined,
  tally: Tally,
  over: () => boolean,
): Promise<void> {
  const request = callOf(era, 'b0_echo', session)
  while (!over()) {
    const from = performance.now()
    tally.calls++
    for (let attempt = 1; ; attempt++) {
      const failure = await client.send(request).then(
        ({ status, body }) => (status === 200 && body.includes('"isError":false') ? '' : `HTTP ${status}`),
        (error: Error & { code?: string }) => error.code ?? error.message,
      )
      if (failure === '') break
      tally.violations.set(failure, (tally.violations.get(failure) ?? 0) + 1)
      if (attempt === 1) tally.retried++
      if (failure === 'HTTP 404') {
        tally.sessionsLost++
        tally.lost++
        return
      }
      const again = !failure.startsWith('HTTP ') || RETRIED.has(Number(failure.slice(5)))
      if (!again || performance.now() - from > GIVE_UP_MS) {
        tally.lost++
        break
      }
      await setTimeout(RETRY_MS)
    }
    tally.longestMs = Math.max(tally.longestMs, performance.now() - from)
    await setTimeout(THINK_MS)
  }
}
