/** Measures tools/list over 1, 5 and 20 backends of 200 tools: right after the start, and with warm caches. */
import { reached } from '../aims.ts'
import { BenchClient, type Era, requestOf } from './client.ts'
import { oneByOne } from './load.ts'
import { startBackends, startServer } from './rig.ts'
import { progress, quantile, sorted, table } from './table.ts'

const TOOLS = 200
const COLD_STARTS = 3
const WARM_LISTS = 300

/** Reads all pages like a client. Resolves with the number of tools and bytes. */
async function wholeList(
  client: BenchClient,
  era: Era,
  session: string | undefined,
): Promise<{ tools: number; bytes: number; pages: number }> {
  let tools = 0
  let bytes = 0
  for (let cursor: string | undefined, pages = 1; ; pages++) {
    const { body } = await client.result(
      requestOf(era, 'tools/list', cursor === undefined ? {} : { cursor }, session),
    )
    tools += body.split('"inputSchema"').length - 1
    bytes += body.length
    cursor = /"nextCursor":"([^"]+)"/.exec(body.slice(-600))?.[1]
    if (cursor === undefined) return { tools, bytes, pages }
  }
}

export async function lists(): Promise<string> {
  const rows: (string | number)[][] = []
  for (const servers of [1, 5, 20]) {
    const backends = await startBackends({ servers, tools: TOOLS })
    const cold: number[] = []
    const cpu: number[] = []
    for (let n = 0; n < COLD_STARTS; n++) {
      progress(`${servers} backends: start ${n + 1} of ${COLD_STARTS}`)
      const server = await startServer(backends.urls)
      const client = new BenchClient(server.url)
      const from = performance.now()
      const cpuFrom = server.cpuMicros()
      const session = await client.openSession()
      const { tools, bytes, pages } = await wholeList(client, 'session', session)
      cold.push(performance.now() - from)
      cpu.push((server.cpuMicros() - cpuFrom) / 1_000)
      if (tools !== servers * TOOLS) throw new Error(`${tools} tools instead of ${servers * TOOLS}`)
      if (n === COLD_STARTS - 1)
        rows.push(...(await warm(client, session, { servers, tools, bytes, pages }, { cold, cpu })))
      await client.close()
      await server.stop()
    }
    await backends.stop()
  }
  return table(
    [
      'backends',
      'tools',
      'pages',
      'MB',
      'client',
      'cold ms',
      'CPU ms',
      'warm p50 ms',
      'warm p99 ms',
      'one page p50 ms',
    ],
    rows,
  )
}

interface Size {
  readonly servers: number
  readonly tools: number
  readonly bytes: number
  readonly pages: number
}

async function warm(
  client: BenchClient,
  session: string,
  { servers, tools, bytes, pages }: Size,
  { cold, cpu }: { readonly cold: readonly number[]; readonly cpu: readonly number[] },
): Promise<(string | number)[][]> {
  const rows: (string | number)[][] = []
  for (const era of ['session', 'stateless'] as const) {
    progress(`${servers} backends: warm, ${era} client`)
    await oneByOne(WARM_LISTS / 3, () => wholeList(client, era, session))
    const whole = await oneByOne(WARM_LISTS, () => wholeList(client, era, session))
    const page = await oneByOne(WARM_LISTS, () => client.result(requestOf(era, 'tools/list', {}, session)))
    const coldMs = era === 'session' ? quantile(sorted(cold), 0.5) : ''
    const coldCpuMs = era === 'session' ? quantile(sorted(cpu), 0.5) : ''
    if (servers === 20 && era === 'session') reached('coldList', Number(coldMs))
    const [p50, p99, pageMs] = [quantile(whole, 0.5), quantile(whole, 0.99), quantile(page, 0.5)]
    rows.push([servers, tools, pages, bytes / 1e6, era, coldMs, coldCpuMs, p50, p99, pageMs])
  }
  return rows
}
