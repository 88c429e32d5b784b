/**
 * The journal of parked files: each file that `gatehouse up` changed, with the entries that it removed and the file's
 * original bytes. Parked entries contain secrets, so only the owner can read the journal.
 */
import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { hash } from 'node:crypto'
import { invalidConfig, isFields } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import type { ClientId } from '../clients/index.ts'
import { flushFolder, writeDurably } from './file.ts'

export interface ParkedEntry {
  /** Keys from the top of the document to the entry. */
  readonly path: readonly string[]
  readonly value: unknown
}

export interface ParkedFile {
  readonly client: ClientId
  readonly file: string
  /** The path with its links resolved. */
  readonly target: string
  /** Keys from the top of the document to the gateway's entry. */
  readonly path: readonly string[]
  /** Hash of the gateway's entry. */
  readonly entry: string
  /** Number of empty maps that were created on the path to the entry. */
  readonly made: number
  readonly entries: readonly ParkedEntry[]
  /** Hash of the original file. Null when the file did not exist. */
  readonly before: string | null
  /** Hashes of the contents that Gatehouse wrote, newest first. */
  readonly after: readonly string[]
}

const fileName = 'parked.json'

export class ParkJournal {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Throws INVALID_CONFIG when the journal is damaged, because its files could no longer be restored. */
  read(): readonly ParkedFile[] {
    const path = join(this.#folder, fileName)
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw invalidConfig(`cannot read ${path}: ${systemReason(error)}`)
    }
    try {
      const parsed: unknown = JSON.parse(text)
      if (isFields(parsed) && Array.isArray(parsed['files'])) return parsed['files'] as ParkedFile[]
    } catch {
      // Text that is not JSON causes the same error as JSON with an unexpected structure.
    }
    throw invalidConfig(`${path} is damaged; restore the clients’ files from ${this.#originals}`)
  }

  /** Also finds a file that has since moved behind a symbolic link, or whose link now has another target. */
  find({ target, file }: Pick<ParkedFile, 'target' | 'file'>): ParkedFile | undefined {
    const files = this.read()
    return files.find((parked) => parked.target === target) ?? files.find((parked) => parked.file === file)
  }

  /** Records a file before it is changed, with its original bytes. Undefined when the file does not exist. */
  put(record: ParkedFile, original: Uint8Array | undefined): void {
    const former = this.find(record)
    if (original) this.#write(this.#originalOf(record), original)
    this.#save([
      ...this.read().filter(({ target }) => ![record.target, former?.target].includes(target)),
      record,
    ])
    if (former && this.#originalOf(former) !== this.#originalOf(record))
      rmSync(this.#originalOf(former), { force: true })
  }

  /** Removes a restored file from the journal. */
  remove(record: ParkedFile): void {
    this.#save(this.read().filter(({ target }) => target !== record.target))
    rmSync(this.#originalOf(record), { force: true })
  }

  /** Returns the file's original bytes. Undefined when the file did not exist. */
  original(parked: ParkedFile): Buffer | undefined {
    if (parked.before === null) return undefined
    try {
      return readFileSync(this.#originalOf(parked))
    } catch (error) {
      throw invalidConfig(`cannot read the original of ${parked.file}: ${systemReason(error)}`)
    }
  }

  get #originals(): string {
    return join(this.#folder, 'originals')
  }

  /** 96 bits are enough for one user's files. */
  #originalOf({ target, before }: ParkedFile): string {
    return join(this.#originals, `${hash('sha256', `${target}\n${before}`, 'hex').slice(0, 24)}.original`)
  }

  #save(files: readonly ParkedFile[]): void {
    this.#write(join(this.#folder, fileName), Buffer.from(JSON.stringify({ version: 1, files })))
  }

  #write(path: string, bytes: Uint8Array): void {
    mkdirSync(this.#originals, { recursive: true, mode: 0o700 })
    const draft = `${path}.tmp`
    rmSync(draft, { force: true })
    writeDurably(draft, bytes)
    renameSync(draft, path)
    flushFolder(dirname(path))
  }
}
