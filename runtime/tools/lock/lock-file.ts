/**
 * Reads a lock's file, and writes the file once. The text is verified by parsing before it is written. Formatting a
 * lock with a thousand tools takes seconds, so a running server uses a thread (`writer.ts`).
 *
 * To make the write atomic and durable, the file is written and synchronized under a temporary name, then linked. If
 * several programs see a new backend at the same time, only one of them writes its lock.
 */
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { validateResource } from '../../../hooks/index.ts'
import {
  apiVersion,
  formatViolations,
  invalidConfig,
  pinScheme,
  runtimeToolLock,
  type RuntimeToolLock,
  type ToolLockSpec,
} from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import { create, flushFolder, readFileOnDisk, writeDurably } from '../../toolkit/client-files/file.ts'
import { parseManifests } from '../../toolkit/manifests/read.ts'
import { lockSpec, manifestText, type LockableItems } from './manifest.ts'
import { type BackendKind, locksIn } from './targets.ts'

export interface StoredLock {
  readonly locks: readonly RuntimeToolLock[]
  /** Changes whenever the file's content does. */
  readonly stamp: string
}

/**
 * Returns undefined when the file does not exist. Throws INVALID_CONFIG when the file is not a lock for this backend.
 */
export function readLock(path: string, backend: string, known?: StoredLock): StoredLock | undefined {
  const { bytes, stats } = readFileOnDisk(path)
  if (!bytes || !stats) return undefined
  const stamp = [stats.dev, stats.ino, stats.size, stats.mtimeMs].join(' ')
  return known?.stamp === stamp ? known : { locks: locksOf(bytes.toString(), path, backend), stamp }
}

function locksOf(text: string, path: string, backend: string): readonly RuntimeToolLock[] {
  const manifests = parseManifests(path, text)
  const foreign = manifests.find(({ doc }) => doc.kind !== 'MCPToolLock')
  if (foreign || manifests.length === 0)
    throw invalidConfig(`${path}: is not an MCPToolLock and was not overwritten`)
  const locks = locksIn(manifests, (doc) => validateResource(doc).violations)
  const other = locks.find(({ backendRef }) => backendRef.name !== backend)
  if (other)
    throw invalidConfig(
      `${path}: is the lock for ${other.backendRef.name}, not for ${backend}, and was not overwritten`,
    )
  return locks.map((spec) => runtimeLock(spec, backend))
}

function runtimeLock(spec: ToolLockSpec, backend: string): RuntimeToolLock {
  return { scheme: pinScheme, ...runtimeToolLock(spec, backend) }
}

export interface LockTask {
  readonly path: string
  readonly kind: BackendKind
  readonly backend: string
  readonly offered: LockableItems
}

export interface WrittenLock extends StoredLock {
  /** False when the file already existed. */
  readonly written: boolean
}

/** Writes a new lock, or reads the existing file. Throws an error with the reason when neither is possible. */
export function writeLock({ path, kind, backend, offered }: LockTask): WrittenLock {
  const existing = readLock(path, backend)
  const written = !existing && writeOnce(path, textOf({ kind, name: backend }, offered))
  const stored = existing ?? readLock(path, backend)
  if (!stored) throw new Error(`${path} was deleted after it was written`)
  return { ...stored, written }
}

/** Throws when the lock would be rejected or would not parse to the same value. */
function textOf(
  target: { readonly kind: BackendKind; readonly name: string },
  offered: LockableItems,
): string {
  const lockTarget = { ...target, url: '', transport: 'streamable-http' } as const
  const spec = lockSpec(lockTarget, offered, undefined)
  const metadata = { name: target.name }
  const { violations } = validateResource({ apiVersion, kind: 'MCPToolLock', metadata, spec })
  if (violations.length > 0)
    throw new Error(`the definitions do not fit in a lock: ${formatViolations(violations)}`)
  const text = manifestText(lockTarget, spec)
  const expected = plain(runtimeLock(spec, target.name))
  if (!isDeepStrictEqual(plain(locksOf(Buffer.from(text).toString(), 'its lock', target.name)), [expected]))
    throw new Error('the definitions cannot be represented exactly in YAML')
  return text
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

/** Returns false when the file already exists. Throws when the file cannot be written. */
function writeOnce(path: string, text: string): boolean {
  const draft = join(dirname(path), `.${randomUUID()}.lock.tmp`)
  try {
    writeDurably(draft, Buffer.from(text))
    const isNew = create(draft, path)
    flushFolder(dirname(path))
    return isNew
  } catch (error) {
    throw new Error(`cannot write ${path}: ${systemReason(error)}`, { cause: error })
  } finally {
    removeDraft(draft)
  }
}

/** Ignores errors, so that the original error is reported. */
function removeDraft(draft: string): void {
  try {
    rmSync(draft, { force: true })
  } catch {
    // The folder no longer exists.
  }
}
