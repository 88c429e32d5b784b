/**
 * Writes a folder of manifests: either all files or none. Replaces existing files only with `force`. Secrets are
 * readable only by their owner and ignored by Git.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import type { FolderFile } from '../clients/index.ts'

export interface Saved {
  /** Names of the files that were written, excluding unchanged files. */
  readonly written: readonly string[]
  /** Files that contain secrets from an earlier run and are no longer used. */
  readonly stale: readonly string[]
}

const secretNames = ['secrets.yaml', 'secrets.env']

/** Throws INVALID_CONFIG when a file with different contents exists and `force` is false. */
export function saveFolder(
  folder: string,
  files: readonly FolderFile[],
  { force }: { readonly force: boolean },
): Saved {
  const changed = files.filter(({ name, text }) => contentsOf(join(folder, name)) !== text)
  const taken = changed.filter(({ name }) => existsSync(join(folder, name))).map(({ name }) => name)
  if (taken.length > 0 && !force) {
    throw invalidConfig(
      `${folder}: ${taken.join(', ')} already exist with different contents; use --force to replace them, or choose another folder`,
    )
  }
  const draftOf = (name: string) => join(folder, dirname(name), `.${basename(name)}.${process.pid}.tmp`)
  try {
    mkdirSync(folder, { recursive: true })
    for (const { name } of files) mkdirSync(join(folder, dirname(name)), { recursive: true })
  } catch (cause) {
    throw invalidConfig(`cannot write to ${folder}: ${systemReason(cause)}`)
  }
  try {
    refuseFolders(folder, taken)
    // Update .gitignore first, so that Git never sees the secrets.
    ignoreInGit(
      folder,
      files.filter(({ secret }) => secret).map(({ name }) => name),
    )
    for (const { name, text, secret } of changed) {
      rmSync(draftOf(name), { force: true })
      writeFileSync(draftOf(name), text, { mode: secret ? 0o600 : 0o644, flag: 'wx' })
    }
    for (const { name } of changed) renameSync(draftOf(name), join(folder, name))
    // An unchanged file may have been made readable by other users.
    for (const { name, secret } of files) if (secret) chmodSync(join(folder, name), 0o600)
  } catch (cause) {
    if (cause instanceof GatehouseError) throw cause
    throw invalidConfig(`cannot write to ${folder}: ${systemReason(cause)}`)
  } finally {
    for (const { name } of changed) rmSync(draftOf(name), { force: true })
  }
  const names = new Set(files.map(({ name }) => name))
  return {
    written: changed.map(({ name }) => name),
    stale: secretNames.filter((name) => !names.has(name) && existsSync(join(folder, name))),
  }
}

function refuseFolders(folder: string, names: readonly string[]): void {
  const found = names.find((name) => statSync(join(folder, name)).isDirectory())
  if (found !== undefined) throw invalidConfig(`${join(folder, found)} is a folder; nothing was written`)
}

function contentsOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Adds missing lines to `.gitignore`. */
function ignoreInGit(folder: string, names: readonly string[]): void {
  const path = join(folder, '.gitignore')
  const before = contentsOf(path) ?? ''
  const lines = new Set(before.split(/\r?\n/).map((line) => line.trim()))
  const missing = names.filter((name) => !lines.has(name) && !lines.has(`/${name}`))
  if (missing.length === 0) return
  const lead = before === '' || before.endsWith('\n') ? before : `${before}\n`
  const draft = `${path}.${process.pid}.tmp`
  writeFileSync(draft, `${lead}${missing.map((name) => `/${name}\n`).join('')}`, { flag: 'wx' })
  renameSync(draft, path)
}
