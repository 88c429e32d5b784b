/** The temporary folders of the sessions that `gatehouse up`, `run` and `dev` run on this machine. */
import { lstatSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface Session {
  readonly folder: string
  readonly startedAt: number
}

/** Name prefixes of session folders. */
export const sessionPrefixes = ['gatehouse-dev-', 'gatehouse-run-', 'gatehouse-up-'] as const

/** Returns this user's session folders, newest first. */
export function sessionFolders(names: readonly string[]): readonly Session[] {
  const own = process.getuid?.()
  return readdirSync(tmpdir())
    .filter((entry) => names.some((name) => entry.startsWith(name)))
    .map((entry) => join(tmpdir(), entry))
    .flatMap((folder) => {
      const stat = lstatSync(folder, { throwIfNoEntry: false })
      const isOurs = stat?.isDirectory() === true && (own === undefined || stat.uid === own)
      return stat && isOurs ? [{ folder, startedAt: stat.birthtimeMs }] : []
    })
    .toSorted((a, b) => b.startedAt - a.startedAt)
}

/** True if a process of this user has this id. */
export function isRunning(pid: unknown): boolean {
  if (typeof pid !== 'number') return false
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
