/**
 * One local process in its own process group, so that it and everything it started can be ended.
 *
 * Standard output and error go line by line to the sink; a process that ends by itself is reported once.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { groupEnded, signalGroup } from '../../../proxy/index.ts'

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

/** Starts a process. `onLine` gets its output; it may hold secrets of that program, so it is for the screen only. */
export function startProcess(spec: ProcessSpec, onLine: (line: string) => void): LocalProcess {
  const [file = '', ...args] = spec.argv
  const child = spawn(file, args, {
    cwd: spec.cwd,
    env: spec.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', onLine)
  const exited = groupEnded(child)
  return {
    pid: child.pid,
    exited,
    async stop(graceMs) {
      if (child.pid === undefined) return
      signalGroup(child.pid, 'SIGTERM')
      const timer = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), graceMs)
      await exited
      clearTimeout(timer)
    },
  }
}
