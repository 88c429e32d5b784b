/**
 * Approvals in the manifests of `gatehouse dev`: the lock is found in its files at the time of the approval, changed and
 * put in place at once. The running server takes it up as any edit.
 *
 * What is in force must be what the file says: a file that somebody has edited since is left alone. One approval at a
 * time writes a file, whatever process or thread it comes from; what anybody writes meanwhile is not overwritten.
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
import { changed, changeOf, memberOf, type Reviewed } from './change.ts'
import { edited, notWritten, type Place, placesIn } from './edit.ts'

/** Where a lock is to be found. */
export interface SoughtLock {
  /** Files and folders with manifests. */
  readonly paths: readonly string[]
  readonly namespace: string
  readonly backend: string
  /** The lock in force. */
  readonly lock: input.RuntimeToolLock
}

/** Longer than any approval takes: what is older was left behind. */
const abandonedMs = 60_000

/** The file that holds the lock. Throws LOCK_NOT_WRITTEN when there is none, or more than one. */
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
    throw notWritten('the manifests were read from standard input: change the lock where they come from')
  if (file === undefined)
    throw notWritten(`there is no MCPToolLock ${name} in the files any more: read the difference again`)
  if (found > 1) throw notWritten(`the files have several MCPToolLocks ${name}: edit the right one by hand`)
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

/** Writes the approval; the file that it stands in. Throws APPROVAL_STALE or LOCK_NOT_WRITTEN, and has changed nothing then. */
export async function approveInFile(where: SoughtLock, reviewed: Reviewed): Promise<string> {
  const path = fileOfLock(where)
  const file = told(() => readFileOnDisk(path))
  await alone(file.target, async () => {
    const now = told(() => readFileOnDisk(path))
    const bytes = now.bytes ?? Buffer.alloc(0)
    if (!isUtf8(bytes)) throw notWritten(`${path} is not UTF-8: nothing of it is written again`)
    const text = bytes.toString()
    const place = onlyPlace(text, where)
    checkUnchanged(place, where, reviewed)
    const spec = fieldsOf(place.manifest['spec'])
    const change = changeOf(spec, reviewed)
    checkValid(changed(place.manifest, change))
    const next = edited(path, text, place, change)
    told(() => refuseUnwritable(path, now))
    if (!told(() => readFileOnDisk(path)).bytes?.equals(bytes)) throw movedOn()
    await replaceFile(now, Buffer.from(next)).catch((error: unknown) => {
      throw notWritten(error instanceof GatehouseError ? error.message : systemReason(error))
    })
  })
  return path
}

function onlyPlace(text: string, where: SoughtLock): Place {
  const [place, ...more] = placesIn(text, (manifest) => isWanted(manifest, where))
  if (!place || more.length > 0) throw movedOn()
  return place
}

/** What the file says of the item must be what the reviewer saw the difference from. */
function checkUnchanged({ manifest }: Place, { lock, backend }: SoughtLock, { kind, name }: Reviewed): void {
  checkValid(manifest)
  const { spec } = withDefaults(manifest as { readonly kind: 'MCPToolLock' })
  const onDisk = runtimeToolLock(spec, backend, lock.name)
  const of = (one: input.RuntimeToolLock): unknown =>
    kind === 'instructions' ? one.instructions : one[memberOf[kind]]?.find((item) => item.name === name)
  // Through JSON, where a member that is undefined is none.
  const plain = (value: unknown): unknown =>
    value === undefined ? undefined : JSON.parse(JSON.stringify(value))
  if (!isDeepStrictEqual(plain(of(onDisk)), plain(of(lock)))) throw movedOn()
}

function checkValid(manifest: unknown): void {
  const { violations } = validateResource(isFields(manifest) ? manifest : {})
  if (violations.length > 0) throw notWritten(`the lock would not be valid: ${formatViolations(violations)}`)
}

function movedOn(): GatehouseError {
  return new GatehouseError('APPROVAL_STALE', {
    detail:
      'the file with the lock says something else by now: nothing was written. Wait until the server has taken it up, and read the difference again',
  })
}

function told<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof GatehouseError && error.code === 'INVALID_CONFIG') throw notWritten(error.message)
    throw error
  }
}

/** Nobody else approves into this file while `work` runs. */
async function alone(target: string, work: () => Promise<void>): Promise<void> {
  const mark = join(dirname(target), `.${basename(target)}.approval`)
  take(mark)
  try {
    await work()
  } finally {
    rmSync(mark, { force: true })
  }
}

function take(mark: string): void {
  try {
    const since = statSync(mark, { throwIfNoEntry: false })?.mtimeMs
    if (since !== undefined && Date.now() - since > abandonedMs) rmSync(mark, { force: true })
    closeSync(openSync(mark, 'wx', 0o600))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new GatehouseError('LOCK_NOT_WRITTEN', {
        detail: 'another approval is written into this file right now: approve again',
      })
    throw notWritten(`its folder cannot be written: ${systemReason(error)}`)
  }
}
