/**
 * Processes for the benchmarks of the virtual server: the server under test on one core, everything else on the others.
 *
 * CPU time comes from the process's own accounting and memory from its probe, so that the load generator does not
 * count.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { cores, pin } from '../common/cores.ts'
import type { BackendPeerOptions } from '../peers/mcp-backend.ts'
import type { VmcpPeerOptions } from '../peers/vmcp.ts'
import type { ProbeAnswer } from '../soak/probe.ts'

export interface Peer {
  readonly urls: readonly string[]
  readonly url: string
  readonly pid: number
  /** User and system time in microseconds. Linux counts in hundredths of a second. */
  cpuMicros(): number
  /** Measures memory, after full collections when `settle` is set. */
  memory(options: { readonly settle: boolean }): Promise<ProbeAnswer>
  signal(signal: NodeJS.Signals): void
  /** Resolves once the process has ended. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

const running = new Set<Peer>()
const SERVER_CORE = '0'
/** Flags that manifests/bundle/launcher.js sets on a machine with so few cores. */
const launcherFlags = ['--no-parallel-scavenge']
const OTHER_CORES = cores > 2 ? `1-${cores - 1}` : '1'

/** Starts backends that respond at once. */
export function startBackends(options: Partial<BackendPeerOptions> = {}): Promise<Peer> {
  return start('mcp-backend.ts', { era: 'session', tools: 100, servers: 1, ...options }, OTHER_CORES)
}

/** Starts a virtual server in front of backends. Backends without a name are called b0, b1 and so on. */
export function startServer(
  backends: readonly string[] | Readonly<Record<string, string>>,
  more: VmcpPeerOptions['more'] = {},
  options: Pick<VmcpPeerOptions, 'sessionTtlMs' | 'maxSessions'> = {},
): Promise<Peer> {
  const known = Array.isArray(backends)
    ? named(backends as readonly string[])
    : (backends as Readonly<Record<string, string>>)
  return start('vmcp.ts', { backends: known, more, ...options }, SERVER_CORE, launcherFlags)
}

/** Starts our own proxy in front of a backend without a request log, like the virtual server of `startServer`. */
export function startProxy({ url }: Peer): Promise<Peer> {
  return start('proxy.ts', new URL(url).origin, SERVER_CORE, launcherFlags)
}

/** Returns backends with the names b0, b1 and so on. */
export function named(urls: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(urls.map((url, i) => [`b${i}`, url]))
}

/** Moves this process, which generates the load, to other cores than the server. */
export function pinSelf(): void {
  pin(process.pid, OTHER_CORES)
}

/** Stops everything that a part left running. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((peer) => peer.stop('SIGKILL')))
}

async function start(
  file: string,
  options: unknown,
  onCores: string,
  flags: readonly string[] = [],
): Promise<Peer> {
  const args = [
    ...flags,
    '--expose-gc',
    '--import',
    join(import.meta.dirname, '../soak/probe.ts'),
    join(import.meta.dirname, '../peers', file),
    JSON.stringify(options),
  ]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  if (child.pid !== undefined) pin(child.pid, onCores)
  if (!child.stdout) throw new Error(`${file} has no output`)
  const gone = once(child, 'exit').then(() => {
    throw new Error(`${file} ended before it was ready`)
  })
  const [line] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), gone])) as [
    string,
  ]
  gone.catch(() => {})
  const urls = (JSON.parse(line) as number[]).map((port) => `http://127.0.0.1:${port}/mcp`)
  const peer: Peer = {
    urls,
    url: urls[0] ?? '',
    pid: child.pid ?? 0,
    cpuMicros: () => cpuMicros(child.pid ?? 0),
    memory: (options) => memory(child, options),
    signal: (signal) => void child.kill(signal),
    async stop(signal = 'SIGTERM') {
      running.delete(peer)
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGCONT')
      child.kill(signal)
      await ended
    },
  }
  running.add(peer)
  return peer
}

async function memory(child: ChildProcess, { settle }: { readonly settle: boolean }): Promise<ProbeAnswer> {
  const ask = async ({ collect }: { readonly collect: boolean }): Promise<ProbeAnswer> => {
    child.send({ collect })
    const [response] = (await once(child, 'message')) as [ProbeAnswer]
    return response
  }
  if (!settle) return ask({ collect: false })
  // The first collection can make more objects unreachable, for example through finalizers. The second and third free
  // them.
  for (let n = 0; n < 3; n++) {
    await ask({ collect: true })
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  return ask({ collect: true })
}

function cpuMicros(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}
