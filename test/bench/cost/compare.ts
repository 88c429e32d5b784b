/**
 * Compares the CPU time of a call in several servers of one run. The servers take turns in short slices, because the
 * speed of a machine changes within a minute. A figure is the median of all slices of a server.
 */
import { inTurns, median } from '../common/turns.ts'
import { BenchClient, callOf, type Era, type Sent } from '../vmcp/client.ts'
import { progress } from '../vmcp/table.ts'
import { sendCalls } from './load.ts'
import { type MeasuredServer, otherBuild, ownBuild } from './servers.ts'

/** A way to call a tool. */
export interface Way {
  readonly name: string
  /** Era of the client. */
  readonly era: Era
  readonly tool: string
  readonly headers?: Readonly<Record<string, string>>
  /** Starts the server from a build. Each build has its own server. */
  readonly start: (build: string) => Promise<MeasuredServer>
}

export interface Measured {
  readonly name: string
  /** Median CPU microseconds of a call. */
  readonly micros: number
  /** Median CPU microseconds of a call in the build from BENCH_OTHER_DIST. */
  readonly otherMicros: number | undefined
}

export interface Amount {
  /** Odd, so that the median is one of the slices. */
  readonly rounds: number
  readonly callsOfSlice: number
  readonly callsToWarmUp: number
}

const usualAmount: Amount = {
  rounds: Number(process.env['BENCH_ROUNDS'] ?? 11),
  callsOfSlice: 700,
  callsToWarmUp: 8_000,
}

const connections = 16

interface Runner extends Way {
  readonly server: MeasuredServer
  readonly requests: readonly Sent[]
  readonly isOther: boolean
}

export async function measureCalls(ways: readonly Way[], amount = usualAmount): Promise<readonly Measured[]> {
  const runners: Runner[] = []
  for (const way of ways) {
    runners.push(await prepare(way, ownBuild))
    if (otherBuild !== undefined) runners.push({ ...(await prepare(way, otherBuild)), isOther: true })
  }
  progress('warming up')
  for (const runner of runners) await sendCalls(runner.server.url, runner.requests, amount.callsToWarmUp)
  const slices = await inTurns(runners, { rounds: amount.rounds, warmUps: 1 }, (runner) =>
    microsOf(runner, amount.callsOfSlice),
  )
  await Promise.all(runners.map(({ server }) => server.stop()))
  const medianOf = (found: Runner | undefined): number | undefined => found && median(slices.get(found) ?? [])
  return ways.map(({ name }) => ({
    name,
    micros: medianOf(runners.find((one) => one.name === name && !one.isOther)) ?? Number.NaN,
    otherMicros: medianOf(runners.find((one) => one.name === name && one.isOther)),
  }))
}

async function prepare(way: Way, build: string): Promise<Runner> {
  const server = await way.start(build)
  const requests = await requestsOf(server, way)
  return { ...way, server, requests, isOther: false }
}

/** Returns one request for each connection, because clients do not share sessions. */
export async function requestsOf(
  { url }: MeasuredServer,
  { era, tool, headers = {} }: Pick<Way, 'era' | 'tool' | 'headers'>,
): Promise<readonly Sent[]> {
  if (era === 'stateless') return [withHeaders(callOf(era, tool), headers)]
  const client = new BenchClient(url, 64, headers)
  try {
    const sessions = await client.openSessions(connections)
    return sessions.map((session) => withHeaders(callOf(era, tool, session), headers))
  } finally {
    await client.close()
  }
}

function withHeaders(sent: Sent, headers: Readonly<Record<string, string>>): Sent {
  return { ...sent, headers: { ...sent.headers, ...headers } }
}

/** Sends calls and returns the CPU microseconds of each. */
export async function microsOf(
  { server, requests }: { readonly server: MeasuredServer; readonly requests: readonly Sent[] },
  calls: number,
): Promise<number> {
  const before = server.cpuMicros()
  await sendCalls(server.url, requests, calls, connections)
  return (server.cpuMicros() - before) / calls
}
