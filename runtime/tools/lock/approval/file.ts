/**
 * Writes approvals to the manifests of `gatehouse dev`. Finds the lock when the approval is made and replaces its file
 * atomically. The running server applies the approval like any other edit.
 *
 * The file must match the lock that is in force; a file that was edited in the meantime is not changed. A lock file
 * serializes approvals from all processes and threads. Concurrent edits are not overwritten.
 */
import { isUtf8 } from 'node:buffer'
import { closeSync, openSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { validateResource } from '../../../../hooks/index.ts'
import {
  fieldsOf,
  formatViolations,
  GatehouseError,
  isFields,
  runtimeToolLock,
  type input,
  withDefaults,
} from '../../../../schemas/index.ts'
import { systemReason } from '../../../config/index.ts'
import { readFileOnDisk, refuseUnwritable, replaceFile } from '../../../toolkit/client-files/file.ts'
import { readManifests } from '../../../toolkit/manifests/read.ts'
import { applyChange, changeOf, memberOf, type Reviewed } from './change.ts'
import { editText, notWritten, type ManifestPosition, findManifests } from './edit.ts'

/** Identifies a lock in the manifests. */
export interface SoughtLock {
  /** Files and folders of the manifests. */
  readonly paths: readonly string[]
  readonly namespace: string
  readonly backend: string
  /** The lock that is in force. */
  readonly lock: input.RuntimeToolLock
}

/** Age at which a lock file is considered stale. An approval never takes this long. */
const abandonedMs = 60_000

/**
 * Returns the file with the lock. Throws LOCK_NOT_WRITTEN if the manifests do not contain the lock, or contain it more
 * than once.
 */
export function fileOfLock(where: SoughtLock): string {
  const files = new Set<string>()
  let found = 0
  for (const { doc, file } of manifestsOf(where.paths)) {
    if (!isWanted(doc, where)) continue
    found += 1
    files.add(file)
  }
  const [file] = files
  const name = where.lock.name ?? ''
  if (where.paths.length === 0)
    throw notWritten('the manifests were read from standard input: change the lock in their source')
  if (file === undefined)
    throw notWritten(`the files no longer contain MCPToolLock ${name}: review the difference again`)
  if (found > 1)
    throw notWritten(`the files contain several MCPToolLocks ${name}: edit the correct one manually`)
  return file
}

function manifestsOf(paths: readonly string[]) {
  try {
    return readManifests(
      paths.filter((path) => path !== '-'),
      () => '',
    )
  } catch (error) {
    throw error instanceof GatehouseError ? notWritten(error.message) : error
  }
}

function isWanted(doc: Readonly<Record<string, unknown>>, { lock, backend, namespace }: SoughtLock): boolean {
  const { name, namespace: own = 'default' } = fieldsOf(doc['metadata'])
  const ref = fieldsOf(fieldsOf(doc['spec'])['backendRef'])
  return doc['kind'] === 'MCPToolLock' && name === lock.name && own === namespace && ref['name'] === backend
}

/**
 * Writes the approval and returns the path of its file. Throws APPROVAL_STALE or LOCK_NOT_WRITTEN without changing
 * anything.
 */
export async function approveInFile(where: SoughtLock, reviewed: Reviewed): Promise<string> {
  const path = fileOfLock(where)
  const file = orNotWritten(() => readFileOnDisk(path))
  await withFileLock(file.target, async () => {
    const now = orNotWritten(() => readFileOnDisk(path))
    const bytes = now.bytes ?? Buffer.alloc(0)
    if (!isUtf8(bytes)) throw notWritten(`${path} is not UTF-8, so it cannot be edited`)
    const text = bytes.toString()
    const position = findLock(text, where)
    checkUnchanged(position, where, reviewed)
    const spec = fieldsOf(position.manifest['spec'])
    const change = changeOf(spec, reviewed)
    checkValid(applyChange(position.manifest, change))
    const next = editText(path, text, position, change)
    orNotWritten(() => refuseUnwritable(path, now))
    const isReplaced = await replaceFile(now, Buffer.from(next)).catch((error: unknown) => {
      throw notWritten(error instanceof GatehouseError ? error.message : systemReason(error))
    })
    if (!isReplaced) throw approvalStale()
  })
  return path
}

function findLock(text: string, where: SoughtLock): ManifestPosition {
  const [position, ...more] = findManifests(text, (manifest) => isWanted(manifest, where))
  if (!position || more.length > 0) throw approvalStale()
  return position
}

/** Throws APPROVAL_STALE when the item in the file differs from the reviewed item. */
function checkUnchanged(
  { manifest }: ManifestPosition,
  { lock, backend }: SoughtLock,
  { kind, name }: Reviewed,
): void {
  checkValid(manifest)
  const { spec } = withDefaults(manifest as { readonly kind: 'MCPToolLock' })
  const onDisk = runtimeToolLock(spec, backend, lock.name)
  const itemIn = (toolLock: input.RuntimeToolLock): unknown =>
    kind === 'instructions'
      ? toolLock.instructions
      : toolLock[memberOf[kind]]?.find((item) => item.name === name)
  // The round trip through JSON removes undefined members.
  const plain = (value: unknown): unknown =>
    value === undefined ? undefined : JSON.parse(JSON.stringify(value))
  if (!isDeepStrictEqual(plain(itemIn(onDisk)), plain(itemIn(lock)))) throw approvalStale()
}

function checkValid(manifest: unknown): void {
  const { violations } = validateResource(isFields(manifest) ? manifest : {})
  if (violations.length > 0) throw notWritten(`the lock would not be valid: ${formatViolations(violations)}`)
}

function approvalStale(): GatehouseError {
  return new GatehouseError('APPROVAL_STALE', {
    detail:
      'the file with the lock has changed since the review, and nothing was written. Wait until the server has loaded it, then review the difference again',
  })
}

function orNotWritten<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof GatehouseError && error.code === 'INVALID_CONFIG') throw notWritten(error.message)
    throw error
  }
}

/** Runs `work` while no other process or thread writes an approval to this file. */
async function withFileLock(target: string, work: () => Promise<void>): Promise<void> {
  const lockPath = join(dirname(target), `.${basename(target)}.approval`)
  acquire(lockPath)
  try {
    await work()
  } finally {
    try {
      rmSync(lockPath, { force: true })
    } catch {
      // The approval is written. The lock file will become stale.
    }
  }
}

function acquire(lockPath: string): void {
  try {
    const since = statSync(lockPath, { throwIfNoEntry: false })?.mtimeMs
    if (since !== undefined && Date.now() - since > abandonedMs) rmSync(lockPath, { force: true })
    closeSync(openSync(lockPath, 'wx', 0o600))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new GatehouseError('LOCK_NOT_WRITTEN', {
        detail: 'another approval is being written to this file: approve again',
      })
    throw notWritten(`cannot write to its folder: ${systemReason(error)}`)
  }
}
