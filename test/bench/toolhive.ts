/**
 * The built programs beside those of ToolHive, on the same work in one run: TOOLHIVE_VMCP and TOOLHIVE_THV name its `vmcp`
 * and `thv`. What is not there is left out of the tables.
 *
 * The server under test has one core; load and backends have the other. Rounds go in turn, and medians are printed: only
 * ratios within one run mean anything. Each request has an id of its own, because ToolHive refuses two with one id.
 */
import autocannon from 'autocannon'
import { startNginx, stopAll as stopProxyPeers } from './proxy/rig.ts'
import { countTools, endAll, type Server, startProxy, startVmcp, vmcpMakers } from './toolhive/servers.ts'
import { BenchClient, callOf, requestOf, type Sent } from './vmcp/client.ts'
import { pinSelf, startBackends, stopAll } from './vmcp/rig.ts'
import { type Cell, progress, sorted, table } from './vmcp/table.ts'

const connections = 16
const rounds = 3
const seconds = 4
const idleSessions = 1_000
const newSessions = 40
const starts = 3

export const parts: Readonly<Record<string, () => Promise<string>>> = {
  calls,
  fan,
  sessions,
  proxies,
  starting,
}

/** Compares the named parts, or all. Resolves with whether all of them could be measured. */
export async function run(wanted: readonly string[] = []): Promise<boolean> {
  pinSelf()
  let good = true
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    progress(`toolhive:${name}`)
    try {
      console.log(`\n${await part()}`)
    } catch (error) {
      good = false
      console.log(`\ntoolhive:${name}: ${error instanceof Error ? error.message : String(error)}`)
    } finally {
      await Promise.all([stopAll(), stopProxyPeers()])
    }
  }
  endAll()
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

/** What a session costs that has called once and stays. */
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

/** To the first list that has the tools of all three backends. */
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
  const measured = new Map(servers.map((server) => [server, [] as Round[]]))
  const requests = new Map<Server, Sent[]>()
  for (const server of servers) {
    const client = new BenchClient(server.url)
    const ids = await client.openSessions(connections)
    requests.set(
      server,
      ids.map((id) => request(server, id)),
    )
    for (const one of requests.get(server) ?? []) await client.result(one)
    await client.close()
    await load(server, requests.get(server) ?? [], 2)
  }
  for (let round = 0; round < rounds; round++)
    for (const server of servers) {
      progress(`${title}: ${server.name}, round ${round + 1}`)
      measured.get(server)?.push(await load(server, requests.get(server) ?? [], seconds))
    }
  const rate = (server: Server | undefined): number =>
    median((server && measured.get(server)?.map(({ perSecond }) => perSecond)) ?? [])
  const rows = servers.map((server): Cell[] => {
    const own = measured.get(server) ?? []
    const share = rate(server) / rate(servers[0])
    const last = own.map(({ rssMb }) => rssMb)
    return [
      server.name,
      ...[rate(server), share],
      ...(server.program ? [median(own.map(({ cpuMicros }) => cpuMicros))] : [undefined]),
      ...[median(own.map(({ p50Ms }) => p50Ms)), median(own.map(({ p99Ms }) => p99Ms))],
      server.program && !Number.isNaN(median(last)) ? median(last) : undefined,
    ]
  })
  return table([title, 'requests/s', 'ratio', 'CPU µs/request', 'p50 ms', 'p99 ms', 'RSS MB'], rows)
}

interface Round {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicros: number
  readonly rssMb: number
}

/** As fast as answers come back. Throws when any is refused. */
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
    rssMb: program?.memory().now ?? Number.NaN,
  }
}

function median(values: readonly number[]): number {
  return sorted(values)[values.length >> 1] ?? Number.NaN
}
