/**
 * Process groups: a program and everything it started (npx and the server behind it) end together, and none outlives
 * this process, however it ends.
 */
import type { ChildProcess } from 'node:child_process'
import { Watchdog } from './watchdog.ts'

const running = new Set<number>()
let watchdog: Watchdog | undefined

/** From now on, groups end when this process is killed, too. For programs on people's machines; a container ends as a whole. */
export function watchGroups(): void {
  watchdog ??= new Watchdog()
}

process.on('exit', () => {
  for (const pid of running) signalGroup(pid, 'SIGKILL')
})

/**
 * Takes charge of a child that was spawned with `detached: true`. Resolves with why it ended, when it is gone; what it
 * left behind in its group is ended then. Never rejects.
 */
export function groupEnded(child: ChildProcess): Promise<string> {
  const { pid } = child
  if (pid !== undefined) {
    running.add(pid)
    watchdog?.started(pid)
  }
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'ENOENT' ? 'the command was not found' : 'the command could not be started')
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

/** Signals a whole group; a group that is gone already is what was wanted. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // ESRCH.
  }
}
