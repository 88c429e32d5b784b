/**
 * Persists logins and client registrations between runs, encrypted in files that only the user can read.
 *
 * AES-256-GCM; the file's name is authenticated as well. The key is derived from a password (scrypt) or read from a key
 * file next to the logins. The key file protects a copied login file, but not a copied directory. Unreadable files are
 * treated as absent. A failed write is reported once, and the login is then kept only in memory.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes, scryptSync } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../net/index.ts'
import type { Secret } from '../../observe/index.ts'
import { type LockWaiting, withFileLock } from './file-lock.ts'

export interface PersistedLogin {
  /** Returns the value persisted under this name; undefined when it is missing or unreadable. */
  read(name: string): unknown
  write(name: string, value: unknown): void
  remove(name: string): void
  /**
   * Calls `run` under a lock with this name, so that only one process runs it at a time. Rejects with the signal's
   * reason if it aborts while waiting.
   */
  exclusively<T>(name: string, signal: AbortSignal, run: () => Promise<T>, waiting?: LockWaiting): Promise<T>
}

/** Persists nothing. */
export const persistNothing: PersistedLogin = {
  read: () => undefined,
  write() {},
  remove() {},
  exclusively: (_name, _signal, run) => run(),
}

export function persistInDirectory(dir: string, password: Secret | undefined, log: Log): PersistedLogin {
  let key: Buffer | undefined
  let complained = false

  function keyOf(): Buffer {
    key ??=
      password === undefined ? keyFile(dir, 'key') : scryptSync(password.reveal(), keyFile(dir, 'salt'), 32)
    return key
  }
  function complain(error: unknown): void {
    if (!complained) log.warn('logins cannot be kept across restarts', { dir, err: error })
    complained = true
  }
  // 128 bits, so that names do not collide.
  const pathOf = (name: string): string =>
    join(dir, `${createHash('sha256').update(name).digest('hex').slice(0, 32)}.login`)

  return {
    read(name) {
      try {
        return open(readFileSync(pathOf(name)), keyOf(), name)
      } catch {
        return undefined
      }
    },
    write(name, value) {
      try {
        mkdirSync(dir, { recursive: true, mode: 0o700 })
        const path = pathOf(name)
        const draft = `${path}.${process.pid}`
        writeFileSync(draft, seal(value, keyOf(), name), { mode: 0o600 })
        renameSync(draft, path)
      } catch (error) {
        complain(error)
      }
    },
    remove(name) {
      try {
        rmSync(pathOf(name), { force: true })
      } catch (error) {
        complain(error)
      }
    },
    exclusively: (name, signal, run, waiting) => withFileLock(`${pathOf(name)}.lock`, signal, run, waiting),
  }
}

/** Returns 32 random bytes that are generated once per directory. */
function keyFile(dir: string, name: string): Buffer {
  const path = join(dir, name)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  try {
    // This write fails if another process has created the file first; in that case, that file's bytes are used.
    writeFileSync(path, randomBytes(32), { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
  const bytes = readFileSync(path)
  if (bytes.length !== 32) throw new Error(`the file ${path} is damaged`)
  return bytes
}

function seal(value: unknown, key: Buffer, name: string): Buffer {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(name))
  const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), text])
}

function open(bytes: Buffer, key: Buffer, name: string): unknown {
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
  decipher.setAAD(Buffer.from(name))
  decipher.setAuthTag(bytes.subarray(12, 28))
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8'))
}
