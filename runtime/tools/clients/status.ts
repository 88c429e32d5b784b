import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import {
  type ClientId,
  clientRow,
  decodeText,
  entryAt,
  type Host,
  type Location,
  locationsOf,
  parseDocument,
} from '../../toolkit/clients/index.ts'
import { readFileOnDisk } from '../../toolkit/client-files/file.ts'
import { recordsFolder, upFolder } from '../../toolkit/client-files/host.ts'
import { ParkJournal } from '../../toolkit/client-files/park-journal.ts'
import { hashOfEntry, Records } from '../../toolkit/client-files/records.ts'

/**
 * absent: no entry. connected: the entry that `client add` or `up` wrote. differs: an entry with this name but
 * different contents. shadowed: another of the client's files takes precedence. unreadable: the file cannot be parsed.
 */
export type EntryState = 'absent' | 'connected' | 'differs' | 'shadowed' | 'unreadable'

export interface ClientStatus {
  readonly client: ClientId
  readonly scope: Location['scope']
  readonly file: string
  readonly exists: boolean
  readonly state: EntryState
  /** Names of the servers in the file. */
  readonly servers: readonly string[]
  /** The URL in the entry, if any. */
  readonly url: string | undefined
  /** The reason for the state `unreadable` or `shadowed`, or the command that connected the client. */
  readonly why: string | undefined
}

/** Records of the entries that Gatehouse wrote. */
interface WrittenEntries {
  readonly records: string
  readonly journal: ParkJournal
}

/** Returns one row per existing file, or a row for the user's file when none exists. */
export function statusOf(client: ClientId, name: string, host: Host): readonly ClientStatus[] {
  const written = { records: recordsFolder(host), journal: new ParkJournal(upFolder(host)) }
  const all = locationsOf(client, host)
  // In the home folder, the project's file is the user's file.
  const existing = all.filter(
    ({ file, key }, index) =>
      existsSync(file) &&
      all.findIndex((other) => other.file === file && isDeepStrictEqual(other.key, key)) === index,
  )
  const preferred = all.find(({ scope, row }) => scope === 'user' && !row.ifPresent)
  const rows = (existing.length > 0 ? existing : preferred ? [preferred] : []).map((location) =>
    rowOf(location, name, written),
  )
  return rows
    .filter((row, index) => row.servers.length > 0 || isFirstOfFile(rows, index))
    .map((row, _index, shown) => shadow(row, shown))
}

function isFirstOfFile(rows: readonly ClientStatus[], index: number): boolean {
  return rows.findIndex(({ file }) => file === rows[index]?.file) === index
}

function rowOf(location: Location, name: string, { records, journal }: WrittenEntries): ClientStatus {
  const { client, scope, file, key } = location
  const base = { client, scope, file, servers: [], url: undefined, why: undefined }
  try {
    const { bytes, target } = readFileOnDisk(file)
    if (!bytes) return { ...base, exists: false, state: 'absent' }
    const document = parseDocument(clientRow(client).format, decodeText(bytes, file).text, file)
    const map = entryAt(document, key)
    const servers = typeof map === 'object' && map !== null ? Object.keys(map) : []
    const entry = entryAt(document, [...key, name])
    if (entry === undefined) return { ...base, exists: true, state: 'absent', servers }
    const hash = hashOfEntry(entry)
    const found = { ...base, exists: true, servers, url: urlIn(entry) }
    if (journal.find({ target, file })?.entry === hash)
      return { ...found, state: 'connected', why: 'by gatehouse up; gatehouse down removes it' }
    const isOurs = new Records(records, target).read().some((record) => record.entry === hash)
    return { ...found, state: isOurs ? 'connected' : 'differs' }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { ...base, exists: true, state: 'unreadable', why }
  }
}

/** Returns the first URL in the entry: the entry's own URL, or an argument of the bridge program. */
function urlIn(entry: unknown): string | undefined {
  if (typeof entry === 'string') return /^https?:\/\//.test(entry) && URL.canParse(entry) ? entry : undefined
  if (typeof entry !== 'object' || entry === null) return undefined
  for (const value of Object.values(entry)) {
    const url = urlIn(value)
    if (url !== undefined) return url
  }
  return undefined
}

/** Scopes in the order of precedence that the clients use. */
const order: readonly Location['scope'][] = ['local', 'project', 'profile', 'user']

function shadow(row: ClientStatus, rows: readonly ClientStatus[]): ClientStatus {
  if (row.state !== 'connected') return row
  const winner = rows.find(
    (other) => other.state === 'differs' && order.indexOf(other.scope) < order.indexOf(row.scope),
  )
  return winner
    ? {
        ...row,
        state: 'shadowed',
        why: `${winner.file} has another entry with this name, which takes precedence`,
      }
    : row
}
