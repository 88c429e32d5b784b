/**
 * The running `gatehouse up` of this user: a lock file with the process and the address of its control listener. At
 * most one instance runs. A new instance replaces the lock of a killed process.
 */
import { execFileSync } from 'node:child_process'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { invalidConfig, isFields } from '../../../../schemas/index.ts'
import { environment } from '../../../config/index.ts'
import { writePrivate } from '../state.ts'

export interface Instance {
  readonly pid: number
  /**
   * Distinguishes the process from a later process with the same id. Null when the system does not report the start
   * time.
   */
  readonly startedAt: string | null
  /** Undefined while the instance starts. */
  readonly control?: { readonly url: string; readonly token: string }
  /** Names of the servers that have not responded yet, while the instance starts. */
  readonly starting?: readonly string[]
}

export function instanceFile(folder: string): string {
  return join(folder, 'instance.json')
}

/** Returns the running instance, or undefined. */
export function runningInstance(folder: string): Instance | undefined {
  const found = read(instanceFile(folder))
  return found && isRunning(found) ? found : undefined
}

/** Registers this process as the running instance. Throws INVALID_CONFIG when another instance is running. */
export function becomeInstance(folder: string): void {
  const path = instanceFile(folder)
  const draft = `${path}.${process.pid}.tmp`
  rmSync(draft, { force: true })
  const own: Instance = { pid: process.pid, startedAt: startOf(process.pid) }
  writeFileSync(draft, JSON.stringify(own), { mode: 0o600, flag: 'wx' })
  try {
    while (!tryLink(draft, path)) {
      const other = read(path)
      if (other && isRunning(other)) throw alreadyRunning(other)
      removeStale(path)
    }
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Publishes the address of this instance's control listener, or the servers that it waits for. */
export function publishProgress(folder: string, progress: Pick<Instance, 'control' | 'starting'>): void {
  const own: Instance = { pid: process.pid, startedAt: startOf(process.pid), ...progress }
  writePrivate(instanceFile(folder), JSON.stringify(own))
}

/** Removes the lock if it belongs to this process. */
export function endInstance(folder: string): void {
  const path = instanceFile(folder)
  if (read(path)?.pid === process.pid) rmSync(path, { force: true })
}

export function alreadyRunning({ pid }: Instance) {
  return invalidConfig(
    `gatehouse up is already running (process ${pid}); see gatehouse status, or stop it with gatehouse down`,
  )
}

function tryLink(draft: string, path: string): boolean {
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Renames the file before removing it, so that a lock that another process has just created can be restored. */
function removeStale(path: string): void {
  const aside = `${path}.${process.pid}.stale`
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  const moved = read(aside)
  if (moved && isRunning(moved)) tryLink(aside, path)
  rmSync(aside, { force: true })
}

function read(path: string): Instance | undefined {
  try {
    const parsed: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isFields(parsed) && typeof parsed['pid'] === 'number' ? (parsed as unknown as Instance) : undefined
  } catch {
    return undefined
  }
}

/** Returns false for a process that has ended, even if its parent process has not reaped it yet. */
export function isRunning({ pid, startedAt }: Instance): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    // The process ended, or its id now belongs to another user's process.
    return false
  }
  return startedAt === null || startedAt === startOf(pid)
}

/** Returns the start time of a process in clock ticks since boot, on Linux. Source: proc_pid_stat(5), field 22. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? null : (fields[19] ?? null)
  } catch {
    return startByPs(pid)
  }
}

/** Returns the start time of a process on systems without `/proc`, or null. Source: ps(1). */
export function startByPs(pid: number): string | null {
  if (process.platform === 'win32') return null
  try {
    const env = { ...environment(), LC_ALL: 'C', TZ: 'UTC' }
    const args = ['-p', String(pid), '-o', 'lstart=']
    const text = execFileSync('ps', args, { encoding: 'utf8', timeout: 5000, env, stdio: 'pipe' })
    return text.trim() || null
  } catch {
    return null
  }
}
