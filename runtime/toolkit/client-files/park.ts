/**
 * Replaces servers in a client's file with the gateway's entry, and restores the file.
 *
 * The removed entries and the original bytes are written to the journal before the file is replaced. A process that is
 * killed at any point leaves either the original file or a file that the journal can restore.
 */
import {
  clientRow,
  decodeText,
  dropEntry,
  encodeText,
  entryAt,
  type FileText,
  type Location,
  parseDocument,
  putEntry,
  serverMapKeys,
} from '../clients/index.ts'
import { invalidConfig, isFields } from '../../../schemas/index.ts'
import {
  type FileOnDisk,
  isUnchanged,
  readFileOnDisk,
  refuseUnwritable,
  removeFile,
  removeLeftovers,
  replaceFile,
} from './file.ts'
import type { ParkedEntry, ParkedFile, ParkJournal } from './park-journal.ts'
import { hashOfBytes, hashOfEntry, Records } from './records.ts'

export interface ParkOptions {
  readonly journal: ParkJournal
  /** Folder with the records of `gatehouse client`, whose lock excludes other changes to the file. */
  readonly records: string
  /** Name of the gateway's entry. */
  readonly name: string
  /** Called at each step. */
  readonly onStep?: ((step: ParkStep) => void) | undefined
}

export type ParkStep = 'read' | 'recorded' | 'written' | 'replaced' | 'forgotten'

/** A client's file as it would be without the gateway: current servers, and the servers that are parked. */
export interface OriginalFile {
  readonly disk: FileOnDisk
  readonly text: FileText
  /** False if the file would not exist without the gateway's entry. */
  readonly exists: boolean
  /** Undefined when the file is not parked. */
  readonly parked: ParkedFile | undefined
  /**
   * Differences from the original file that restoring does not undo. Empty when nothing has changed since the file was
   * parked.
   */
  readonly notes: readonly string[]
}

type Entry = Readonly<Record<string, unknown>>
type ParkTarget = Pick<Location, 'client' | 'file' | 'key'>

/** Reads a file, and reverses the journal's change in memory. */
export function readOriginal(
  { client, file }: Pick<Location, 'client' | 'file'>,
  journal: ParkJournal,
): OriginalFile {
  const disk = readFileOnDisk(file)
  const parked = journal.find({ target: disk.target, file })
  const text = decodeText(disk.bytes ?? new Uint8Array(), file)
  const hash = hashOfBytes(disk.bytes)
  if (!parked || hash === parked.before) {
    return { disk, text, exists: disk.bytes !== undefined, parked, notes: [] }
  }
  if (disk.bytes === undefined || parked.after.includes(hash ?? '')) {
    const bytes = journal.original(parked)
    const notes = disk.bytes === undefined ? ['the file was deleted'] : []
    return {
      disk,
      text: decodeText(bytes ?? new Uint8Array(), file),
      exists: bytes !== undefined,
      parked,
      notes,
    }
  }
  const merged = mergeParked(text, parked, { format: clientRow(client).format, file })
  return { disk, exists: true, parked, ...merged }
}

/** Removes the gateway's entry from a changed file, and adds the parked entries that are absent. */
function mergeParked(
  text: FileText,
  parked: ParkedFile,
  { format, file }: { readonly format: 'json' | 'toml' | 'yaml'; readonly file: string },
): Pick<OriginalFile, 'text' | 'notes'> {
  const target = (path: readonly string[], current: string) => ({ format, text: current, path, file })
  const notes: string[] = []
  let edited = text.text
  const present = entryAt(parseDocument(format, edited, file), parked.path)
  if (present !== undefined && hashOfEntry(present) === parked.entry) {
    edited = dropEntry(target(parked.path, edited), parked.made).text
  } else if (present !== undefined) notes.push(`kept "${parked.path.at(-1)}", which has changed`)
  for (const { path, value } of parked.entries) {
    const name = path.at(-1) ?? ''
    if (entryAt(parseDocument(format, edited, file), path) !== undefined) notes.push(`kept the new "${name}"`)
    else if (isFields(value)) edited = putEntry(target(path, edited), value).text
  }
  return { text: { ...text, text: edited }, notes }
}

/** The text of a file with the gateway's entry instead of the parked entries. */
export interface ParkPlan {
  readonly path: readonly string[]
  readonly entries: readonly ParkedEntry[]
  readonly made: number
  readonly text: FileText
}

/** Computes the change. Throws INVALID_CONFIG when the file cannot be edited safely. */
export function planPark(
  { client, file, key }: ParkTarget,
  { text }: Pick<OriginalFile, 'text'>,
  {
    name,
    entry,
    servers,
  }: { readonly name: string; readonly entry: Entry; readonly servers: readonly string[] },
): ParkPlan {
  const { format } = clientRow(client)
  const document = parseDocument(format, text.text, file)
  const keys = serverMapKeys(client, document)
  const ownKey = keys.find((candidate) => isFields(entryAt(document, candidate))) ?? key
  const path = [...ownKey, name]
  const entries = keys.flatMap((map) =>
    [...new Set([...servers, name])].flatMap((server) => {
      const value = entryAt(document, [...map, server])
      return value === undefined ? [] : [{ path: [...map, server], value }]
    }),
  )
  const made = path.slice(0, -1).filter((_name, at) => entryAt(document, path.slice(0, at + 1)) === undefined)
  let edited = text.text
  for (const parked of entries) edited = dropEntry({ format, text: edited, path: parked.path, file }).text
  edited = putEntry({ format, text: edited, path, file }, entry).text
  return { path, entries, made: made.length, text: { ...text, text: edited } }
}

/**
 * Replaces the servers in the client's file with the gateway's entry. Resolves to false when the file already has this
 * content. Rejects with INVALID_CONFIG when the file must not be replaced.
 */
export async function parkServers(
  location: ParkTarget,
  what: { readonly entry: Entry; readonly servers: readonly string[] },
  options: ParkOptions,
): Promise<boolean> {
  const { journal, name, onStep = () => {} } = options
  return changeFile(location, options, async (original) => {
    const { disk, text, exists, parked } = original
    const plan = planPark(location, original, { name, ...what })
    const bytes = encodeText(plan.text)
    if (parked && hashOfBytes(bytes) === hashOfBytes(disk.bytes)) return false
    const record: ParkedFile = {
      client: location.client,
      file: location.file,
      target: disk.target,
      path: plan.path,
      entry: hashOfEntry(what.entry),
      made: plan.made,
      entries: plan.entries,
      before: exists ? hashOfBytes(encodeText(text)) : null,
      // Until the file is replaced, it has its previous content.
      after: [hashOfBytes(bytes) ?? '', ...(parked ? [hashOfBytes(disk.bytes) ?? ''] : [])],
    }
    const former = parked && journal.original(parked)
    journal.put(record, exists ? encodeText(text) : undefined)
    onStep('recorded')
    if (isSameFile(location, disk) && (await replaceFile(disk, bytes, onStep))) return true
    if (parked) journal.put(parked, former)
    else journal.remove(record)
    return undefined
  })
}

/** The outcome of a restore. */
export interface RestoredFile {
  /** unchanged: the file was not replaced. exact: it has its original bytes. merged: only our change was reversed. */
  readonly outcome: 'unchanged' | 'exact' | 'merged'
  readonly notes: readonly string[]
}

/** Restores a parked file, and removes it from the journal. */
export async function restoreServers(parked: ParkedFile, options: ParkOptions): Promise<RestoredFile> {
  const { journal, onStep = () => {} } = options
  return changeFile(parked, options, async ({ disk, text, exists, notes }) => {
    const wanted = encodeText(text)
    const hash = hashOfBytes(wanted)
    const isSame = hash === hashOfBytes(disk.bytes)
    onStep('read')
    if (!isSameFile(parked, disk)) return undefined
    removeLeftovers(disk.target)
    if (!exists) {
      if (disk.bytes && !removeFile(disk)) return undefined
    } else if (!isSame && !(await replaceFile(disk, wanted, onStep))) return undefined
    onStep('replaced')
    journal.remove(parked)
    onStep('forgotten')
    if (!exists || (hash === parked.before && !isSame)) return { outcome: 'exact', notes }
    return { outcome: isSame ? 'unchanged' : 'merged', notes }
  })
}

/** Returns false when another program has changed the file or its symbolic link since it was read. */
function isSameFile({ file }: Pick<Location, 'file'>, read: FileOnDisk): boolean {
  return readFileOnDisk(file).target === read.target && isUnchanged(read)
}

/** Maximum number of attempts, because a client may write its file at any moment. */
const maxAttempts = 3

/** Runs `change` under the file's lock. Retries when `change` returns undefined. */
async function changeFile<T>(
  at: Pick<Location, 'client' | 'file'>,
  { journal, records }: ParkOptions,
  change: (original: OriginalFile) => Promise<T | undefined>,
): Promise<T> {
  const { target } = readFileOnDisk(at.file)
  return new Records(records, target).locked(async () => {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const original = readOriginal(at, journal)
      refuseUnwritable(at.file, original.disk)
      const result = await change(original)
      if (result !== undefined) return result
    }
    throw invalidConfig(`${at.file} was changed by another program during each of three attempts; try again`)
  })
}
