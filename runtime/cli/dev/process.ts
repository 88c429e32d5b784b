/**
 * One local process in its own process group, so that it and everything it started can be ended.
 *
 * Standard output and error go line by line to the sink; a process that ends by itself is reported once.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface ProcessSpec {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

export interface LocalProcess {
  readonly pid: number | undefined
  /** Resolves when the process is gone. Never rejects. */
  readonly exited: Promise<string>
  /** SIGTERM to the group, SIGKILL after `graceMs`. Resolves when gone. */
  stop(graceMs: number): Promise<void>
}

/** Group leaders that still run; ended at once if this process exits in any way. */
const running = new Set<number>()

process.on('exit', () => {
  for (const pid of running) signalGroup(pid, 'SIGKILL')
})

/** Starts a process. `onLine` gets its output; it may hold secrets of that program, so it is for the screen only. */
export function startProcess(spec: ProcessSpec, onLine: (line: string) => void): LocalProcess {
  const [file = '', ...args] = spec.argv
  const child = spawn(file, args, {
    cwd: spec.cwd,
    env: spec.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (child.pid !== undefined) running.add(child.pid)
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', onLine)
  const exited = whenGone(child)
  return {
    pid: child.pid,
    exited,
    async stop(graceMs) {
      if (child.pid === undefined) return
      signalGroup(child.pid, 'SIGTERM')
      const timer = setTimeout(() => signalGroup(child.pid ?? 0, 'SIGKILL'), graceMs)
      await exited
      clearTimeout(timer)
      signalGroup(child.pid, 'SIGKILL')
      running.delete(child.pid)
    },
  }
}

function whenGone(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`))
    child.once('exit', (code, signal) => {
      if (child.pid !== undefined) {
        signalGroup(child.pid, 'SIGKILL')
        running.delete(child.pid)
      }
      resolve(signal ? `ended by ${signal}` : `exited with code ${code}`)
    })
  })
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  if (pid <= 0) return
  try {
    process.kill(-pid, signal)
  } catch {
    // ESRCH: the group is gone already, which is what was wanted.
  }
}
