/** Which cores there are, and who may use them. */
import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

/** Counted once, before this process gives up any: later Node counts only those that it has kept. */
export const cores = availableParallelism()
export const allCores = `0-${cores - 1}`

/** Holds a process with all its threads to some cores; those that it starts later inherit them. */
export function pin(pid: number, to: string): void {
  if (cores < 2) return
  try {
    execFileSync('taskset', ['-apc', to, String(pid)], { stdio: 'ignore' })
  } catch {
    // Without taskset the processes share the cores; the ratios are noisier then.
  }
}
