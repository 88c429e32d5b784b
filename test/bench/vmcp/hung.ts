/**
 * Stops one backend of ten without closing its connections (SIGSTOP). Measures the effect on the other nine and on
 * tools/list, once the failure is known and when the server starts next to it.
 */
import { setTimeout } from 'node:timers/promises'
import { BenchClient, callOf, requestOf, type Sent } from './client.ts'
import { openLoop } from './load.ts'
import { type Peer, startBackends, startServer } from './rig.ts'
import { progress, quantile, sorted, table } from './table.ts'

const RATE = 200
const SECONDS = 6
const DEADLINE_S = 2
const OPERATIONAL = {
  operational: {
    timeouts: { default: `${DEADLINE_S}s` },
    failureHandling: {
      partialFailureMode: 'best_effort',
      healthCheckInterval: '5s',
      healthCheckTimeout: '2s',
    },
  },
}

interface Rig {
  readonly healthy: Peer
  readonly hung: Peer
  readonly backends: Readonly<Record<string, string>>
}

export async function hung(): Promise<string> {
  const healthy = await startBackends({ servers: 9, tools: 20 })
  const hung = await startBackends({ tools: 20 })
  const backends = Object.fromEntries(healthy.urls.map((url, i) => [`b${i}`, url]))
  const rig: Rig = { healthy, hung, backends: { ...backends, hung: hung.url } }
  const rows = [...(await running(rig)), ...(await starting(rig))]
  await Promise.all([healthy.stop(), hung.stop()])
  return table(
    [
      'one of ten hangs, deadline 2 s',
      'calls to nine: p50 ms',
      'p99 ms',
      'worst ms',
      'failed',
      'tools/list p50 ms',
      'worst ms',
      'tools seen',
    ],
    rows,
  )
}

async function running({ hung, backends }: Rig): Promise<(string | number)[][]> {
  const server = await startServer(backends, OPERATIONAL)
  const client = new BenchClient(server.url)
  const session = await client.openSession()
  const all = Object.keys(backends).map((name) => callOf('session', `${name}_echo`, session))
  const nine = all.slice(0, 9)
  await client.result(requestOf('session', 'tools/list', {}, session))
  for (let n = 0; n < 200; n++) await Promise.all(nine.map((each) => client.result(each)))
  const rows = [await watch('before', client, session, nine)]
  hung.signal('SIGSTOP')
  // Calls to the hung backend are in flight all the time.
  let over = false
  const stuck = hangOn(client, all.slice(9), () => over)
  rows.push(await watch('while it hangs', client, session, nine))
  rows.push(await watch('later', client, session, nine))
  over = true
  hung.signal('SIGCONT')
  const slowest = await stuck
  rows.push([
    'calls to the hung one itself',
    quantile(slowest, 0.5),
    quantile(slowest, 0.99),
    slowest.at(-1) ?? 0,
  ])
  await client.close()
  await server.stop()
  return rows
}

/** Runs four clients that call the hung backend repeatedly. Resolves with the durations of the calls. */
async function hangOn(
  client: BenchClient,
  requests: readonly Sent[],
  over: () => boolean,
): Promise<Float64Array> {
  const ms: number[] = []
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!over()) {
        const from = performance.now()
        await Promise.all(requests.map((each) => client.send(each)))
        ms.push(performance.now() - from)
        // Fast rejections of an open circuit are not a meaningful load.
        await setTimeout(20)
      }
    }),
  )
  return sorted(ms)
}

async function watch(
  name: string,
  client: BenchClient,
  session: string,
  nine: readonly Sent[],
): Promise<(string | number)[]> {
  progress(`hung backend: ${name}`)
  const until = performance.now() + SECONDS * 1_000
  let tools = 0
  const listed: number[] = []
  const listing = (async () => {
    while (performance.now() < until) {
      const from = performance.now()
      const { body } = await client.result(requestOf('session', 'tools/list', {}, session))
      listed.push(performance.now() - from)
      tools = body.split('"inputSchema"').length - 1
      await setTimeout(50)
    }
  })()
  const { ms, failed } = await openLoop(client, nine, RATE, SECONDS)
  await listing
  const lists = sorted(listed)
  return [
    name,
    quantile(ms, 0.5),
    quantile(ms, 0.99),
    ms.at(-1) ?? 0,
    failed,
    quantile(lists, 0.5),
    lists.at(-1) ?? 0,
    tools,
  ]
}

/** Measures the first requests to a server that starts while one of its backends hangs. */
async function starting({ hung, backends }: Rig): Promise<(string | number)[][]> {
  progress('hung backend: start at the same time')
  hung.signal('SIGSTOP')
  const server = await startServer(backends, OPERATIONAL)
  const client = new BenchClient(server.url)
  const session = await client.openSession()
  const timed = async (sent: Sent): Promise<{ ms: number; tools: number }> => {
    const from = performance.now()
    const { body } = await client.result(sent)
    return { ms: performance.now() - from, tools: body.split('"inputSchema"').length - 1 }
  }
  const list = requestOf('session', 'tools/list', {}, session)
  const [call, first] = await Promise.all([timed(callOf('session', 'b0_echo', session)), timed(list)])
  const rows: (string | number)[][] = [
    ['started at the same time: first call, first list', call.ms, '', call.ms, 0, first.ms, first.ms, first.tools],
  ]
  const later: number[] = []
  const calls: number[] = []
  let tools = 0
  for (const until = Date.now() + 4_000; Date.now() < until; await setTimeout(50)) {
    const next = await timed(list)
    later.push(next.ms)
    tools = next.tools
    calls.push((await timed(callOf('session', 'b1_echo', session))).ms)
  }
  const [lists, called] = [sorted(later), sorted(calls)]
  rows.push([
    'the next 4 s',
    quantile(called, 0.5),
    quantile(called, 0.99),
    called.at(-1) ?? 0,
    0,
    quantile(lists, 0.5),
    lists.at(-1) ?? 0,
    tools,
  ])
  hung.signal('SIGCONT')
  await client.close()
  await server.stop()
  return rows
}
