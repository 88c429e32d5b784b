/**
 * Compares the built programs with those of ToolHive on the same work in one run: TOOLHIVE_VMCP and TOOLHIVE_THV name
 * its `vmcp` and `thv`. The tables omit missing programs.
 *
 * The server under test has one core; load and backends have the other. All servers take turns, and medians are
 * printed: only ratios within one run are meaningful. Each request has a unique id, because ToolHive rejects a repeated
 * id. Run `make build` first.
 */
import autocannon from 'autocannon'
import { type Parts, runParts } from './common/parts.ts'
import { startNginx, stopAll as stopProxyPeers } from './proxy/rig.ts'
import { inTurns, median, ratioOf, warmUp } from './common/turns.ts'
import {
  countTools,
  endServers,
  removeFiles,
  type Server,
  startProxy,
  startVmcp,
  vmcpMakers,
} from './toolhive/servers.ts'
import { BenchClient, callOf, requestOf, type Sent } from './vmcp/client.ts'
import { pinSelf, startBackends, stopAll } from './vmcp/rig.ts'
import { type Cell, progress, table } from './vmcp/table.ts'

const connections = 16
const turns = { rounds: 5, warmUps: 1 }
/**
 * CPU seconds until our programs have optimized the whole path, which requires load. Programs in Go and C do not need
 * it.
 */
const warmUpSeconds = 6
/** CPU seconds for each further kind of request. */
const moreSeconds = 2

const idleSessions = 500
const newSessions = 20
const starts = 3

export const parts: Parts = { calls, fan, sessions, proxies, starting }

/** Compares the named parts, or all. Resolves with true when all were measured. */
export async function run(wanted: readonly string[] = []): Promise<boolean> {
  pinSelf()
  const good = await runParts('toolhive', parts, {
    wanted,
    limitMs: 5 * 60_000,
    async cleanUp() {
      endServers()
      await Promise.all([stopAll(), stopProxyPeers()])
    },
  })
  removeFiles()
  return good
}

/** One backend of 40 tools. */
async function calls(): Promise<string> {
  const backends = await startBackends({ tools: 40 })
  const servers = await startVmcps(backends.urls, 40)
  const direct = directly(backends.url)
  return [
    await compare('tools/call, 1 backend of 40 tools', [direct, ...servers], ({ program }, session) =>
      callOf('session', program ? 'b0_echo' : 'echo', session),
    ),
    await compare('tools/list, 1 backend of 40 tools', [direct, ...servers], (_server, session) =>
      requestOf('session', 'tools/list', {}, session),
    ),
  ].join('\n\n')
}

/** Twenty backends of 50 tools. */
async function fan(): Promise<string> {
  const backends = await startBackends({ servers: 20, tools: 50 })
  const servers = await startVmcps(backends.urls, 1_000)
  const direct = directly(backends.url)
  const tables = [
    await compare('tools/call, 20 backends of 50 tools', [direct, ...servers], ({ program }, session) =>
      callOf('session', program ? 'b7_echo' : 'echo', session),
    ),
    await compare('tools/list, 20 backends of 50 tools', [direct, ...servers], (_server, session) =>
      requestOf('session', 'tools/list', {}, session),
    ),
  ]
  const rows: Cell[][] = []
  for (const server of servers) rows.push([server.name, ...(await openAndList(server))])
  tables.push(table(['new session and first tools/list, 20 backends', 'ms', 'CPU ms'], rows))
  return tables.join('\n\n')
}

async function openAndList({ url, program }: Server): Promise<[ms: number, cpuMs: number]> {
  const client = new BenchClient(url)
  const cpu = program?.cpuMs() ?? Number.NaN
  const began = performance.now()
  for (let n = 0; n < newSessions; n++) await countTools(client, await client.openSession())
  const figures: [number, number] = [
    (performance.now() - began) / newSessions,
    ((program?.cpuMs() ?? Number.NaN) - cpu) / newSessions,
  ]
  await client.close()
  return figures
}

/** Measures the cost of an open session after one call. */
async function sessions(): Promise<string> {
  const backends = await startBackends({ servers: 3, tools: 40 })
  const servers = await startVmcps(backends.urls, 120)
  const rows: Cell[][] = []
  for (const { name, url, program } of servers) {
    progress(name)
    const client = new BenchClient(url)
    const before = program?.memory().now ?? Number.NaN
    for (const session of await client.openSessions(idleSessions))
      await client.result(callOf('session', 'b0_echo', session))
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const after = program?.memory().now ?? Number.NaN
    rows.push([name, idleSessions, before, after, ((after - before) * 1_024) / idleSessions])
    await client.close()
  }
  return table(['idle sessions after one call', 'number', 'RSS before MB', 'RSS with MB', 'KB each'], rows)
}

async function proxies(): Promise<string> {
  const backends = await startBackends({ tools: 40 })
  const nginx = await startNginx(
    { origin: new URL(backends.url).origin, cpuMicros: backends.cpuMicros, stop: () => backends.stop() },
    1,
  )
  const proxies = [
    await startProxy('gatehouse', backends.url),
    await startProxy('toolhive', backends.url),
  ].filter((server) => server !== undefined)
  const asServer: Server[] = nginx
    ? [
        {
          name: 'nginx',
          url: `${nginx.origin}/mcp`,
          cost: undefined,
          program: {
            pid: 0,
            cpuMs: () => nginx.cpuMicros() / 1_000,
            memory: () => ({ now: Number.NaN, peak: Number.NaN }),
            stop: () => nginx.stop(),
          },
        },
      ]
    : []
  return compare('proxy, tools/call', [directly(backends.url), ...asServer, ...proxies], (_server, session) =>
    callOf('session', 'echo', session),
  )
}

/** Measures the time to the first list with the tools of all three backends. */
async function starting(): Promise<string> {
  const backends = await startBackends({ servers: 3, tools: 40 })
  const rows: Cell[][] = []
  for (const maker of vmcpMakers()) {
    const figures: number[][] = []
    for (let n = 0; n < starts; n++) {
      const { program, cost } = await startVmcp(maker, backends.urls, 120)
      figures.push([
        cost?.wallMs ?? Number.NaN,
        cost?.cpuMs ?? Number.NaN,
        program?.memory().now ?? Number.NaN,
      ])
      await program?.stop()
    }
    rows.push([maker, ...[0, 1, 2].map((i) => median(figures.map((one) => one[i] ?? Number.NaN)))])
  }
  return table(['start to the first complete tools/list, 3 backends', 'ms', 'CPU ms', 'RSS MB'], rows)
}

async function startVmcps(backends: readonly string[], tools: number): Promise<Server[]> {
  const servers: Server[] = []
  for (const maker of vmcpMakers()) servers.push(await startVmcp(maker, backends, tools))
  return servers
}

function directly(url: string): Server {
  return { name: 'direct', url, program: undefined, cost: undefined }
}

async function compare(
  title: string,
  servers: readonly Server[],
  request: (server: Server, session: string) => Sent,
): Promise<string> {
  const requests = new Map<Server, Sent[]>()
  for (const server of servers) {
    progress(`${title}: ${server.name}, warming up`)
    const client = new BenchClient(server.url)
    // On a busy core, ToolHive cannot open all sessions at once within its half minute.
    const ids = await client.openSessions(connections, 2)
    const own = ids.map((id) => request(server, id))
    for (const one of own) await client.result(one)
    await client.close()
    requests.set(server, own)
  }
  const cpuMicros = ({ program }: Server): number => (program?.cpuMs() ?? 0) * 1_000
  const ours = servers.filter(({ name }) => name.startsWith('gatehouse'))
  const isNew = ours.some((server) => cpuMicros(server) < warmUpSeconds * 1e6)
  await warmUp(ours, isNew ? warmUpSeconds : moreSeconds, cpuMicros, (server) =>
    load(server, requests.get(server) ?? [], 1),
  )
  const slices = await inTurns(servers, turns, (server) => load(server, requests.get(server) ?? [], 1))
  const [direct = []] = slices.values()
  const rows = [...slices].map(([{ name, program }, own]): Cell[] => {
    const of = (figure: keyof Round, all = own) => all.map((round) => round[figure])
    return [
      name,
      median(of('perSecond')),
      ratioOf(of('perSecond'), of('perSecond', [...direct])),
      program && median(of('cpuMicros')),
      median(of('p50Ms')),
      median(of('p99Ms')),
      program?.memory().now,
    ]
  })
  return table([title, 'requests/s', 'ratio', 'CPU µs/request', 'p50 ms', 'p99 ms', 'RSS MB'], rows)
}

interface Round {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicros: number
}

/** Sends requests as fast as responses arrive. Throws when a request is rejected. */
async function load(
  { url, program, name }: Server,
  requests: readonly Sent[],
  forSeconds: number,
): Promise<Round> {
  const [first] = requests
  if (!first) throw new Error('no requests')
  let next = 0
  const before = program?.cpuMs() ?? 0
  const result = await autocannon({
    url,
    connections,
    duration: forSeconds,
    method: 'POST' as const,
    body: `{"jsonrpc":"2.0","id":"[<id>]"${first.rest}`,
    idReplacement: true,
    setupClient: (client: { setHeaders(headers: Readonly<Record<string, string>>): void }) =>
      client.setHeaders(requests[next++ % requests.length]?.headers ?? {}),
  } as Parameters<typeof autocannon>[0])
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${name}: ${result.non2xx} refusals, ${result.errors} errors`)
  return {
    perSecond: result.requests.total / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    cpuMicros: (((program?.cpuMs() ?? 0) - before) * 1_000) / result.requests.total,
  }
}
