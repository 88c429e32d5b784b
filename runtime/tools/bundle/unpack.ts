/** Unpacks an MCPB file into a new folder. The folder appears only if every file could be written. */
import { createHash, timingSafeEqual } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
} from 'node:fs'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { invalidConfig, isFields } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import { maxArchiveBytes, readArchive } from './archive.ts'

export interface Unpacked {
  readonly files: number
  /** The manifest of the bundle, as JSON. */
  readonly manifest: Readonly<Record<string, unknown>>
}

/** `sha256` is the expected digest of the file, in hex. Rejects with INVALID_CONFIG. */
export async function unpackBundle(path: string, sha256: string, folder: string): Promise<Unpacked> {
  if (existsSync(folder)) throw invalidConfig(`${folder}: already exists; name a new folder`)
  const archive = readArchiveFile(path)
  const digest = createHash('sha256').update(archive).digest()
  if (!timingSafeEqual(digest, Buffer.from(sha256, 'hex')))
    throw invalidConfig(`${path}: the SHA-256 digest is ${digest.toString('hex')}, but --sha256 is ${sha256}`)
  const files = await readArchive(archive)
  const manifest = await readManifest(files)
  const target = resolve(folder)
  mkdirSync(dirname(target), { recursive: true })
  const draft = mkdtempSync(join(dirname(target), '.gatehouse-unbundle-'))
  try {
    for (const { path: name, isExecutable, read } of files) {
      const file = join(draft, name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, await read(), { flag: 'wx', mode: isExecutable ? 0o755 : 0o644 })
    }
    chmodSync(draft, 0o755)
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (error instanceof Error && 'errno' in error)
      throw invalidConfig(`${folder}: cannot be written: ${systemReason(error)}`, error)
    throw error
  }
  return { files: files.length, manifest }
}

function readArchiveFile(path: string): Buffer {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (cause) {
    throw invalidConfig(`${path}: cannot be read: ${systemReason(cause)}`, cause)
  }
  try {
    const stats = fstatSync(file)
    if (!stats.isFile()) throw invalidConfig(`${path}: is not a file`)
    if (stats.size > maxArchiveBytes)
      throw invalidConfig(`${path}: is larger than ${maxArchiveBytes / 1024 / 1024} MiB`)
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}

const maxManifestBytes = 1024 * 1024

async function readManifest(files: Awaited<ReturnType<typeof readArchive>>): Promise<Unpacked['manifest']> {
  const file = files.find(({ path }) => path === 'manifest.json')
  if (!file) throw invalidConfig('the archive has no manifest.json')
  // `read` rejects a file that is larger than its declared size.
  if (file.size > maxManifestBytes) throw invalidConfig('manifest.json is larger than 1 MiB')
  const bytes = await file.read()
  let manifest: unknown
  try {
    manifest = JSON.parse(bytes.toString())
  } catch {
    throw invalidConfig('manifest.json is not valid JSON')
  }
  if (!isFields(manifest) || !isFields(manifest['server']) || typeof manifest['name'] !== 'string')
    throw invalidConfig('manifest.json is not the manifest of an MCPB file')
  return manifest
}
