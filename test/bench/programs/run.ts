/** Runs the built programs and reads their costs from the system's accounting. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { pin } from '../common/cores.ts'

/** CPU time is user and system time. Linux counts it in hundredths of a second. */
export interface Cost {
  readonly wallMs: number
  readonly cpuMs: number
}

export interface Program {
  readonly pid: number
  cpuMs(): number
  /** Resident memory in MB: current and maximum. */
  memory(): { readonly now: number; readonly peak: number }
  stop(): Promise<void>
}

/** Longer than any start takes. */
const startMs = 30_000
const pollMs = 5
const running = new Set<ChildProcess>()

/** Runs Node with these arguments to the end, `rounds` times. Resolves with medians; throws when a run fails. */
export function runToEnd(args: readonly string[], rounds = 7): Cost {
  const costs = Array.from({ length: rounds }, (): Cost => {
    const before = childrenCpuMs()
    const began = performance.now()
    const { status, stderr } = spawnSync(process.execPath, args, { env: environment(), encoding: 'utf8' })
    const wallMs = performance.now() - began
    if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr.slice(-300)}`)
    return { wallMs, cpuMs: childrenCpuMs() - before }
  })
  return medians(costs)
}

export interface StartOptions {
  /** A program other than Node. */
  readonly command?: string | undefined
  /** Environment variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** Allowed cores, in the syntax of taskset. */
  readonly onCores?: string
}

/**
 * Starts Node, or another command, with these arguments and calls `ready` until it resolves with true. Resolves with
 * the program and its costs until then. Rejects when it exits first, or takes more than half a minute.
 */
export async function startProgram(
  args: readonly string[],
  ready: () => Promise<boolean>,
  { command = process.execPath, env = {}, onCores }: StartOptions = {},
): Promise<{ readonly program: Program; readonly cost: Cost }> {
  const began = performance.now()
  const child = spawn(command, args, {
    env: { ...environment(), ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  if (child.pid !== undefined && onCores !== undefined) pin(child.pid, onCores)
  running.add(child)
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-500)
  })
  const pid = child.pid ?? 0
  while (!(await ready().catch(() => false))) {
    if (child.exitCode !== null) throw new Error(`${args.join(' ')} ended: ${errors}`)
    if (performance.now() - began > startMs) throw new Error(`${args.join(' ')} is not ready: ${errors}`)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
  const cost = { wallMs: performance.now() - began, cpuMs: cpuMs(pid) }
  return { cost, program: programOf(child, pid) }
}

/** Stops everything that a failed measurement left running. */
export function stopPrograms(): void {
  for (const child of running) child.kill('SIGKILL')
}

export function medians(costs: readonly Cost[]): Cost {
  return { wallMs: median(costs.map(({ wallMs }) => wallMs)), cpuMs: median(costs.map((one) => one.cpuMs)) }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

function programOf(child: ChildProcess, pid: number): Program {
  return {
    pid,
    cpuMs: () => cpuMs(pid),
    memory: () => memoryOf(pid),
    async stop() {
      running.delete(child)
      if (child.exitCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Resident memory in MB. */
export function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  const megabytes = (name: string) =>
    Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? Number.NaN) / 1_024
  return { now: megabytes('VmRSS'), peak: megabytes('VmHWM') }
}

function environment(): NodeJS.ProcessEnv {
  return { ...process.env, NODE_ENV: 'production' }
}

/** User and system time so far, in milliseconds. */
export function cpuMs(pid: number): number {
  return ticks(pid, 11)
}

/** Times of all children that have ended. */
function childrenCpuMs(): number {
  return ticks('self', 13)
}

/** Two neighbouring fields of /proc/PID/stat, user and system time, in milliseconds. */
function ticks(pid: number | 'self', first: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[first]) + Number(fields[first + 1])) * 10
}
