/**
 * Process groups: a program and everything that it has started (such as npx and its server) end together, and never
 * outlive this process.
 */
import type { ChildProcess } from 'node:child_process'
import { Watchdog } from './watchdog.ts'

const running = new Set<number>()
let watchdog: Watchdog | undefined

/**
 * Ensures that groups end even when this process is killed. Used only on users' machines, because a container ends all
 * of its processes together.
 */
export function watchGroups(): void {
  watchdog ??= new Watchdog()
}

process.on('exit', () => {
  for (const pid of running) signalGroup(pid, 'SIGKILL')
})

/** Reason that `groupEnded` returns when the program does not exist. */
export const commandNotFound = 'the command was not found'

/**
 * Extracts the exit code from a reason that `groupEnded` returned. Undefined if the program did not exit on its own.
 */
export function exitCodeIn(why: string): number | undefined {
  const code = /^exited with code (\d+)$/.exec(why)?.[1]
  return code === undefined ? undefined : Number(code)
}

/**
 * Manages a child that was spawned with `detached: true`. Resolves with the reason after the child has ended, and then
 * ends the rest of its group. Never rejects.
 */
export function groupEnded(child: ChildProcess): Promise<string> {
  const { pid } = child
  if (pid !== undefined) {
    running.add(pid)
    watchdog?.started(pid)
  }
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'ENOENT' ? commandNotFound : 'the command failed to start')
    })
    child.once('exit', (code, signal) => {
      signalGroup(pid, 'SIGKILL')
      if (pid !== undefined) {
        running.delete(pid)
        watchdog?.ended(pid)
      }
      resolve(signal ? `ended by ${signal}` : `exited with code ${code}`)
    })
  })
}

/** Signals a whole group. Ignores a group that no longer exists. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // ESRCH.
  }
}
