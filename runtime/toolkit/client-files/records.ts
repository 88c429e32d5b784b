/**
 * Records the operations on each client's file so that they can be undone: changes, hashes before and after, and
 * backups.
 *
 * For each client file, the state directory contains a file with the last ten operations, readable only by its owner. A
 * record is written before the file is replaced. The record takes effect once the file has the recorded hash.
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { canonicalJson, invalidConfig } from '../../../schemas/index.ts'
import type { TextChange } from '../clients/index.ts'

export interface FileRecord {
  readonly client: string
  readonly action: 'add' | 'remove'
  /** Keys from the top of the document to the entry. */
  readonly path: readonly string[]
  /** Hash of the entry that was written or removed. */
  readonly entry: string
  /** Number of empty maps that were created on the path to the entry. */
  readonly made: number
  readonly changes: readonly TextChange[]
  /** Hashes of the whole file. Null if the file did not exist. */
  readonly before: string | null
  readonly after: string | null
  /** The backup's path. Null if the file did not exist. */
  readonly backup: string | null
  readonly at: string
}

const maxRecords = 10

export function hashOfBytes(bytes: Uint8Array | undefined): string | null {
  return bytes === undefined ? null : createHash('sha256').update(bytes).digest('hex')
}

export function hashOfEntry(entry: unknown): string {
  return createHash('sha256').update(canonicalJson(entry)).digest('hex')
}

/** The records for one client file. */
export class Records {
  readonly #folder: string
  readonly #id: string

  /** `target` is the path with its links resolved. */
  constructor(folder: string, target: string) {
    this.#folder = folder
    // 96 bits are enough for one user's files.
    this.#id = createHash('sha256').update(target).digest('hex').slice(0, 24)
  }

  /** Returns the records, newest last. Unreadable records are treated as absent. */
  read(): readonly FileRecord[] {
    try {
      const parsed = JSON.parse(readFileSync(this.#path('json'), 'utf8')) as { records?: unknown }
      return Array.isArray(parsed.records) ? (parsed.records as FileRecord[]) : []
    } catch {
      return []
    }
  }

  write(records: readonly FileRecord[]): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const draft = this.#path(`${process.pid}.tmp`)
    writeFileSync(draft, JSON.stringify({ version: 1, records: records.slice(-maxRecords) }), { mode: 0o600 })
    renameSync(draft, this.#path('json'))
  }

  /** Writes a backup and returns its path. Keeps the last ten backups. */
  backup(bytes: Uint8Array, at: Date): string {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const path = this.#path(`${at.toISOString().replaceAll(/[:.]/g, '-')}.bak`)
    writeFileSync(path, bytes, { mode: 0o600 })
    const backups = readdirSync(this.#folder)
      .filter((name) => name.startsWith(this.#id) && name.endsWith('.bak'))
      .toSorted()
    for (const old of backups.slice(0, -maxRecords)) rmSync(join(this.#folder, old), { force: true })
    return path
  }

  /** Runs `work` under a lock that excludes other Gatehouse processes. */
  async locked<T>(work: () => Promise<T>): Promise<T> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const lock = this.#path('lock')
    for (let attempt = 0; !tryLock(lock); attempt++) {
      if (attempt >= lockTries)
        throw invalidConfig(
          `another gatehouse process is changing the file; if none is running, remove ${lock}`,
        )
      await sleep(lockWaitMs)
    }
    try {
      return await work()
    } finally {
      rmSync(lock, { force: true })
    }
  }

  #path(ending: string): string {
    return join(this.#folder, `${this.#id}.${ending}`)
  }
}

const lockTries = 100
const lockWaitMs = 50
/** An operation takes milliseconds, so an older lock is stale. */
const staleMs = 60_000

function tryLock(path: string): boolean {
  try {
    const file = openSync(path, 'wx', 0o600)
    writeSync(file, String(process.pid))
    closeSync(file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (isStale(path)) rmSync(path, { force: true })
    return false
  }
}

function isStale(path: string): boolean {
  try {
    if (Date.now() - statSync(path).mtimeMs > staleMs) return true
    const owner = Number(readFileSync(path, 'utf8'))
    // The owner has not written its pid yet.
    if (!Number.isInteger(owner) || owner <= 0) return false
    process.kill(owner, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
