/**
 * Reads a client's file and replaces it atomically.
 *
 * Follows symbolic links and replaces their target. Rejects files that a replacement would damage: files owned by other
 * users, files with several hard links, read-only files, and special files.
 */
import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import { maxFileBytes } from '../clients/index.ts'
import { systemReason } from '../../config/index.ts'

export interface FileOnDisk {
  /** The path with symbolic links resolved. */
  readonly target: string
  /** Undefined when the file does not exist. */
  readonly bytes: Buffer | undefined
  readonly stats: Stats | undefined
}

/** Throws INVALID_CONFIG when the path is not a readable file of at most 8 MiB. */
export function readFileOnDisk(path: string): FileOnDisk {
  try {
    return read(path)
  } catch (error) {
    if (error instanceof GatehouseError) throw error
    throw invalidConfig(`cannot read ${path}: ${systemReason(error)}`)
  }
}

function read(path: string): FileOnDisk {
  const target = resolveLinks(path)
  const stats = statSync(target, { throwIfNoEntry: false })
  if (!stats) return { target, bytes: undefined, stats: undefined }
  if (stats.isDirectory()) throw invalidConfig(`${path} is a folder, not a file`)
  if (!stats.isFile()) throw invalidConfig(`${path} is not a regular file`)
  if (stats.size > maxFileBytes) throw invalidConfig(`${path} is larger than 8 MiB`)
  return { target, bytes: readFileSync(target), stats }
}

function resolveLinks(path: string): string {
  const link = lstatSync(path, { throwIfNoEntry: false })
  if (!link) return join(realFolder(dirname(path)), basename(path))
  if (link.isSymbolicLink() && !existsSync(path)) {
    throw invalidConfig(`${path} is a dangling symbolic link`)
  }
  return realpathSync(path)
}

/**
 * Resolves links in the existing part of the path, so that a file's name is the same before and after it is created.
 */
function realFolder(folder: string): string {
  if (existsSync(folder)) return realpathSync(folder)
  const parent = dirname(folder)
  return parent === folder ? folder : join(realFolder(parent), basename(folder))
}

/** Throws INVALID_CONFIG when the file must not be replaced. */
export function refuseUnwritable(path: string, { stats }: FileOnDisk): void {
  if (!stats) return
  const self = process.getuid?.()
  if (self !== undefined && stats.uid !== self)
    throw invalidConfig(`${path} belongs to another user and was not changed`)
  if ((stats.mode & 0o200) === 0)
    throw invalidConfig(`${path} is read-only; make it writable, or add the entry manually (--print)`)
  if (stats.nlink > 1)
    throw invalidConfig(`${path} has several hard links, which replacing the file would break`)
}

/** Returns false when another program has changed, created or removed the file since it was read. */
export function isUnchanged({ target, bytes }: FileOnDisk): boolean {
  const { bytes: now } = readFileOnDisk(target)
  return bytes === undefined || now === undefined ? bytes === now : bytes.equals(now)
}

/**
 * Replaces the file with `bytes`: writes a temporary file in the same folder, flushes it, and renames it. Returns false
 * without replacing the file when another program has changed or created it since it was read. The comparison comes
 * last, because writing takes long enough for a client to save its settings.
 */
export async function replaceFile(
  read: FileOnDisk,
  bytes: Uint8Array,
  step: (name: 'written' | 'replaced') => void = () => {},
): Promise<boolean> {
  const { target, stats } = read
  const folder = dirname(target)
  const temporary = join(folder, `.${basename(target)}.gatehouse-${process.pid}.tmp`)
  try {
    mkdirSync(folder, { recursive: true })
    removeLeftovers(target)
    writeDurably(temporary, bytes, stats)
    step('written')
    if (!isUnchanged(read)) return false
    if (stats) await rename(temporary, target)
    else if (!create(temporary, target)) return false
    step('replaced')
    flushFolder(folder)
    return true
  } catch (cause) {
    if (cause instanceof GatehouseError) throw cause
    throw invalidConfig(`cannot write ${target}: ${systemReason(cause)}`)
  } finally {
    rmSync(temporary, { force: true })
  }
}

/** Removes the temporary files that an interrupted run left next to a file. */
export function removeLeftovers(target: string): void {
  const folder = dirname(target)
  const names = existsSync(folder) ? readdirSync(folder) : []
  for (const name of names) {
    const isOurs = name.startsWith(`.${basename(target)}.gatehouse-`) && name.endsWith('.tmp')
    if (isOurs) rmSync(join(folder, name), { force: true })
  }
}

/** Returns false without removing the file when another program has changed it since it was read. */
export function removeFile(read: FileOnDisk): boolean {
  if (!isUnchanged(read)) return false
  rmSync(read.target)
  flushFolder(dirname(read.target))
  return true
}

/** Creates a file and flushes it. */
export function writeDurably(path: string, bytes: Uint8Array, stats?: Stats): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    if (stats) restorePermissions(file, stats)
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Restores the mode and the group. If the group cannot be restored, the new group has no permissions. */
function restorePermissions(file: number, { mode, uid, gid }: Stats): void {
  let allowed = 0o777
  try {
    fchownSync(file, uid, gid)
  } catch {
    allowed = 0o707
  }
  fchmodSync(file, mode & allowed)
}

/** Retries on Windows, where another program may keep the file open briefly. */
async function rename(from: string, to: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return renameSync(from, to)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? ''
      if (!['EPERM', 'EBUSY', 'EACCES'].includes(code) || process.platform !== 'win32' || attempt >= 20)
        throw error
      await sleep(100)
    }
  }
}

/** Renames a file. Returns false when the target exists. */
export function create(temporary: string, target: string, link = linkSync): boolean {
  try {
    link(temporary, target)
    return true
  } catch (error) {
    if (isTaken(error)) return false
  }
  // On a file system without hard links, reserve the name with an empty file first.
  try {
    closeSync(openSync(target, 'wx', 0o600))
  } catch (error) {
    if (isTaken(error)) return false
    throw error
  }
  renameSync(temporary, target)
  return true
}

function isTaken(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EEXIST'
}

export function flushFolder(folder: string): void {
  try {
    const handle = openSync(folder, 'r')
    fsyncSync(handle)
    closeSync(handle)
  } catch {
    // Some systems cannot flush a folder, but the rename has already happened.
  }
}
