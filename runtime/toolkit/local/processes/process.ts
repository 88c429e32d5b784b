/** A local process in its own process group, so that `stop` also stops all of its descendants. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
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

/** Maximum time after an exit to wait for the last lines of output. */
const lastLinesMs = 500

/** Starts a process. `onLine` receives the process's output, which can contain secrets and must only be displayed. */
export function startProcess(spec: ProcessSpec, onLine: (line: string) => void): LocalProcess {
  const [file = '', ...args] = spec.argv
  const child = spawn(file, args, {
    cwd: spec.cwd,
    env: spec.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const outputs = [child.stdout, child.stderr].map((input) => createInterface({ input }).on('line', onLine))
  const read = Promise.all(outputs.map((lines) => once(lines, 'close')))
  // Waits for the last lines, which explain the exit, but only briefly, because a descendant in another group can keep
  // the output open.
  const exited = groupEnded(child).then(async (why) => {
    await Promise.race([read, sleep(lastLinesMs)])
    return why
  })
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
