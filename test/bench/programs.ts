/**
 * Measures the built programs: start time, size, and memory, idle and under load.
 *
 * Run `make build` first. Programs have one core; load and backends have the others. Bare Node in the same run is the
 * reference. Servers of the runtime start with the command of its image. Values are medians; idle is ten seconds after
 * the last request. Takes about fifty seconds.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AimName, reached } from './aims.ts'
import { warmUp } from './common/turns.ts'
import { freePort } from '../helpers/gatehouse.ts'
import { vmcpConfig } from '../helpers/vmcp/vmcp.ts'
import { type Cost, medians, type Program, runToEnd, startProgram, stopPrograms } from './programs/run.ts'
import { BenchClient, callOf, requestOf } from './vmcp/client.ts'
import { closedLoop } from './vmcp/load.ts'
import { named, type Peer, pinSelf, startBackends, stopAll } from './vmcp/rig.ts'
import { type Cell, table } from './vmcp/table.ts'

const root = join(import.meta.dirname, '../..')
const gatehouse = join(root, 'dist/gatehouse.js')
const hooks = join(root, 'dist/gatehouse-hooks.js')
/** Flags of Node in the entrypoint of the runtime image. */
const imageFlags =
  readFileSync(join(root, 'runtime/Dockerfile'), 'utf8').match(/(?<=^ENTRYPOINT .*")--[^"]+/gm) ?? []
const idleMs = 10_000
/** CPU time of a load of fifteen seconds on an otherwise idle machine. */
const loadCpuSeconds = 12
const starts = 5

/** Prints three tables. */
export async function run(): Promise<void> {
  pinSelf()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  try {
    console.log(`\n${commands()}\n\n${sizes()}`)
    console.log(`\n${await servers(folder)}`)
  } finally {
    stopPrograms()
    await stopAll()
    rmSync(folder, { recursive: true, force: true })
  }
}

function commands(): string {
  const quickstart = join(root, 'manifests/examples/quickstart')
  const rows: [string, Cost][] = [
    ['bare Node, `node -e 0`', runToEnd(['-e', '0'])],
    ['`gatehouse --version`', runToEnd([gatehouse, '--version'])],
    ['`gatehouse --help`', runToEnd([gatehouse, '--help'])],
    ['`gatehouse validate` of the quickstart', runToEnd([gatehouse, 'validate', '-f', quickstart])],
  ]
  reached('version', rows[1]?.[1].wallMs)
  return table(
    ['command', 'time ms', 'CPU ms'],
    rows.map(([name, { wallMs, cpuMs }]) => [name, wallMs, cpuMs]),
  )
}

function sizes(): string {
  const rows = ['runtime', 'hooks', 'schemas', 'cedar'].map((name): Cell[] => {
    const files = readdirSync(join(root, 'dist', name), { recursive: true, encoding: 'utf8' })
      .map((file) => ({ file, stat: statSync(join(root, 'dist', name, file)) }))
      .filter(({ stat }) => stat.isFile())
    const largest = files.reduce((a, b) => (a.stat.size > b.stat.size ? a : b))
    const all = files.reduce((sum, { stat }) => sum + stat.size, 0)
    if (name === 'runtime' || name === 'hooks') reached(`${name}Size`, all / 1e6)
    return [
      `dist/${name}`,
      files.length,
      all / 1e6,
      `${largest.file}, ${(largest.stat.size / 1e6).toFixed(2)}`,
    ]
  })
  return table(['folder', 'files', 'MB', 'largest file, MB'], rows)
}

async function servers(folder: string): Promise<string> {
  const backends = await startBackends({ servers: 3 })
  const started: Started[] = []
  for (const start of [bareNode, proxy, virtualServer, hooksServer])
    started.push(await start(folder, backends))
  await new Promise((resolve) => setTimeout(resolve, idleMs))
  const idle = started.map(({ program }) => program.memory().now)
  const rows: Cell[][] = []
  for (const [at, one] of started.entries()) rows.push(await row(one, idle[at] ?? Number.NaN))
  const head = ['program', 'ready ms', 'CPU ms', 'RSS idle MB', 'calls/s', 'RSS under load MB', 'RSS peak MB']
  return table(head, rows)
}

/** A program that is still running. */
interface Started {
  readonly name: string
  readonly program: Program
  readonly cost: Cost
  readonly idle?: AimName
  /** Load on the program. */
  readonly load?: { readonly aim: AimName; readonly url: string; readonly tool: string }
}

async function bareNode(): Promise<Started> {
  const port = await freePort()
  const text = `require('node:http').createServer((q, s) => s.end('{}')).listen(${port}, '127.0.0.1')`
  return {
    name: 'bare Node, `http.createServer`',
    ...(await startOften(['-e', text], () => responds(port, '/'))),
  }
}

async function proxy(_folder: string, backends: Peer): Promise<Started> {
  const port = await freePort()
  const args = ['proxy', '--target-uri', new URL(backends.url).origin, '--port', String(port), 'bench']
  return {
    name: '`gatehouse proxy`, to the first tools/list',
    ...(await startOften([...imageFlags, gatehouse, ...args], () => listsTools(port))),
    idle: 'proxyIdle',
    load: { aim: 'proxyLoaded', url: `http://127.0.0.1:${port}/mcp`, tool: 'echo' },
  }
}

async function virtualServer(folder: string, backends: Peer): Promise<Started> {
  const port = await freePort()
  const file = join(folder, 'vmcp.json')
  writeFileSync(file, JSON.stringify(vmcpConfig(named(backends.urls))))
  const args = ['vmcp', 'serve', '--config', file, '--port', String(port)]
  const started = await startOften([...imageFlags, gatehouse, ...args], () => listsTools(port, 'b2_'))
  reached('startCpu', started.cost.cpuMs)
  return {
    name: '`gatehouse vmcp serve`, 3 backends, to the first complete tools/list',
    ...started,
    idle: 'vmcpIdle',
    load: { aim: 'vmcpLoaded', url: `http://127.0.0.1:${port}/mcp`, tool: 'b0_echo' },
  }
}

async function hooksServer(): Promise<Started> {
  const port = await freePort()
  return {
    name: '`gatehouse-hooks`, to `/readyz`',
    ...(await startOften([hooks, '--port', String(port)], () => responds(port, '/readyz'))),
    idle: 'hooksIdle',
  }
}

/** Starts a program several times. The last one keeps running. */
async function startOften(args: readonly string[], ready: () => Promise<boolean>) {
  const costs: Cost[] = []
  for (;;) {
    const { program, cost } = await startProgram(args, ready, { onCores: '0' })
    costs.push(cost)
    if (costs.length === starts) return { program, cost: medians(costs) }
    await program.stop()
  }
}

/** Measures and ends the program. With a load, it measures memory while thirty-two connections call a tool. */
async function row({ name, program, cost, idle, load }: Started, idleMb: number): Promise<Cell[]> {
  if (idle) reached(idle, idleMb)
  const cells: Cell[] = [name, cost.wallMs, cost.cpuMs, idleMb]
  if (load) {
    const client = new BenchClient(load.url, 32)
    const session = await client.openSession()
    await client.close()
    let perSecond = 0
    await warmUp(
      [program],
      loadCpuSeconds,
      ({ cpuMs }) => cpuMs() * 1_000,
      async () => {
        const calls = [callOf('session', load.tool, session)]
        perSecond = (await closedLoop(load.url, calls, 5, 32)).perSecond
      },
    )
    const { now, peak } = program.memory()
    reached(load.aim, now)
    cells.push(perSecond, now, peak)
  }
  await program.stop()
  return cells
}

async function responds(port: number, path: string): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  await response.arrayBuffer()
  return response.ok
}

/** Returns true when a new session lists tools, including one whose name begins with `prefix`. */
async function listsTools(port: number, prefix = ''): Promise<boolean> {
  const client = new BenchClient(`http://127.0.0.1:${port}/mcp`, 1)
  try {
    const session = await client.openSession()
    const { body } = await client.result(requestOf('session', 'tools/list', {}, session))
    return body.includes(`"name":"${prefix}`)
  } finally {
    await client.close()
  }
}
