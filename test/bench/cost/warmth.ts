/** Measures how the CPU time of a call changes after a start, after an idle period, and while the log reader stalls. */
import { median } from '../common/turns.ts'
import { callOf } from '../vmcp/client.ts'
import { type Cell, progress, table } from '../vmcp/table.ts'
import { microsOf, requestsOf, type Way } from './compare.ts'
import { ownBuild, startProxy } from './servers.ts'
import { proxyWay, vmcpWay } from './ways.ts'

const slices = 10
const callsOfSlice = 1_000
/** Calls until the engine has compiled the whole path. */
const callsToWarmUp = 15_000
const warmSlices = 5
/** BENCH_REST_SECONDS=300 measures an idle period of five minutes. */
const restSeconds = Number(process.env['BENCH_REST_SECONDS'] ?? 15)
const stallRounds = 9

/** Measures slices after a start, the warm figure, and the first slice after an idle period. */
export async function measureCourse(backend: string): Promise<string> {
  const rows: Cell[][] = []
  for (const way of [proxyWay(backend), vmcpWay(backend)]) {
    progress(way.name)
    const runner = await started(way)
    const first: number[] = []
    for (let n = 0; n < slices; n++) first.push(await microsOf(runner, callsOfSlice))
    await microsOf(runner, callsToWarmUp)
    const warm = await warmFigure(runner)
    progress(`idle for ${restSeconds} s`)
    await new Promise((resolve) => setTimeout(resolve, restSeconds * 1_000))
    const rested = await microsOf(runner, callsOfSlice)
    rows.push([way.name, first.map((micros) => micros.toFixed(0)).join(', '), warm, rested, rested / warm])
    await runner.server.stop()
  }
  const head = [
    'tools/call, CPU µs',
    `slices of ${callsOfSlice} calls after a start`,
    'warm',
    `after ${restSeconds} s without calls`,
    '× warm',
  ]
  return table(head, rows)
}

/** Compares a proxy whose log is not read with a proxy that writes its log to a file. */
export async function measureStalledLog(backend: string): Promise<string> {
  const requests = [callOf('session', 'echo')]
  const [file, stalled] = [
    await startProxy(ownBuild, backend),
    await startProxy(ownBuild, backend, { log: 'unread' }),
  ]
  const runners = [file, stalled].map((server) => ({ server, requests }))
  for (const runner of runners) await microsOf(runner, callsToWarmUp)
  const micros: number[][] = [[], []]
  for (let round = 0; round < stallRounds; round++)
    for (const [i, runner] of runners.entries()) micros[i]?.push(await microsOf(runner, callsOfSlice))
  const [read = Number.NaN, unread = Number.NaN] = micros.map(median)
  await Promise.all(runners.map(({ server }) => server.stop()))
  return table(
    ['proxy, tools/call, CPU µs', 'log to a file', 'log reader stalled', 'ratio'],
    [['', read, unread, unread / read]],
  )
}

async function started(way: Way) {
  const server = await way.start(ownBuild)
  return { server, requests: await requestsOf(server, way) }
}

async function warmFigure(runner: Awaited<ReturnType<typeof started>>): Promise<number> {
  const micros: number[] = []
  for (let n = 0; n < warmSlices; n++) micros.push(await microsOf(runner, callsOfSlice))
  return median(micros)
}
