/**
 * Prevents work from running twice at the same time, in this process or in the same user's other processes.
 *
 * The lock between processes is a file that exists while the holder of the lock works.
 *
 * The file is considered abandoned when its process is no longer running on this machine, or when a waiting process has
 * seen the same holder for too long. Times are measured by the waiting process alone, because the clock may be changed
 * and a network file system has its own clock. When the file cannot be created (a read-only directory), the work runs
 * without a lock, because nothing is shared in that case. Anything but a readable file at the lock's path is an error,
 * because no holder of the lock would ever remove it. File system errors that may be temporary are retried.
 */
import { randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { GatehouseError } from '../../../schemas/index.ts'

/** Time after which a lock is abandoned. No token request takes longer. */
const abandonedMs = 60_000
const pauseMs = 50
/** Errors that may be temporary: too many open files, or an interruption of a network file system. */
const passingErrors: ReadonlySet<unknown> = new Set([
  'EAGAIN',
  'EBUSY',
  'EINTR',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ESTALE',
])

export interface LockWaiting {
  /**
   * A holder that keeps the lock for longer than this, as seen by the waiting process, is considered dead even if its
   * process is running. By default, this time is longer than the duration of any token request.
   */
  readonly longestMs?: number | undefined
  /** Called at most once, when another running process has the lock. */
  readonly onWait?: (() => void) | undefined
}

/**
 * Calls `run` when no other process has the lock. Rejects with the signal's reason if it aborts while waiting. Rejects
 * with BACKEND_AUTH_FAILED if the path is not a readable file or a file system error persists.
 */
export async function withFileLock<T>(
  path: string,
  signal: AbortSignal,
  run: () => Promise<T>,
  { longestMs = abandonedMs, onWait }: LockWaiting = {},
): Promise<T> {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  } catch {
    return run()
  }
  const owner = `${process.pid} ${hostname()} ${randomUUID()}`
  let holder: { readonly name: string | undefined; readonly sinceMs: number } | undefined
  let lastError: unknown
  const onPassingError = (error: unknown): void => {
    lastError = error
  }
  while (!create(path, owner, onPassingError)) {
    const name = ownerOf(path, onPassingError)
    if (holder === undefined && isRunning(name)) onWait?.()
    if (holder === undefined || holder.name !== name) holder = { name, sinceMs: performance.now() }
    const seenMs = performance.now() - holder.sinceMs
    if (name === undefined) {
      if (seenMs > longestMs) throw persistent(lastError)
    } else if (!isRunning(name) || seenMs > longestMs)
      removeAbandoned(path, name, { owner, isGuardIgnored: seenMs > 2 * longestMs })
    // Random pauses keep waiting processes from checking at the same time.
    await delay(pauseMs * (0.5 + Math.random()), undefined, { signal }).catch(() => signal.throwIfAborted())
  }
  try {
    return await run()
  } finally {
    remove(path, owner)
  }
}

/** True when the file was created, or when it cannot be created at all. Reports errors that may be temporary. */
function create(path: string, owner: string, onPassingError?: (error: unknown) => void): boolean {
  try {
    writeFileSync(path, owner, { mode: 0o600, flag: 'wx' })
    return true
  } catch (error) {
    const code = codeOf(error)
    if (!passingErrors.has(code)) return code !== 'EEXIST'
    onPassingError?.(error)
    return false
  }
}

/**
 * Returns undefined when the file no longer exists or cannot be read at the moment. Throws BACKEND_AUTH_FAILED when the
 * path is not a readable file. Reports errors that may be temporary.
 */
function ownerOf(path: string, onPassingError?: (error: unknown) => void): string | undefined {
  try {
    // Reading a pipe would block the process, and a link would lead to another file.
    if (!lstatSync(path).isFile()) throw new Error('not a regular file')
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const code = codeOf(cause)
    if (code === 'ENOENT') return undefined
    if (!passingErrors.has(code)) throw lockError(`${path} is not a readable file; remove it`, cause)
    onPassingError?.(cause)
    return undefined
  }
}

function persistent(error: unknown): GatehouseError {
  const code = error === undefined ? '' : ` (${String(codeOf(error))})`
  return lockError(`the lock file cannot be created or read${code}`, error)
}

function lockError(message: string, cause: unknown): GatehouseError {
  return new GatehouseError('BACKEND_AUTH_FAILED', {
    detail: 'the persisted login cannot be locked',
    cause: new Error(message, { cause }),
  })
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/**
 * Removes the file, unless another process now owns it. A file that cannot be removed is later treated as abandoned.
 */
function remove(path: string, owner: string): void {
  try {
    if (ownerOf(path) === owner) rmSync(path, { force: true })
  } catch {
    // Ignore the error: the work itself succeeded.
  }
}

/**
 * Removes the lock of the process `abandoned`. Processes remove locks one at a time. Otherwise, a second process would
 * remove the lock that the first process has since acquired. When another process has the guard, this call does nothing
 * except remove a guard whose process has ended, or any guard when `isGuardIgnored` is true.
 */
function removeAbandoned(
  path: string,
  abandoned: string,
  { owner, isGuardIgnored }: { readonly owner: string; readonly isGuardIgnored: boolean },
): void {
  const guard = `${path}.guard`
  if (!create(guard, owner)) {
    const name = ownerOf(guard)
    if (name !== undefined && (!isRunning(name) || isGuardIgnored)) remove(guard, name)
    return
  }
  remove(path, abandoned)
  remove(guard, owner)
}

/** Returns false when the owner was a process on this machine that has ended. True for an unknown owner. */
function isRunning(owner = ''): boolean {
  const [id = '', host] = owner.split(' ')
  const pid = Number(id)
  if (host !== hostname() || !Number.isInteger(pid) || pid <= 0) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) !== 'ESRCH'
  }
}

/** Runs one kind of work at a time. Concurrent callers that request the same kind of work share its result. */
export class ExclusiveWork<Kind extends string> {
  #flight: { readonly kind: Kind; readonly done: Promise<void> } | undefined

  async once(kind: Kind, run: () => Promise<void>): Promise<void> {
    while (this.#flight && this.#flight.kind !== kind) await this.#flight.done.catch(() => undefined)
    this.#flight ??= {
      kind,
      done: run().finally(() => {
        this.#flight = undefined
      }),
    }
    await this.#flight.done
  }
}
