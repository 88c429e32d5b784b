/**
 * What a request costs on its way through the virtual server, against direct access to its backend, measured in one
 * run. Every connection of the load has its own client session, as real clients do.
 *
 * The peer under test is pinned to one core, load and backend to another. CPU time comes from the peer's own
 * accounting. Read the ratios, not the digits. `node test/bench/vmcp.ts`
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import autocannon from 'autocannon'
import { type BenchRow, format } from './proxy.ts'

const seconds = Number(process.env['BENCH_SECONDS'] ?? 5)
const connections = 32
const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

interface Peer {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

interface Load {
  readonly name: string
  readonly method: string
  /** Tool name without prefix. */
  readonly tool?: string
}

const loads: readonly Load[] = [
  { name: 'tools/call, JSON', method: 'tools/call', tool: 'echo' },
  { name: 'tools/call, event stream', method: 'tools/call', tool: 'stream' },
  { name: 'tools/call, 1 MB', method: 'tools/call', tool: 'large' },
  { name: 'tools/list, 100 tools', method: 'tools/list' },
]

/** Runs everything and prints the table. */
export async function run(): Promise<void> {
  console.log(format(await measureAll()))
}

/** For each load two rows: direct access, then through the virtual server. */
export async function measureAll(): Promise<readonly BenchRow[]> {
  pin(process.pid, 1)
  const backend = await start('mcp-backend.ts', ['100'], 1)
  const vmcp = await start('vmcp.ts', [backend.url], 0)
  const rows: BenchRow[] = []
  try {
    const directSessions = await openSessions(backend.url)
    const sessions = await openSessions(vmcp.url)
    for (const load of loads) {
      const direct = await measure(
        `${load.name}: direct`,
        backend.url,
        directSessions,
        body(load, ''),
        undefined,
        undefined,
      )
      rows.push(
        direct,
        await measure(`${load.name}: vmcp`, vmcp.url, sessions, body(load, 'b0_'), vmcp.pid, direct),
      )
    }
  } finally {
    await vmcp.stop()
    await backend.stop()
  }
  return rows
}

function body({ method, tool }: Load, prefix: string): string {
  const params = tool === undefined ? {} : { name: `${prefix}${tool}`, arguments: { text: 'x'.repeat(120) } }
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
}

async function openSessions(url: string): Promise<readonly string[]> {
  const initialize = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
  }
  return Promise.all(
    Array.from({ length: connections }, async () => {
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(initialize) })
      await response.arrayBuffer()
      return response.headers.get('mcp-session-id') ?? ''
    }),
  )
}

async function measure(
  name: string,
  url: string,
  sessions: readonly string[],
  call: string,
  pid: number | undefined,
  direct: BenchRow | undefined,
): Promise<BenchRow> {
  let next = 0
  const options = {
    url,
    connections,
    method: 'POST' as const,
    headers,
    body: call,
    setupClient: (client: { setHeaders(headers: Record<string, string>): void }) =>
      client.setHeaders({ ...headers, 'mcp-session-id': sessions[next++ % sessions.length] ?? '' }),
  }
  await autocannon({ ...options, duration: 1 })
  const before = pid === undefined ? 0 : cpuMicros(pid)
  const result = await autocannon({ ...options, duration: seconds })
  const cpu = pid === undefined ? undefined : (cpuMicros(pid) - before) / result.requests.total
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${name}: ${result.non2xx} refusals, ${result.errors} errors`)
  const requestsPerSecond = result.requests.total / result.duration
  return {
    name,
    requestsPerSecond,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    cpuMicrosPerRequest: cpu,
    ratio: direct ? requestsPerSecond / direct.requestsPerSecond : 1,
  }
}

function cpuMicros(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

async function start(file: string, args: readonly string[], core: number): Promise<Peer> {
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, 'peers', file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (child.pid !== undefined) pin(child.pid, core)
  if (!child.stdout) throw new Error(`${file} has no output`)
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return {
    url: `http://127.0.0.1:${Number(line)}/mcp`,
    pid: child.pid ?? 0,
    async stop() {
      const gone = once(child, 'exit')
      child.kill()
      await gone
    },
  }
}

function pin(pid: number, core: number): void {
  if (availableParallelism() < 2) return
  try {
    execFileSync('taskset', ['-apc', String(core), String(pid)], { stdio: 'ignore' })
  } catch {
    // Without taskset the processes share the cores; the ratios are noisier then.
  }
}

if (import.meta.main) await run()
