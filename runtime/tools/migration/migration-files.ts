/** Builds a migration's output files: one per source, and one for the created Secrets. */
import { writeYaml } from '../../../schemas/yaml/index.ts'
import { basename, relative } from 'node:path'
import { statSync } from 'node:fs'
import type { Fields } from '../../../schemas/index.ts'
import type { FolderFile } from '../../toolkit/clients/index.ts'
import type { Migration } from './convert.ts'

const secretsFile = 'secrets.yaml'

/** `paths` are the input paths. Output names are relative to the input folder that contains the source. */
export function migrationFiles(migration: Migration, paths: readonly string[]): readonly FolderFile[] {
  const usedNames = new Set<string>([secretsFile])
  const files = [...migration.files].map(([source, docs]) => ({
    name: freeName(nameOf(source, paths), usedNames),
    text: documentsText(docs),
    secret: docs.some(({ kind }) => kind === 'Secret'),
  }))
  if (migration.secrets.length === 0) return files
  const head = '# Secrets for the servers. Git ignores this file. Fill in the empty values.\n'
  return [...files, { name: secretsFile, text: head + documentsText(migration.secrets), secret: true }]
}

/** Returns all documents as one stream. */
export function documentsText(docs: readonly Fields[]): string {
  return docs.map(writeYaml).join('---\n')
}

function nameOf(source: string, paths: readonly string[]): string {
  if (source === '-') return 'imported.yaml'
  const folder = paths.find((path) => isFolder(path) && !relative(path, source).startsWith('..'))
  const name = folder === undefined ? basename(source) : relative(folder, source)
  return `${name.replace(/\.(?:ya?ml|json)$/, '')}.yaml`
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

function freeName(wanted: string, usedNames: Set<string>): string {
  let name = wanted
  for (let n = 2; usedNames.has(name); n++) name = wanted.replace(/\.yaml$/, `-${n}.yaml`)
  usedNames.add(name)
  return name
}
