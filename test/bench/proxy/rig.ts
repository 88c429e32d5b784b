/**
 * Processes for the benchmarks of the proxy: the built command as users run it, nginx, and a target.
 *
 * The measured program runs on one or two dedicated cores if the machine has enough; load and target use the rest.
 * CPU time and memory come from the processes' own accounting, including children, so that the load generator does not
 * count. The request log is written to /dev/null.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../../helpers/gatehouse.ts'
import { cores, pin } from '../common/cores.ts'
import type { ProbeAnswer } from '../soak/probe.ts'

export interface Peer {
  /** `http://127.0.0.1:port`. */
  readonly origin: string
  /** User and system time, including children, in microseconds. Linux counts in hundredths of a second. */
  cpuMicros(): number
  stop(): Promise<void>
}

export interface ProbedPeer extends Peer {
  /** Measures memory after full collections. */
  memory(): Promise<Memory>
}

export interface Memory {
  /** Resident bytes. Node rarely returns pages to the system. */
  readonly residentBytes: number
  /** Bytes in use: the heap and its external memory. */
  readonly liveBytes: number
}

const root = join(import.meta.dirname, '../../..')
const program = join(root, 'dist/gatehouse.js')
const START_MS = 20_000
const running = new Set<Peer>()

/** Core numbers for the measured program, and for everything else. On a small machine they are the same. */
function coresFor(underTest: number): { readonly tested: string; readonly other: string } {
  const tested = underTest === 1 ? '0' : `0-${Math.min(underTest, cores) - 1}`
  if (underTest >= cores) return { tested, other: `0-${cores - 1}` }
  return { tested, other: `${underTest}-${cores - 1}` }
}

/** Bundles the command again, so that the current source is measured. */
export function build(): void {
  execFileSync('make', ['-s', 'build'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** Moves this process, which generates the load, to other cores than the measured program. */
export function pinSelf(underTest: number): void {
  pin(process.pid, coresFor(underTest).other)
}

/** Stops everything that a part left running. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((peer) => peer.stop()))
}

/** The target. */
export function startTarget(underTest = 1): Promise<Peer> {
  return startNode([join(import.meta.dirname, '../peers/upstream.ts')], coresFor(underTest).other)
}

/** Starts `gatehouse proxy` in front of the target, with additional flags. */
export function startProxy(target: Peer, underTest: number, flags: readonly string[] = []): Promise<Peer> {
  const workers = underTest === 1 ? [] : ['--workers', String(underTest)]
  const args = ['proxy', '--target-uri', target.origin, ...workers, ...flags, 'bench']
  return startNode([program, ...args], coresFor(underTest).tested)
}

/** Like `startProxy`, with a probe inside for memory figures. */
export async function startProbedProxy(target: Peer): Promise<ProbedPeer> {
  const probe = join(import.meta.dirname, '../soak/probe.ts')
  const args = ['--expose-gc', '--import', probe, program, 'proxy', '--target-uri', target.origin, 'bench']
  const { peer, child } = await start(args, coresFor(1).tested, { probed: true })
  return { ...peer, memory: () => settledMemory(child) }
}

async function startNode(args: readonly string[], pinTo: string): Promise<Peer> {
  return (await start(args, pinTo, { probed: false })).peer
}

async function start(
  args: readonly string[],
  pinTo: string,
  { probed }: { readonly probed: boolean },
): Promise<{ readonly peer: Peer; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore', ...(probed ? (['ipc'] as const) : [])],
  })
  if (child.pid !== undefined) pin(child.pid, pinTo)
  if (!child.stdout) throw new Error('a peer has no output')
  const lines = createInterface({ input: child.stdout })
  const gone = once(child, 'exit').then(([code]) => {
    throw new Error(
      `a peer ended with code ${String(code)} before it was ready: ${args.slice(0, 2).join(' ')}`,
    )
  })
  const ready = once(lines, 'line', { signal: AbortSignal.timeout(START_MS) })
  const [line] = (await Promise.race([ready, gone])) as [string]
  gone.catch(() => {})
  // Reads the later output, so that the pipe does not fill up.
  lines.on('line', () => {})
  const port = /on port (\d+)|^(\d+)$/.exec(line)
  return { peer: register(child, Number(port?.[1] ?? port?.[2])), child }
}

/** Undefined when nginx is not installed. */
export async function startNginx(target: Peer, underTest: number): Promise<Peer | undefined> {
  const binary = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/sbin/nginx'].find((path) =>
    existsSync(path),
  )
  if (binary === undefined) return undefined
  const dir = mkdtempSync(join(tmpdir(), 'bench-nginx-'))
  const port = await freePort()
  writeFileSync(
    join(dir, 'nginx.conf'),
    `daemon off; ${underTest === 1 ? 'master_process off;' : ''} worker_processes ${underTest};
     pid ${dir}/pid; error_log ${dir}/error; events { worker_connections 4096; }
     http { access_log off; client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f;
       uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
       upstream t { server ${new URL(target.origin).host}; keepalive 64; }
       server { listen 127.0.0.1:${port}${underTest === 1 ? '' : ' reuseport'}; keepalive_requests 10000000;
         location / { proxy_pass http://t; proxy_http_version 1.1; proxy_buffering off;
         proxy_set_header Connection ""; } } }`,
  )
  const child = spawn(binary, ['-p', dir, '-c', join(dir, 'nginx.conf')], { stdio: 'ignore' })
  if (child.pid !== undefined) pin(child.pid, coresFor(underTest).tested)
  await reachable(port)
  for (const pid of family(child.pid ?? 0)) pin(pid, coresFor(underTest).tested)
  child.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  return register(child, port)
}

function register(child: ChildProcess, port: number): Peer {
  const pid = child.pid ?? 0
  const peer: Peer = {
    origin: `http://127.0.0.1:${port}`,
    cpuMicros: () => family(pid).reduce((sum, each) => sum + cpuMicros(each), 0),
    async stop() {
      running.delete(peer)
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      const hard = setTimeout(() => child.kill('SIGKILL'), 8_000)
      child.kill('SIGTERM')
      await gone
      clearTimeout(hard)
    },
  }
  running.add(peer)
  return peer
}

async function settledMemory(child: ChildProcess): Promise<Memory> {
  async function ask(): Promise<ProbeAnswer> {
    child.send({ collect: true })
    const [response] = (await once(child, 'message')) as [ProbeAnswer]
    return response
  }
  // The first collection can make more objects unreachable, for example through finalizers. The second and third free
  // them.
  for (let n = 0; n < 3; n++) {
    await ask()
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  const { rss, heapUsed, external } = await ask()
  return { residentBytes: rss, liveBytes: heapUsed + external }
}

/** The process and its children. */
function family(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((each) => Number(statOf(each)[1]) === pid)
  return [pid, ...children]
}

/** Returns the fields after the name in /proc/<pid>/stat, or an empty list when the process has ended. */
function statOf(pid: number): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

function cpuMicros(pid: number): number {
  const fields = statOf(pid)
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10_000
}

async function reachable(port: number): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    try {
      const socket = connect(port, '127.0.0.1')
      await once(socket, 'connect')
      socket.destroy()
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  throw new Error('nginx did not start')
}
