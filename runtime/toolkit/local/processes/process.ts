/** A local process in its own process group, so that `stop` also stops all of its descendants. */
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
  /** Resolves with the reason when the process has exited. Never rejects. */
  readonly exited: Promise<string>
  /** Sends SIGTERM to the group, and SIGKILL after `graceMs`. Resolves when the process has exited. */
  stop(graceMs: number): Promise<void>
}

/** Starts a process. `onLine` receives the process's output, which can contain secrets and must only be displayed. */
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
