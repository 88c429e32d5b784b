/**
 * Adds the gateway's entry to a client's file, removes it, and takes the last operation back.
 *
 * Each operation reads the file, works out the edit, and replaces the file under a lock only if it still is what was
 * read; else it starts again. Only our own entry is touched: one that was not written here needs `replace`.
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
  /** Name of the entry. */
  readonly name: string
  /** Folder of records. */
  readonly records: string
  /** Works on an entry of that name that was not written here, or was changed since. */
  readonly replace: boolean
  /** Works out the edit and writes nothing. */
  readonly dryRun: boolean
  /** With undo: only this operation is taken back, and nothing when others followed it. Hash of the entry that it wrote. */
  readonly wrote?: string
  readonly now: () => Date
  /** Called as the work goes on. */
  readonly onStep?: (step: OperationStep) => void
}

export type OperationStep = 'read' | 'recorded' | 'written' | 'replaced'

export interface Done {
  /** `none`: the file is as it should be. */
  readonly outcome: 'changed' | 'created' | 'removed' | 'none'
  /** The text before, and what was changed in it. */
  readonly text: string
  readonly changes: readonly TextChange[]
  readonly backup: string | undefined
}

/** What an operation makes of the file as it is. */
interface Plan {
  /** Undefined: the file goes. */
  readonly text: FileText | undefined
  readonly changes: readonly TextChange[]
  /** The records from then on, without the one of this operation. */
  readonly records: readonly FileRecord[]
  /** What is recorded of this operation; undefined when it takes one back. */
  readonly record?: FileRecord
}

interface Current {
  readonly text: FileText
  readonly path: readonly string[]
  readonly records: readonly FileRecord[]
  readonly hash: string | null
}

export function addEntry(operation: FileOperation, entry: Readonly<Record<string, unknown>>): Promise<Done> {
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
    return planned(operation, current, edit, { action: 'add', entry: hashOfEntry(entry), made: made.length })
  })
}

export function removeEntry(operation: FileOperation): Promise<Done> {
  return run(operation, (current) => {
    const { text, path, records } = current
    const present = entryAt(parse(operation, text), path)
    if (present === undefined) return undefined
    refuseForeign(operation, current, present)
    const exact = rewound(operation, current)
    if (exact) return exact
    const made = Math.max(0, ...records.filter((one) => isAt(one, path)).map((one) => one.made))
    const edit = dropEntry(target(operation, text, path), made)
    return planned(operation, current, edit, { action: 'remove', entry: hashOfEntry(present), made: 0 })
  })
}

/** Takes back the last operation on the entry: exactly, or its entry alone when the file was changed since. */
export function undoOperation(operation: FileOperation): Promise<Done> {
  return run(operation, (current) => {
    const { text, path, records, hash } = current
    const last = records.findLast((one) => isAt(one, path))
    if (operation.wrote !== undefined && last?.entry !== operation.wrote) return undefined
    if (!last)
      throw invalidConfig(`${operation.location.file}: nothing was done there that could be taken back`)
    const left = records.filter((one) => one !== last)
    if (last.after === hash) return stepBack(text, last, left)
    const present = entryAt(parse(operation, text), path)
    const isOurs =
      last.action === 'add'
        ? present !== undefined && hashOfEntry(present) === last.entry
        : present === undefined
    if (!isOurs && !operation.replace) {
      throw invalidConfig(
        `${operation.location.file}: the entry was changed since; --replace takes the operation back nevertheless`,
      )
    }
    const former = formerEntry(operation, last, path)
    const edit = isFields(former)
      ? putEntry(target(operation, text, path), former)
      : dropEntry(target(operation, text, path), last.made)
    return { text: { ...text, text: edit.text }, changes: edit.changes, records: left }
  })
}

/** Three times: a client may write its file at any moment. */
const tries = 3

async function run(operation: FileOperation, plan: (current: Current) => Plan | undefined): Promise<Done> {
  const { location, now } = operation
  for (let attempt = 0; attempt < tries; attempt++) {
    const disk = readFileOnDisk(location.file)
    refuseUnwritable(location.file, disk)
    operation.onStep?.('read')
    const store = new Records(operation.records, disk.target)
    const text = decodeText(disk.bytes ?? new Uint8Array(), location.file)
    const path = [...location.key, operation.name]
    const planned = plan({ text, path, records: store.read(), hash: hashOfBytes(disk.bytes) })
    if (!planned) return { outcome: 'none', text: text.text, changes: [], backup: undefined }
    const done = { text: text.text, changes: planned.changes }
    const outcome = planned.text === undefined ? 'removed' : disk.bytes === undefined ? 'created' : 'changed'
    if (operation.dryRun) return { ...done, outcome, backup: undefined }
    const result = await told(operation.records, () =>
      store.locked(async () => {
        if (hashOfBytes(readFileOnDisk(location.file).bytes) !== hashOfBytes(disk.bytes)) return undefined
        const backup = disk.bytes && store.backup(disk.bytes, now())
        const record = planned.record && { ...planned.record, backup: backup ?? null }
        store.write([...planned.records, ...(record ? [record] : [])])
        operation.onStep?.('recorded')
        if (planned.text === undefined) removeFile(disk)
        else if (!(await replaceFile(disk, encodeText(planned.text), operation.onStep))) return undefined
        return { ...done, outcome, backup } as const
      }),
    )
    if (result) return result
  }
  throw invalidConfig(`${location.file} was changed by another program three times meanwhile; try again`)
}

/** An error of our own folder is told like one of the client's file; nothing has been replaced then. */
async function told<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof GatehouseError) throw error
    throw invalidConfig(`the records in ${folder} cannot be written: ${systemReason(error)}`)
  }
}

/**
 * Goes back over our own additions as long as the file is what they left, to before the first: byte for byte. Undefined
 * when the file was changed by others since.
 */
function rewound(operation: FileOperation, current: Current): Plan | undefined {
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
  const plan = planned(operation, current, edit, {
    action: 'remove',
    entry: hashOfEntry(present),
    made: 0,
    after: hash,
  })
  return hash === null ? { ...plan, text: undefined } : plan
}

function stepBack(text: FileText, record: FileRecord, records: readonly FileRecord[]): Plan {
  const changes = invertChanges(record.changes)
  const before = { ...text, text: applyChanges(text.text, changes) }
  return { text: record.before === null ? undefined : before, changes, records }
}

/** `after` is the hash of the whole file, where it is known to differ from that of the edit's text. */
function planned(
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

/** The entry as it stood before an operation, from the backup. */
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
  // A file that was made for the entry had none before.
  if (action === 'add' && backup === null) return undefined
  throw invalidConfig(`${location.file}: the backup from before is gone, so the entry cannot be put back`)
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
    `${location.file}: "${name}" is there already and was not written by gatehouse, or was changed since; ` +
      'choose another --name, or say --replace',
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
