/**
 * What was done to each client's file, so that it can be taken back: the changes, hashes before and after, and backups.
 *
 * One file per client's file in the state directory, for its owner only; the last ten operations count. A record is
 * written before the file is replaced: it says nothing until the file has the hash that it names.
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
  /** Names from the top of the document to the entry. */
  readonly path: readonly string[]
  /** Hash of the entry that was written; of the one that was removed. */
  readonly entry: string
  /** Empty maps that were made on the way to the entry. */
  readonly made: number
  readonly changes: readonly TextChange[]
  /** Hashes of the whole file; null: there was none. */
  readonly before: string | null
  readonly after: string | null
  /** Where the bytes from before are; null: there was no file. */
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

/** The records of one client's file. */
export class Records {
  readonly #folder: string
  readonly #id: string

  /** `target`: the path with its links followed. */
  constructor(folder: string, target: string) {
    this.#folder = folder
    // 96 bits, among the files of one user.
    this.#id = createHash('sha256').update(target).digest('hex').slice(0, 24)
  }

  /** Newest last. What cannot be read counts as absent. */
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

  /** Keeps the bytes as they are now; returns where. */
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

  /** Runs `work` while no other process of ours works on the same file. */
  async locked<T>(work: () => Promise<T>): Promise<T> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const lock = this.#path('lock')
    for (let attempt = 0; !tryLock(lock); attempt++) {
      if (attempt >= lockTries)
        throw invalidConfig(`another gatehouse works on the file; if none does, remove ${lock}`)
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
/** An operation takes milliseconds: an older lock was left behind. */
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
    // Not written yet.
    if (!Number.isInteger(owner) || owner <= 0) return false
    process.kill(owner, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
