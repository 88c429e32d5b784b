/** Finds the cores of the machine and assigns processes to them. */
import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

/** Read once, before this process gives up cores: later, Node counts only the remaining ones. */
export const cores = availableParallelism()
export const allCores = `0-${cores - 1}`

/** Pins a process with all its threads to some cores. Processes that it starts later inherit them. */
export function pin(pid: number, to: string): void {
  if (cores < 2) return
  try {
    execFileSync('taskset', ['-apc', to, String(pid)], { stdio: 'ignore' })
  } catch {
    // Without taskset, the processes share the cores and the ratios are less exact.
  }
}
