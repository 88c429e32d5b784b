/**
 * The file of one lock on this machine: reading it, and writing it once. It is written only when it can be read again and says
 * the same then. A lock of a thousand tools takes seconds, so a running server has it written by a thread (`writer.ts`).
 *
 * A file appears whole or not at all, also when the machine stops meanwhile, and of several programs that see a backend first
 * one writes it: the text is written and synchronised beside it, then linked to its name.
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
  /** Another one for each content that the file had. */
  readonly stamp: string
}

/** Undefined when there is no such file. Throws INVALID_CONFIG for one that is no lock of this backend. */
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
    throw invalidConfig(`${path}: is no MCPToolLock, and is not written over`)
  const locks = locksIn(manifests, (doc) => validateResource(doc).violations)
  const other = locks.find(({ backendRef }) => backendRef.name !== backend)
  if (other)
    throw invalidConfig(
      `${path}: is the lock of ${other.backendRef.name}, not of ${backend}, and is not written over`,
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
  /** False: the file was there already. */
  readonly written: boolean
}

/** Writes what is offered as a lock; a file that is there stays, and is read. Throws an error that tells why neither works. */
export function writeLock({ path, kind, backend, offered }: LockTask): WrittenLock {
  const there = readLock(path, backend)
  const written = !there && writeOnce(path, textOf({ kind, name: backend }, offered))
  const stored = there ?? readLock(path, backend)
  if (!stored) throw new Error(`${path} is gone again`)
  return { ...stored, written }
}

/** Throws when a reader would refuse it, or take it for something else. */
function textOf(
  target: { readonly kind: BackendKind; readonly name: string },
  offered: LockableItems,
): string {
  const place = { ...target, url: '', transport: 'streamable-http' } as const
  const spec = lockSpec(place, offered, undefined)
  const metadata = { name: target.name }
  const { violations } = validateResource({ apiVersion, kind: 'MCPToolLock', metadata, spec })
  if (violations.length > 0)
    throw new Error(`what it offers fits into no lock: ${formatViolations(violations)}`)
  const text = manifestText(place, spec)
  const wanted = plain(runtimeLock(spec, target.name))
  if (!isDeepStrictEqual(plain(locksOf(Buffer.from(text).toString(), 'its lock', target.name)), [wanted]))
    throw new Error('what it offers cannot be written as YAML without a difference')
  return text
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

/** False: a file is there already, and stays. Throws when it cannot be written. */
function writeOnce(path: string, text: string): boolean {
  const draft = join(dirname(path), `.${randomUUID()}.lock.tmp`)
  try {
    writeDurably(draft, Buffer.from(text))
    const isNew = create(draft, path)
    flushFolder(dirname(path))
    return isNew
  } catch (error) {
    throw new Error(`${path} cannot be written: ${systemReason(error)}`, { cause: error })
  } finally {
    removeDraft(draft)
  }
}

/** Why it could not be written is what counts. */
function removeDraft(draft: string): void {
  try {
    rmSync(draft, { force: true })
  } catch {
    // The folder itself is gone.
  }
}
