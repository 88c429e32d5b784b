/**
 * Reads Kubernetes manifests from files, folders and standard input.
 *
 * Every document keeps where it stands (file and line), so that a message can point at it. Folders are read
 * recursively in name order; files that are not YAML or JSON, hidden files, and kustomizations are skipped.
 * Does not validate: that is the webhook's code.
 */
import { type Dirent, readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { byText, type Fields, invalidConfig, isFields } from '../../../schemas/index.ts'
import { readTextFile, readYaml, systemReason } from '../../config/index.ts'

export interface Manifest {
  /** The parsed document. */
  readonly doc: Fields
  /** File as the user named it; `-` for standard input. */
  readonly file: string
  /** One-based line of the document's first key. */
  readonly line: number
  /** One-based line of a field, by path such as `spec.groupRef.name`; the document's own line when not found. */
  readonly lineOf: (path: string) => number
}

const extensions = /\.(ya?ml|json)$/

/**
 * Reads all documents behind the given paths. Throws GatehouseError INVALID_CONFIG with everything that cannot be read, each
 * with file and line.
 */
export function readManifests(paths: readonly string[], stdin: () => string): Manifest[] {
  const errors: string[] = []
  const manifests = paths.flatMap((path) => {
    const found = errors.length
    const documents =
      path === '-'
        ? documentsOf('-', stdin(), errors)
        : manifestFiles(path).flatMap((file) => documentsOf(file, readTextFile(file, `${file}:`), errors))
    // As in a pipe whose first program failed: nothing to check is not the same as nothing wrong.
    if (documents.length === 0 && errors.length === found) errors.push(`${path}: no document in it`)
    return documents
  })
  if (errors.length > 0) throw invalidConfig(errors.join('\n'))
  return manifests
}

/** The manifest files behind one path, sorted. Throws when the path does not exist or holds no manifest. */
function manifestFiles(path: string): string[] {
  const kind = statusOf(path)
  if (!kind) throw invalidConfig(`${path}: no such file or folder`)
  if (!kind.isDirectory()) return [path]
  const files = walk(path)
  if (files.length === 0) throw invalidConfig(`${path}: no .yaml, .yml or .json file in this folder`)
  return files
}

function statusOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (cause) {
    throw invalidConfig(`${path}: cannot be read: ${systemReason(cause)}`, cause)
  }
}

function walk(folder: string): string[] {
  return entriesOf(folder)
    .filter((entry) => !entry.name.startsWith('.') && entry.name !== 'node_modules')
    .sort((a, b) => byText(a.name, b.name))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return walk(path)
      return extensions.test(entry.name) && !/^kustomization\.ya?ml$/.test(entry.name) ? [path] : []
    })
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (cause) {
    throw invalidConfig(`${folder}: cannot be read: ${systemReason(cause)}`, cause)
  }
}

/** All documents of a text. Throws GatehouseError INVALID_CONFIG naming file and line of each that is none. */
export function parseManifests(file: string, text: string): Manifest[] {
  const errors: string[] = []
  const manifests = documentsOf(file, text, errors)
  if (errors.length > 0) throw invalidConfig(errors.join('\n'))
  return manifests
}

function documentsOf(file: string, text: string, errors: string[]): Manifest[] {
  const { documents, violations } = readYaml(text)
  errors.push(...violations.map(({ line, message }) => `${file}:${line}: not valid YAML: ${message}`))
  return documents
    .filter(({ value }) => value !== null && value !== undefined)
    .flatMap(({ value, line, lineOf }) => {
      const steps = (path: string): number => lineOf(stepsOf(path))
      return manifestOf({ file, line, lineOf: steps }, value, errors)
    })
    .flatMap((manifest) => unwrapList(manifest, errors))
}

function manifestOf(place: Omit<Manifest, 'doc'>, doc: unknown, errors: string[]): Manifest[] {
  if (isFields(doc)) return [{ ...place, doc }]
  errors.push(`${place.file}:${place.line}: a manifest must be a mapping with apiVersion, kind and metadata`)
  return []
}

/** The keys and indexes of a path such as `spec.list[1].two`. */
function stepsOf(path: string): (string | number)[] {
  return (path.match(/[^.[\]]+/g) ?? []).map((step) => (/^\d+$/.test(step) ? Number(step) : step))
}

/** `kind: List` holds its documents in `items`. */
function unwrapList(manifest: Manifest, errors: string[]): Manifest[] {
  const { items, kind } = manifest.doc
  if (kind !== 'List' || !Array.isArray(items)) return [manifest]
  return items.flatMap((item: unknown, index) => {
    const lineOf = (path: string): number => manifest.lineOf(`items.${index}.${path}`)
    return manifestOf({ file: manifest.file, line: lineOf(''), lineOf }, item, errors)
  })
}
