/**
 * Starts the built programs for measurements of CPU time per call. Each server runs on the first core and writes its
 * log to a file, because a pipe that the benchmark does not read in time would change the figures.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../helpers/gatehouse.ts'
import { pin } from '../common/cores.ts'

export interface MeasuredServer {
  readonly url: string
  /** User and system time of all threads, in microseconds. */
  cpuMicros(): number
  /** The child, for tests of its output. */
  readonly child: ChildProcess
  stop(): Promise<void>
}

const readyMs = 20_000
const running = new Set<MeasuredServer>()
export const folder = mkdtempSync(join(tmpdir(), 'gatehouse-cost-'))
/** The build under test. */
export const ownBuild = process.env['BENCH_DIST'] ?? join(import.meta.dirname, '../../../dist')
/** Another build to compare with: a `dist` folder. */
export const otherBuild = process.env['BENCH_OTHER_DIST']

let files = 0

/** Starts `gatehouse vmcp serve` in front of one backend. `more` replaces fields of the configuration. */
export async function startVmcp(
  build: string,
  backend: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<MeasuredServer> {
  const file = join(folder, `vmcp-${++files}.json`)
  writeFileSync(
    file,
    JSON.stringify({
      name: 'bench',
      groupRef: 'bench',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline', default: { type: 'unauthenticated' } },
      aggregation: {
        conflictResolution: 'prefix',
        conflictResolutionConfig: { prefixFormat: '{workload}_' },
      },
      backends: [{ name: 'b0', url: backend, transport: 'streamable-http' }],
      ...more,
    }),
  )
  return startProgram(build, ['vmcp', 'serve', '--config', file])
}

/** Starts `gatehouse proxy` in front of one target. */
export function startProxy(
  build: string,
  target: string,
  { flags = [], log = 'file' }: { readonly flags?: readonly string[]; readonly log?: LogTo } = {},
): Promise<MeasuredServer> {
  return startProgram(build, ['proxy', 'bench', '--target-uri', new URL(target).origin, ...flags], log)
}

/** A file, or a pipe that is never read. */
type LogTo = 'file' | 'unread'

async function startProgram(
  build: string,
  args: readonly string[],
  logTo: LogTo = 'file',
): Promise<MeasuredServer> {
  const port = await freePort()
  const log = openSync(join(folder, `log-${++files}`), 'w')
  const child = spawn(process.execPath, [join(build, 'gatehouse.js'), ...args, '--port', String(port)], {
    stdio: ['ignore', log, logTo === 'unread' ? 'pipe' : log],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  closeSync(log)
  if (child.pid !== undefined) pin(child.pid, '0')
  const server = register(child, port)
  await answers(server, args)
  return server
}

/** Waits until the server accepts connections. */
async function answers({ url, child }: MeasuredServer, args: readonly string[]): Promise<void> {
  const until = performance.now() + readyMs
  for (;;) {
    try {
      await fetch(new URL('/health', url))
      return
    } catch (error) {
      if (child.exitCode !== null || performance.now() > until)
        throw new Error(`${args.join(' ')} did not start`, { cause: error })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

function register(child: ChildProcess, port: number): MeasuredServer {
  const server: MeasuredServer = {
    url: `http://127.0.0.1:${port}/mcp`,
    child,
    cpuMicros: () => cpuMicros(child.pid ?? 0),
    async stop() {
      running.delete(server)
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      const hard = setTimeout(() => child.kill('SIGKILL'), 5_000)
      await ended
      clearTimeout(hard)
    },
  }
  running.add(server)
  return server
}

/** Stops everything that a part left running, and removes its files. */
export async function stopServers(): Promise<void> {
  await Promise.all([...running].map((server) => server.stop()))
}

export function removeFolder(): void {
  rmSync(folder, { recursive: true, force: true })
}

/** The scheduler counts nanoseconds, while /proc/PID/stat counts hundredths of a second. */
function cpuMicros(pid: number): number {
  let nanos = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      nanos += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    } catch {
      // The thread has ended.
    }
  }
  return nanos / 1_000
}

/** Starts the floor: a program that only forwards, with the same HTTP server and client as Gatehouse. */
export async function startFloor(target: string): Promise<MeasuredServer> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, '../peers/floor.ts'), JSON.stringify(target)],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, NODE_ENV: 'production' } },
  )
  if (child.pid !== undefined) pin(child.pid, '0')
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return register(child, (JSON.parse(line.toString()) as [number])[0])
}
