/**
 * A lock between processes of one user: a file that exists while its holder works.
 *
 * The file is considered abandoned when its process no longer runs on this machine, or when it is too old. When the
 * file cannot be created (a read-only directory), the work runs without a lock: nothing is shared in that case.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** Longer than any token request takes. */
const abandonedMs = 60_000
const pauseMs = 50

/** Calls `run` when no other process holds the lock. Rejects with the signal's reason if it aborts while waiting. */
export async function withFileLock<T>(path: string, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  } catch {
    return run()
  }
  const owner = `${process.pid} ${hostname()} ${randomUUID()}`
  while (!acquire(path, owner)) {
    // Random pauses keep waiting processes from checking at the same time.
    await delay(pauseMs * (0.5 + Math.random()), undefined, { signal }).catch(() => signal.throwIfAborted())
  }
  try {
    return await run()
  } finally {
    release(path, owner)
  }
}

/** Removes the file unless another process has treated it as abandoned and replaced it. */
function release(path: string, owner: string): void {
  try {
    if (readFileSync(path, 'utf8') === owner) rmSync(path, { force: true })
  } catch {
    // The file no longer exists.
  }
}

/** True when the lock was acquired, or when no lock is possible. */
function acquire(path: string, owner: string): boolean {
  try {
    writeFileSync(path, owner, { mode: 0o600, flag: 'wx' })
    return true
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) return true
    if (isAbandoned(path)) rmSync(path, { force: true })
    return false
  }
}

function isAbandoned(path: string): boolean {
  try {
    if (Date.now() - statSync(path).mtimeMs > abandonedMs) return true
    const [pid = '', host] = readFileSync(path, 'utf8').split(' ')
    return host === hostname() && !isRunning(Number(pid))
  } catch {
    // Another process has just released the lock.
    return false
  }
}

function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code !== 'ESRCH'
  }
}
