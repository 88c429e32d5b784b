/** Measures tools/call: the added latency at fixed rates and the maximum throughput, in both eras. */
import { callCosts, reached } from '../aims.ts'
import { addedTo, inTurns, median, ratioOf, warmUp } from '../common/turns.ts'
import { BenchClient, callOf, type Era, type Sent } from './client.ts'
import { closedLoop, openLoop, type Throughput } from './load.ts'
import { type Peer, startBackends, startProxy, startServer } from './rig.ts'
import { type Cell, progress, quantile, table } from './table.ts'

const CONNECTIONS = 32
const RATES = [500, 2_000] as const
const rateTurns = { rounds: 7, warmUps: 1 }
const RATE_SECONDS = 1
/** CPU seconds until the engine has compiled the whole path. Before that, figures are twice as high. */
const WARM_UP_SECONDS = 3
const turns = { session: { rounds: 7, warmUps: 1 }, stateless: { rounds: 5, warmUps: 1 } } as const
/** A large result takes a large part of a second. */
const LARGE_SECONDS = 2
const largeTurns = { rounds: 3, warmUps: 1 }

/** One path to a tool: requests to a server, whose CPU time counts. */
interface Way {
  readonly name: string
  readonly server: Peer
  readonly requests: readonly Sent[]
  readonly cells: readonly Cell[]
}

interface Slice extends Throughput {
  /** CPU microseconds of a call. */
  readonly cpu: number
  readonly collectedMs: number
}

type Slices = ReadonlyMap<Way, readonly Slice[]>

/** Returns one request for each connection, because clients do not share sessions. */
async function requestsOf({ url }: Peer, era: Era, tool: string): Promise<readonly Sent[]> {
  if (era === 'stateless') return [callOf(era, tool)]
  const client = new BenchClient(url)
  const sessions = await client.openSessions(CONNECTIONS)
  await client.close()
  return sessions.map((session) => callOf(era, tool, session))
}

async function load({ server, requests }: Way, seconds: number, atOnce = CONNECTIONS): Promise<Slice> {
  const before = await server.memory({ settle: false })
  const done = await closedLoop(server.url, requests, seconds, atOnce)
  const after = await server.memory({ settle: false })
  return {
    ...done,
    cpu: (after.cpuMicros - before.cpuMicros) / done.requests,
    collectedMs: after.collectedMs - before.collectedMs,
  }
}

/** Warms up the servers, but not the backends, which are warm from the first second on. */
async function warm(ways: readonly Way[], cpuSeconds: number, atOnce = CONNECTIONS): Promise<void> {
  progress('warming up')
  const through = ways.filter(({ name }) => !name.startsWith('direct'))
  await warmUp(
    through,
    cpuSeconds,
    ({ server }) => server.cpuMicros(),
    (way) => load(way, 1, atOnce),
  )
}

function valuesOf(slices: Slices, name: string, figure: keyof Slice): readonly number[] {
  return [...slices].find(([way]) => way.name === name)?.[1].map((slice) => slice[figure]) ?? []
}

/**
 * Measures the added latency at fixed rates: the median of the percentiles of all slices, so that a disturbance of the
 * machine affects only one of seven.
 */
export async function rates(): Promise<string> {
  const rows: Cell[][] = []
  for (const era of ['session', 'stateless'] as const) {
    const backend = await startBackends({ era })
    const server = await startServer(backend.urls)
    const way = async (name: string, peer: Peer, tool: string) => ({
      name,
      server: peer,
      client: new BenchClient(peer.url),
      requests: await requestsOf(peer, era, tool),
      cells: [],
    })
    const ways = [await way('direct', backend, 'echo'), await way('vMCP', server, 'b0_echo')]
    progress(era)
    await warm(ways, WARM_UP_SECONDS)
    for (const rate of RATES) {
      progress(`${era}: ${rate} calls a second`)
      const slices = await inTurns(ways, rateTurns, async ({ client, requests, server: peer }) => {
        const before = (await peer.memory({ settle: false })).cpuMicros
        const { ms, failed } = await openLoop(client, requests, rate, RATE_SECONDS)
        return { ms, failed, cpu: (await peer.memory({ settle: false })).cpuMicros - before }
      })
      const [direct = [], through = []] = [...slices.values()]
      const cells = [0.5, 0.99].flatMap((share) => {
        const at = (all: typeof direct): number[] => all.map(({ ms }) => quantile(ms, share))
        const [without, within] = [at(direct), at(through)]
        const added = addedTo(without, within)
        if (share === 0.99) reached(`${era}${rate}`, added)
        return [median(without), median(within), added]
      })
      const failed = through.reduce((sum, slice) => sum + slice.failed, 0)
      rows.push([era, rate, ...cells, median(through.map(({ cpu, ms }) => cpu / ms.length)), failed])
    }
    for (const { client } of ways) await client.close()
    await Promise.all([server.stop(), backend.stop()])
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

/** Measures the highest throughput for each client era and backend era, and for our own proxy. */
export async function throughput(): Promise<string> {
  const rows: Cell[][] = []
  for (const era of ['session', 'stateless'] as const) {
    progress(`${era} backend`)
    const backend = await startBackends({ era })
    const server = await startServer(backend.urls)
    const way = async (
      name: string,
      to: Peer,
      client: Era,
      tool: string,
      response = 'JSON',
    ): Promise<Way> => ({
      name,
      server: to,
      requests: await requestsOf(to, client, tool),
      cells: [name, client, era, response],
    })
    const ways = [
      await way('direct', backend, era, 'echo'),
      await way('vMCP', server, 'session', 'b0_echo'),
      await way('vMCP, stateless client', server, 'stateless', 'b0_echo'),
    ]
    if (era === 'session') {
      ways.push(
        await way('our proxy', await startProxy(backend), era, 'echo'),
        await way('vMCP, events', server, era, 'b0_stream', 'event stream'),
        await way('direct, events', backend, era, 'stream', 'event stream'),
      )
    }
    await warm(ways, WARM_UP_SECONDS)
    const slices = await inTurns(ways, turns[era], (one) => load(one, 1))
    if (era === 'session') compare(slices)
    rows.push(...ways.map((one) => rowOf(one, slices)))
    await stopAllOf(ways)
  }
  return table(
    ['what', 'client', 'backend', 'response', 'calls/s', 'ratio', 'p50 ms', 'p99 ms', 'CPU µs/call'],
    rows,
  )
}

function rowOf({ name, cells }: Way, slices: Slices): Cell[] {
  const of = (figure: keyof Slice) => valuesOf(slices, name, figure)
  const base = valuesOf(slices, name.endsWith('events') ? 'direct, events' : 'direct', 'perSecond')
  const ratio = ratioOf(of('perSecond'), base)
  return [
    ...cells,
    median(of('perSecond')),
    ratio,
    median(of('p50Ms')),
    median(of('p99Ms')),
    median(of('cpu')),
  ]
}

function compare(slices: Slices): void {
  const of = (name: string, figure: keyof Slice) => valuesOf(slices, name, figure)
  const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0)
  const cpu = of('vMCP', 'cpu')
  const spentMs = sum(cpu.map((each, round) => each * (of('vMCP', 'requests')[round] ?? 0))) / 1_000
  callCosts(median(cpu))
  reached('vmcpShare', ratioOf(of('vMCP', 'perSecond'), of('direct', 'perSecond')))
  reached('vmcpToProxy', ratioOf(cpu, of('our proxy', 'cpu')))
  reached('eventsToJson', ratioOf(of('vMCP, events', 'cpu'), cpu))
  reached('collection', (100 * sum(of('vMCP', 'collectedMs'))) / spentMs)
}

/** Measures a result of 1 MB, one at a time and four at a time. */
export async function large(): Promise<string> {
  const rows: Cell[][] = []
  const backend = await startBackends()
  const server = await startServer(backend.urls)
  const ways = [
    { name: 'direct', server: backend, requests: await requestsOf(backend, 'session', 'large'), cells: [] },
    { name: 'vMCP', server, requests: await requestsOf(server, 'session', 'b0_large'), cells: [] },
  ]
  await warm(ways, WARM_UP_SECONDS, 4)
  for (const atOnce of [1, 4]) {
    progress(`1 MB, ${atOnce} at a time`)
    const slices = await inTurns(ways, largeTurns, (way) => load(way, LARGE_SECONDS, atOnce))
    const { rss } = await server.memory({ settle: false })
    const of = (name: string, figure: keyof Slice) => valuesOf(slices, name, figure)
    const share = ratioOf(of('vMCP', 'perSecond'), of('direct', 'perSecond'))
    reached(atOnce === 1 ? 'large1' : 'large4', share)
    rows.push([
      atOnce,
      median(of('direct', 'perSecond')),
      median(of('vMCP', 'perSecond')),
      share,
      median(of('direct', 'p50Ms')),
      median(of('vMCP', 'p50Ms')),
      median(of('vMCP', 'p99Ms')),
      median(of('vMCP', 'cpu')),
      rss / 1024 / 1024,
    ])
  }
  await stopAllOf(ways)
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

async function stopAllOf(ways: readonly Way[]): Promise<void> {
  for (const server of new Set(ways.map((way) => way.server))) await server.stop()
}
