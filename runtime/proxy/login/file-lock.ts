/**
 * A lock between processes of one user: a file that exists while its holder works.
 *
 * A holder that is gone is recognised by its process id on the same machine, else by the age of the file. Where no file
 * can be created (a read-only directory), work goes on without a lock: nothing is shared there either.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** Longer than any request to a token endpoint takes. */
const abandonedMs = 60_000
const pauseMs = 50

/** Runs when no other process holds the lock. Rejects with the signal's reason while it waits. */
export async function withFileLock<T>(path: string, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  } catch {
    return run()
  }
  const mark = `${process.pid} ${hostname()} ${randomUUID()}`
  while (!acquire(path, mark)) {
    // Apart from others who wait, so that they do not all look at the same time.
    await delay(pauseMs * (0.5 + Math.random()), undefined, { signal }).catch(() => signal.throwIfAborted())
  }
  try {
    return await run()
  } finally {
    release(path, mark)
  }
}

/** Another process may have taken the file for abandoned. */
function release(path: string, mark: string): void {
  try {
    if (readFileSync(path, 'utf8') === mark) rmSync(path, { force: true })
  } catch {
    // It is gone already.
  }
}

/** True when the lock is held now, or when there cannot be one. */
function acquire(path: string, mark: string): boolean {
  try {
    writeFileSync(path, mark, { mode: 0o600, flag: 'wx' })
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
    // It has just been released.
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
