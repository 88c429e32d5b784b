/**
 * What a request costs on its way through the proxy, against direct access and against nginx, measured in one run.
 *
 * Each peer is a process of its own; the one under test is pinned to one core, load and target to another (when
 * taskset exists). CPU time comes from the peer's own accounting, so that the noise of the load generator drops out.
 * Read the ratios, not the digits. `node test/bench/proxy.ts`
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import autocannon from 'autocannon'

export interface BenchRow {
  readonly name: string
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** CPU of the peer under test; undefined for direct access. */
  readonly cpuMicrosPerRequest: number | undefined
  /** Requests per second against direct access of the same run. */
  readonly ratio: number
}

const seconds = Number(process.env['BENCH_SECONDS'] ?? 5)
const connections = 32
const call = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'x'.repeat(120) } },
})

interface Peer {
  readonly port: number
  readonly pid: number
  stop(): Promise<void>
}

/** Runs everything and prints the table. */
export async function run(): Promise<void> {
  console.log(format(await measureAll()))
}

/** The rows of the table; the first is direct access. */
export async function measureAll(): Promise<readonly BenchRow[]> {
  pin(process.pid, 1)
  const upstream = await startNode('upstream.ts', [], 1)
  const rows: BenchRow[] = []
  try {
    const direct = await measure('direct', upstream.port, undefined, undefined)
    rows.push(direct)
    const origin = `http://127.0.0.1:${upstream.port}`
    for (const level of ['warn', 'info']) {
      const proxy = await startNode('proxy.ts', [origin, level], 0)
      rows.push(
        await measure(
          level === 'info' ? 'gatehouse' : 'gatehouse, no request log',
          proxy.port,
          proxy.pid,
          direct,
        ),
      )
      await proxy.stop()
    }
    const nginx = await startNginx(upstream.port)
    if (nginx) {
      rows.push(await measure('nginx, one worker', nginx.port, nginx.pid, direct))
      await nginx.stop()
    }
  } finally {
    await upstream.stop()
  }
  return rows
}

async function measure(
  name: string,
  port: number,
  pid: number | undefined,
  direct: BenchRow | undefined,
): Promise<BenchRow> {
  const options = {
    url: `http://127.0.0.1:${port}/mcp`,
    connections,
    method: 'POST' as const,
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: call,
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

/** User and system time of a process so far; Linux counts in hundredths of a second. */
function cpuMicros(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

async function startNode(file: string, args: readonly string[], core: number): Promise<Peer> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'peers', file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (child.pid !== undefined) pin(child.pid, core)
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return peer(child, Number(line))
}

function peer(child: ChildProcess, port: number, pid = child.pid ?? 0): Peer {
  return {
    port,
    pid,
    async stop() {
      const gone = once(child, 'exit')
      child.kill()
      await gone
    },
  }
}

/** Undefined when nginx is not installed. */
async function startNginx(target: number): Promise<Peer | undefined> {
  const binary = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/sbin/nginx'].find((path) =>
    existsSync(path),
  )
  if (binary === undefined) return undefined
  const dir = mkdtempSync(join(tmpdir(), 'bench-nginx-'))
  const port = await freePort()
  writeFileSync(
    join(dir, 'nginx.conf'),
    `daemon off; master_process off; pid ${dir}/pid; error_log ${dir}/error;
     events { worker_connections 256; }
     http { access_log off; client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f;
       uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
       upstream t { server 127.0.0.1:${target}; keepalive 64; }
       server { listen 127.0.0.1:${port}; location / { proxy_pass http://t; proxy_http_version 1.1;
         proxy_set_header Connection ""; } } }`,
  )
  const child = spawn(binary, ['-p', dir, '-c', join(dir, 'nginx.conf')], { stdio: 'ignore' })
  if (child.pid !== undefined) pin(child.pid, 0)
  await reachable(port)
  const started = peer(child, port)
  return {
    ...started,
    async stop() {
      await started.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return address !== null && typeof address === 'object' ? address.port : 0
}

async function reachable(port: number): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    try {
      await fetch(`http://127.0.0.1:${port}/`)
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  throw new Error('nginx did not start')
}

function pin(pid: number, core: number): void {
  if (availableParallelism() < 2) return
  try {
    execFileSync('taskset', ['-apc', String(core), String(pid)], { stdio: 'ignore' })
  } catch {
    // Without taskset the processes share the cores; the ratios are noisier then.
  }
}

/** A table for people. */
export function format(rows: readonly BenchRow[]): string {
  const head = ['', 'req/s', 'ratio', 'p50 ms', 'p99 ms', 'CPU µs/req']
  const lines = rows.map((row) => [
    row.name,
    row.requestsPerSecond.toFixed(0),
    row.ratio.toFixed(2),
    String(row.p50Ms),
    String(row.p99Ms),
    row.cpuMicrosPerRequest?.toFixed(1) ?? '-',
  ])
  const widths = head.map((_, column) =>
    Math.max(...[head, ...lines].map((line) => line[column]?.length ?? 0)),
  )
  return [head, ...lines]
    .map((line) =>
      line
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
        .join('  '),
    )
    .join('\n')
}

if (import.meta.main) await run()
