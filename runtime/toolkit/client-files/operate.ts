/**
 * Adds the gateway's entry to a client's file, removes it, and undoes the last operation.
 *
 * Each operation reads the file, computes the edit, and replaces the file under a lock if it is unchanged; otherwise it
 * retries. An operation changes only entries that Gatehouse wrote, unless `replace` is set.
 */
import {
  applyChanges,
  type TextChange,
  clientRow,
  decodeText,
  dropEntry,
  type Edit,
  type EditTarget,
  encodeText,
  entryAt,
  type FileText,
  invertChanges,
  type Location,
  parseDocument,
  putEntry,
} from '../clients/index.ts'
import { readFileOnDisk, refuseUnwritable, removeFile, replaceFile } from './file.ts'
import { GatehouseError, isFields, invalidConfig } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import { type FileRecord, hashOfBytes, hashOfEntry, Records } from './records.ts'

export interface FileOperation {
  readonly location: Location
  /** Entry name. */
  readonly name: string
  /** Folder that contains the records. */
  readonly records: string
  /** Also changes an entry with this name that Gatehouse did not write or that has changed since. */
  readonly replace: boolean
  /** Computes the edit without writing it. */
  readonly dryRun: boolean
  /**
   * For undo: the hash of the entry that the operation wrote. Undo does nothing if the entry has been changed by a
   * later operation.
   */
  readonly wrote?: string
  readonly now: () => Date
  /** Called at each step of the operation. */
  readonly onStep?: (step: OperationStep) => void
}

export type OperationStep = 'read' | 'recorded' | 'written' | 'replaced'

export interface OperationResult {
  /** `none`: the file needs no change. */
  readonly outcome: 'changed' | 'created' | 'removed' | 'none'
  /** The original text, and the changes to it. */
  readonly text: string
  readonly changes: readonly TextChange[]
  readonly backup: string | undefined
}

/** The computed result of an operation. */
interface Plan {
  /** Undefined when the file should be removed. */
  readonly text: FileText | undefined
  readonly changes: readonly TextChange[]
  /** All records to keep, except this operation's record. */
  readonly records: readonly FileRecord[]
  /** This operation's record. Undefined for undo. */
  readonly record?: FileRecord
}

interface Current {
  readonly text: FileText
  readonly path: readonly string[]
  readonly records: readonly FileRecord[]
  readonly hash: string | null
}

export function addEntry(
  operation: FileOperation,
  entry: Readonly<Record<string, unknown>>,
): Promise<OperationResult> {
  return run(operation, (current) => {
    const { text, path } = current
    const document = parse(operation, text)
    const present = entryAt(document, path)
    if (present !== undefined && hashOfEntry(present) === hashOfEntry(entry)) return undefined
    refuseForeign(operation, current, present)
    const edit = putEntry(target(operation, text, path), entry)
    const made = path
      .slice(0, -1)
      .filter((_name, index) => entryAt(document, path.slice(0, index + 1)) === undefined)
    return makePlan(operation, current, edit, { action: 'add', entry: hashOfEntry(entry), made: made.length })
  })
}

export function removeEntry(operation: FileOperation): Promise<OperationResult> {
  return run(operation, (current) => {
    const { text, path, records } = current
    const present = entryAt(parse(operation, text), path)
    if (present === undefined) return undefined
    refuseForeign(operation, current, present)
    const exact = planRewind(operation, current)
    if (exact) return exact
    const made = Math.max(0, ...records.filter((record) => isAt(record, path)).map((record) => record.made))
    const edit = dropEntry(target(operation, text, path), made)
    return makePlan(operation, current, edit, { action: 'remove', entry: hashOfEntry(present), made: 0 })
  })
}

/** Undoes the last operation on the entry: restores the whole file, or only the entry if the file has changed since. */
export function undoOperation(operation: FileOperation): Promise<OperationResult> {
  return run(operation, (current) => {
    const { text, path, records, hash } = current
    const last = records.findLast((record) => isAt(record, path))
    if (operation.wrote !== undefined && last?.entry !== operation.wrote) return undefined
    if (!last) throw invalidConfig(`${operation.location.file}: there is no change to undo`)
    const remaining = records.filter((record) => record !== last)
    if (last.after === hash) return planStepBack(text, last, remaining)
    const present = entryAt(parse(operation, text), path)
    const isOurs =
      last.action === 'add'
        ? present !== undefined && hashOfEntry(present) === last.entry
        : present === undefined
    if (!isOurs && !operation.replace) {
      throw invalidConfig(
        `${operation.location.file}: the entry has changed since; use --replace to undo the operation anyway`,
      )
    }
    const former = formerEntry(operation, last, path)
    const edit = isFields(former)
      ? putEntry(target(operation, text, path), former)
      : dropEntry(target(operation, text, path), last.made)
    return { text: { ...text, text: edit.text }, changes: edit.changes, records: remaining }
  })
}

/** Maximum number of attempts, because a client may write its file at any moment. */
const maxAttempts = 3

async function run(
  operation: FileOperation,
  plan: (current: Current) => Plan | undefined,
): Promise<OperationResult> {
  const { location, now } = operation
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const disk = readFileOnDisk(location.file)
    refuseUnwritable(location.file, disk)
    operation.onStep?.('read')
    const store = new Records(operation.records, disk.target)
    const text = decodeText(disk.bytes ?? new Uint8Array(), location.file)
    const path = [...location.key, operation.name]
    const planned = plan({ text, path, records: store.read(), hash: hashOfBytes(disk.bytes) })
    if (!planned) return { outcome: 'none', text: text.text, changes: [], backup: undefined }
    const edit = { text: text.text, changes: planned.changes }
    const outcome = planned.text === undefined ? 'removed' : disk.bytes === undefined ? 'created' : 'changed'
    if (operation.dryRun) return { ...edit, outcome, backup: undefined }
    const result = await withRecordErrors(operation.records, () =>
      store.locked(async () => {
        if (hashOfBytes(readFileOnDisk(location.file).bytes) !== hashOfBytes(disk.bytes)) return undefined
        const before = store.read()
        const backup = disk.bytes && store.backup(disk.bytes, now())
        const record = planned.record && { ...planned.record, backup: backup ?? null }
        store.write([...planned.records, ...(record ? [record] : [])])
        operation.onStep?.('recorded')
        const isDone =
          planned.text === undefined
            ? removeFile(disk)
            : await replaceFile(disk, encodeText(planned.text), operation.onStep)
        if (isDone) return { ...edit, outcome, backup } as const
        store.write(before)
        return undefined
      }),
    )
    if (result) return result
  }
  throw invalidConfig(
    `${location.file} was changed by another program during each of three attempts; try again`,
  )
}

/** Converts an error in the records folder to INVALID_CONFIG. In that case, the client's file is unchanged. */
async function withRecordErrors<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof GatehouseError) throw error
    throw invalidConfig(`cannot write the records in ${folder}: ${systemReason(error)}`)
  }
}

/**
 * Undoes Gatehouse's consecutive additions and restores the file as it was before the first addition, byte for byte.
 * Returns undefined if another program has changed the file since.
 */
function planRewind(operation: FileOperation, current: Current): Plan | undefined {
  const { text, path, records } = current
  let before = text.text
  let hash = current.hash
  const backwards: (readonly TextChange[])[] = []
  for (const record of records.toReversed()) {
    if (record.action !== 'add' || record.after !== hash || !isAt(record, path)) break
    const changes = invertChanges(record.changes)
    before = applyChanges(before, changes)
    hash = record.before
    backwards.push(changes)
  }
  const [first, second] = backwards
  if (!first || (hash !== null && hashOfBytes(encodeText({ ...text, text: before })) !== hash))
    return undefined
  const changes = second ? [{ offset: 0, removed: text.text, inserted: before }] : first
  const present = entryAt(parse(operation, text), path)
  const edit = { changes, text: before }
  const plan = makePlan(operation, current, edit, {
    action: 'remove',
    entry: hashOfEntry(present),
    made: 0,
    after: hash,
  })
  return hash === null ? { ...plan, text: undefined } : plan
}

function planStepBack(text: FileText, record: FileRecord, records: readonly FileRecord[]): Plan {
  const changes = invertChanges(record.changes)
  const before = { ...text, text: applyChanges(text.text, changes) }
  return { text: record.before === null ? undefined : before, changes, records }
}

/** `after` is the resulting file's hash if it differs from the hash of the edited text. */
function makePlan(
  { location, now }: FileOperation,
  { text, path, records, hash }: Current,
  { changes, text: edited }: Edit,
  what: {
    readonly action: FileRecord['action']
    readonly entry: string
    readonly made: number
    readonly after?: string | null
  },
): Plan {
  const next = { ...text, text: edited }
  const after = what.after === undefined ? hashOfBytes(encodeText(next)) : what.after
  const record: FileRecord = {
    client: location.client,
    action: what.action,
    path,
    entry: what.entry,
    made: what.made,
    changes,
    before: hash,
    after,
    backup: null,
    at: now().toISOString(),
  }
  return { text: next, changes, records, record }
}

/** Returns the entry as it was before an operation, read from the backup. */
function formerEntry(
  { location }: FileOperation,
  { action, backup }: FileRecord,
  path: readonly string[],
): unknown {
  const bytes = backup === null ? undefined : readFileOnDisk(backup).bytes
  if (bytes) {
    const { text } = decodeText(bytes, backup ?? '')
    return entryAt(parseDocument(clientRow(location.client).format, text, location.file), path)
  }
  // A file that was created for the entry had no previous entry.
  if (action === 'add' && backup === null) return undefined
  throw invalidConfig(`${location.file}: the backup is missing, so the entry cannot be restored`)
}

function refuseForeign(
  { location, name, replace }: FileOperation,
  { records, path }: Current,
  present: unknown,
): void {
  if (present === undefined || replace) return
  const hash = hashOfEntry(present)
  if (records.some((record) => isAt(record, path) && record.action === 'add' && record.entry === hash)) return
  throw invalidConfig(
    `${location.file}: "${name}" already exists and was not written by gatehouse, or has changed since; ` +
      'choose another --name, or use --replace',
  )
}

function isAt(record: FileRecord, path: readonly string[]): boolean {
  return record.path.length === path.length && record.path.every((name, index) => name === path[index])
}

function parse({ location }: FileOperation, { text }: FileText): Readonly<Record<string, unknown>> {
  return parseDocument(clientRow(location.client).format, text, location.file)
}

function target({ location }: FileOperation, { text }: FileText, path: readonly string[]): EditTarget {
  return { format: clientRow(location.client).format, text, path, file: location.file }
}
