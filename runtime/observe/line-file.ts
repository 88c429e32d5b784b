/**
 * Writes log lines to a file descriptor, many lines per write.
 *
 * The writer writes a single line in the same turn of the event loop. Under load, lines are held for a few milliseconds
 * and written together, because a system call costs more than a line. At process exit, the writer writes all remaining
 * lines. If a pipe is full, the writer retries later. If the pipe stays full, the writer drops and counts the oldest
 * lines, so that a stalled reader costs neither memory nor time.
 */
import { closeSync, writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const maxBufferedChars = 1_048_576
const retryMs = 20
/** Minimum interval between two writes, unless a lot of data is pending. */
const paceMs = 5
const maxWaitingChars = 65_536

export interface LineFile {
  write(line: string): void
  /** Writes as many pending lines as the descriptor accepts. */
  flushSync(): void
  /** Writes pending lines and closes the descriptor, unless it is a standard stream. */
  close(): void
}

/** Called when lines are lost because of a slow reader, a full disk or a closed pipe. */
export interface LineWatch {
  /** Called with the number of lost lines and with the system error, if there is one. */
  readonly onLoss?: (lines: number, error?: unknown) => void
  /** Called for the first successful write after a loss. */
  readonly onWritten?: () => void
}

export interface LineFileOptions extends LineWatch {
  /** Replaces fs.writeSync in tests. Returns the number of bytes written. */
  readonly writeSync?: (fd: number, bytes: Buffer) => number
}

export function makeLineFile(fd: number, options: LineFileOptions = {}): LineFile {
  const put = options.writeSync ?? (isMainThread || fd > 2 ? writeSync : writeStream)
  let lines: string[] = []
  let chars = 0
  /** The part of an earlier batch that a full pipe did not accept. */
  let rest: Buffer | undefined
  /** Lines dropped since the last notice in the output, and how many of these `onLoss` has not reported yet. */
  let dropped = 0
  let unreported = 0
  let scheduled: 'no' | 'paced' | 'now' = 'no'
  let writtenAt = 0
  let losing = false

  function reportLoss(count: number, error?: unknown): void {
    losing = true
    options.onLoss?.(count, error)
  }

  function write(line: string): void {
    lines.push(line)
    chars += line.length
    while (chars > maxBufferedChars && lines.length > 1) {
      chars -= lines.shift()?.length ?? 0
      dropped++
      unreported++
    }
    if (scheduled === 'now' || (scheduled === 'paced' && chars < maxWaitingChars)) return
    const waitMs = writtenAt + paceMs - performance.now()
    if (waitMs > 0 && chars < maxWaitingChars) {
      scheduled = 'paced'
      setTimeout(flushSync, waitMs).unref()
    } else {
      scheduled = 'now'
      setImmediate(flushSync)
    }
  }

  function takeLines(): Buffer {
    if (dropped > 0) lines.unshift(droppedNotice(dropped))
    const bytes = Buffer.from(lines.length === 1 ? (lines[0] ?? '') : lines.join(''))
    lines = []
    chars = 0
    dropped = 0
    return bytes
  }

  function flushSync(): void {
    scheduled = 'no'
    if (lines.length === 0 && rest === undefined) return
    writtenAt = performance.now()
    if (unreported > 0) reportLoss(unreported)
    unreported = 0
    let failed = false
    while (rest !== undefined || lines.length > 0) {
      const bytes = rest ?? takeLines()
      rest = undefined
      try {
        const written = put(fd, bytes)
        if (written < bytes.length) rest = bytes.subarray(written)
      } catch (error) {
        if (isFull(error)) {
          // While the pipe is full, new lines wait in `lines`, where their number is limited.
          rest = bytes
          scheduled = 'now'
          setTimeout(flushSync, retryMs).unref()
          return
        }
        // After other errors, such as a closed pipe or a full disk, the lines are lost.
        failed = true
        reportLoss(linesIn(bytes), error)
      }
    }
    if (failed || !losing) return
    losing = false
    options.onWritten?.()
  }

  function close(): void {
    flushSync()
    process.off('exit', flushSync)
    if (fd > 2) closeSync(fd)
  }

  process.once('exit', flushSync)
  return { write, flushSync, close }
}

let standardError: LineFile | undefined
let lostLines = 0

/** Returns the shared writer for standard error, because two writers could interrupt each other's lines. */
export function standardErrorLines(): LineFile {
  standardError ??= makeLineFile(2, { onLoss: (lines) => (lostLines += lines) })
  return standardError
}

/** Returns the number of log lines that standard error did not accept since the process started. */
export function lostLogLines(): number {
  return lostLines
}

/** A worker thread writes to its stream, because descriptors belong to the whole process. */
function writeStream(fd: number, bytes: Buffer): number {
  const stream = fd === 1 ? process.stdout : process.stderr
  stream.write(bytes)
  return bytes.length
}

function droppedNotice(dropped: number): string {
  return `{"level":"warn","time":"${new Date().toISOString()}","dropped":${dropped},"message":"log lines were dropped"}\n`
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN'
}

function linesIn(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count++
  return Math.max(1, count)
}
