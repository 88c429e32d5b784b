/**
 * Reads a client's file, and replaces it so that no reader ever sees half of it.
 *
 * A symbolic link is followed and its target replaced. What replacing would damage is refused: files of other users,
 * several hard links, read-only files, and whatever is no regular file.
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
  /** Where the bytes are: the path with its links followed. */
  readonly target: string
  /** Undefined: there is no such file. */
  readonly bytes: Buffer | undefined
  readonly stats: Stats | undefined
}

/** Throws INVALID_CONFIG when the path is not that of a readable file of bounded size. */
export function readFileOnDisk(path: string): FileOnDisk {
  try {
    return read(path)
  } catch (error) {
    if (error instanceof GatehouseError) throw error
    throw invalidConfig(`${path} cannot be read: ${systemReason(error)}`)
  }
}

function read(path: string): FileOnDisk {
  const target = followed(path)
  const stats = statSync(target, { throwIfNoEntry: false })
  if (!stats) return { target, bytes: undefined, stats: undefined }
  if (stats.isDirectory()) throw invalidConfig(`${path} is a folder, not a file`)
  if (!stats.isFile()) throw invalidConfig(`${path} is no regular file`)
  if (stats.size > maxFileBytes) throw invalidConfig(`${path} is larger than 8 MiB`)
  return { target, bytes: readFileSync(target), stats }
}

function followed(path: string): string {
  const link = lstatSync(path, { throwIfNoEntry: false })
  if (!link) return join(realFolder(dirname(path)), basename(path))
  if (link.isSymbolicLink() && !existsSync(path)) {
    throw invalidConfig(`${path} is a symbolic link that leads nowhere`)
  }
  return realpathSync(path)
}

/** A file has one name before and after it is made: the links among its folders are followed, as far as they exist. */
function realFolder(folder: string): string {
  if (existsSync(folder)) return realpathSync(folder)
  const parent = dirname(folder)
  return parent === folder ? folder : join(realFolder(parent), basename(folder))
}

/** Throws INVALID_CONFIG when the file may not be replaced. */
export function refuseUnwritable(path: string, { stats }: FileOnDisk): void {
  if (!stats) return
  const self = process.getuid?.()
  if (self !== undefined && stats.uid !== self)
    throw invalidConfig(`${path} belongs to another user; it is left alone`)
  if ((stats.mode & 0o200) === 0)
    throw invalidConfig(`${path} is read-only; make it writable, or add the entry by hand (--print)`)
  if (stats.nlink > 1)
    throw invalidConfig(`${path} has several hard links, which replacing it would separate`)
}

/**
 * Puts `bytes` in place of the file: a temporary file in the same folder, flushed, then renamed. A new file never
 * replaces one that appeared meanwhile. Returns false when it did, true when the file is in place.
 */
export async function replaceFile(
  { target, stats }: FileOnDisk,
  bytes: Uint8Array,
  step: (name: 'written' | 'replaced') => void = () => {},
): Promise<boolean> {
  const folder = dirname(target)
  const temporary = join(folder, `.${basename(target)}.gatehouse-${process.pid}.tmp`)
  try {
    mkdirSync(folder, { recursive: true })
    // What an interrupted run of ours left behind.
    for (const name of leftovers(folder, basename(target))) rmSync(join(folder, name), { force: true })
    writeDurably(temporary, bytes, stats)
    step('written')
    if (stats) await rename(temporary, target)
    else if (!create(temporary, target)) return false
    step('replaced')
    flushFolder(folder)
    return true
  } catch (cause) {
    throw invalidConfig(`${target} cannot be written: ${systemReason(cause)}`)
  } finally {
    rmSync(temporary, { force: true })
  }
}

function leftovers(folder: string, file: string): readonly string[] {
  return readdirSync(folder).filter((name) => name.startsWith(`.${file}.gatehouse-`) && name.endsWith('.tmp'))
}

export function removeFile({ target }: FileOnDisk): void {
  rmSync(target)
  flushFolder(dirname(target))
}

/** A new file, flushed. */
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

/** The mode without the umask, and the group. Where the group cannot be restored, the new one gets no permissions. */
function restorePermissions(file: number, { mode, uid, gid }: Stats): void {
  let allowed = 0o777
  try {
    fchownSync(file, uid, gid)
  } catch {
    allowed = 0o707
  }
  fchmodSync(file, mode & allowed)
}

/** On Windows another program may hold the file open for a moment. */
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

/** Gives a file its name; false when the name is taken. */
export function create(temporary: string, target: string, link = linkSync): boolean {
  try {
    link(temporary, target)
    return true
  } catch (error) {
    if (isTaken(error)) return false
  }
  // A file system without hard links: the name is taken by an empty file first.
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
    // Some systems cannot flush a folder; the rename has happened all the same.
  }
}
