/**
 * Writes and reads MCPB archives, which are zip files.
 *
 * Archives come from third parties. `readArchive` rejects names outside the folder, links, encrypted entries, names that
 * occur twice, and archives that are too large or expand too much. The bounds apply to the declared sizes, and a file
 * that is larger than its declared size is an error.
 */
import { buffer } from 'node:stream/consumers'
import { type Entry, fromBufferPromise, validateFileName } from 'yauzl'
import { ZipFile } from 'yazl'
import { invalidConfig } from '../../../schemas/index.ts'
import type { BundleFile } from './manifest.ts'

/** Maximum size of an archive in bytes. */
export const maxArchiveBytes = 128 * 1024 * 1024
const maxEntries = 20_000
const maxNameLength = 512
const maxTotalBytes = 512 * 1024 * 1024
/** Maximum size of an unpacked file, relative to its size in the archive. */
const maxRatio = 200
/** Files up to this size may have any ratio. */
const smallBytes = 1024 * 1024

/**
 * Returns the archive. The same files produce the same bytes on every machine: files are stored without compression, and
 * the time is fixed. A zip file contains local time, so the fixed time is a local time too.
 */
export async function writeArchive(files: readonly BundleFile[]): Promise<Buffer> {
  const zip = new ZipFile()
  const options = { mtime: new Date(1980, 0, 1), mode: 0o100644, compress: false, forceDosTimestamp: true }
  for (const { path, text } of files) zip.addBuffer(Buffer.from(text), path, options)
  zip.end()
  return buffer(zip.outputStream)
}

export interface UnpackedFile {
  readonly path: string
  readonly size: number
  readonly isExecutable: boolean
  readonly read: () => Promise<Buffer>
}

/** Returns the files of an archive. The entries have passed all checks. Rejects with INVALID_CONFIG. */
export async function readArchive(archive: Buffer): Promise<readonly UnpackedFile[]> {
  const zip = await openArchive(archive)
  const entries: Entry[] = []
  const names = new Set<string>()
  const folders = new Set<string>()
  let total = 0
  try {
    if (zip.entryCount > maxEntries) throw invalidConfig(`the archive has more than ${maxEntries} entries`)
    for await (const entry of zip.eachEntry()) {
      const problem = entryProblem(entry)
      if (problem !== undefined) throw invalidConfig(`${shown(entry)}: ${problem}`)
      // Some file systems ignore case and Unicode normalization.
      const key = entry.fileName.replace(/\/$/, '').normalize('NFC').toLowerCase()
      if (names.has(key)) throw invalidConfig(`${shown(entry)}: the name occurs twice`)
      names.add(key)
      for (let end = key.lastIndexOf('/'); end > 0; end = key.lastIndexOf('/', end - 1)) {
        const parent = key.slice(0, end)
        if (folders.has(parent)) break
        folders.add(parent)
      }
      if (folders.size > maxEntries) throw invalidConfig(`the archive has more than ${maxEntries} folders`)
      total += entry.uncompressedSize
      if (total > maxTotalBytes)
        throw invalidConfig(`the files are larger than ${maxTotalBytes / 1024 / 1024} MiB in total`)
      if (!entry.fileName.endsWith('/')) entries.push(entry)
      if (entries.length > maxEntries) throw invalidConfig(`the archive has more than ${maxEntries} entries`)
    }
  } catch (error) {
    throw readable(error)
  }
  return entries.map((entry) => ({
    path: entry.fileName,
    size: entry.uncompressedSize,
    isExecutable: (unixMode(entry) & 0o111) !== 0,
    read: async () => {
      try {
        return await buffer(await zip.openReadStreamPromise(entry))
      } catch (error) {
        throw readable(error)
      }
    },
  }))
}

async function openArchive(archive: Buffer) {
  try {
    return await fromBufferPromise(archive, { strictFileNames: true, validateEntrySizes: true })
  } catch (error) {
    throw readable(error)
  }
}

/** Converts an error of the library to INVALID_CONFIG. */
function readable(error: unknown): Error {
  if (!(error instanceof Error)) return invalidConfig('the archive cannot be read')
  return error.name === 'GatehouseError'
    ? error
    : invalidConfig(`the archive cannot be read: ${error.message}`)
}

function shown({ fileName }: Entry): string {
  return JSON.stringify(fileName.slice(0, 100))
}

const fileType = 0o170000
const regularFile = 0o100000
const folder = 0o040000

function unixMode({ externalFileAttributes }: Entry): number {
  return externalFileAttributes >>> 16
}

/** Names that Windows reserves, characters that it does not allow, and characters that hide the name. */
const unsafeName = /[\p{Cc}\p{Cf}<>:"|?*\\]|(?:^|\/)(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|\/|$)|[. ](?:\/|$)/iu

function entryProblem(entry: Entry): string | undefined {
  const { fileName, compressedSize, uncompressedSize } = entry
  const problem = validateFileName(fileName)
  if (problem !== null && problem !== undefined) return 'the name is not a path inside the archive'
  if (fileName === '' || fileName.length > maxNameLength) return 'the name is empty or too long'
  if (unsafeName.test(fileName) || /(?:^|\/)\.{0,2}\//.test(fileName)) return 'the name is not safe'
  const type = unixMode(entry) & fileType
  if (type !== 0 && type !== regularFile && type !== folder)
    return 'only files and folders are allowed, no links'
  if (entry.isEncrypted()) return 'encrypted files are not supported'
  if (!entry.canDecodeFileData()) return 'the compression method is not supported'
  if (uncompressedSize > smallBytes && uncompressedSize > compressedSize * maxRatio)
    return `the file expands to more than ${maxRatio} times its size`
  return undefined
}
