/**
 * Reads Kubernetes manifests from files, folders and standard input.
 *
 * Keeps every document's file and line for messages. Reads folders recursively in name order, and skips hidden files,
 * kustomizations, and files that are not YAML or JSON. Does not validate the documents.
 */
import { type Dirent, readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { byText, type Fields, invalidConfig, isFields } from '../../../schemas/index.ts'
import { readTextFile, readYaml, systemReason } from '../../config/index.ts'

export interface Manifest {
  /** The parsed document. */
  readonly doc: Fields
  /** File name as entered by the user; `-` for standard input. */
  readonly file: string
  /** One-based line of the document's first key. */
  readonly line: number
  /**
   * Returns the one-based line of a field by path, such as `spec.groupRef.name`, or the document's line when the field
   * does not exist.
   */
  readonly lineOf: (path: string) => number
}

const extensions = /\.(ya?ml|json)$/

/** Reads all documents in `paths`. Throws INVALID_CONFIG, which lists every read error with its file and line. */
export function readManifests(paths: readonly string[], stdin: () => string): Manifest[] {
  const errors: string[] = []
  const manifests = paths.flatMap((path) => {
    const found = errors.length
    const documents =
      path === '-'
        ? documentsOf('-', stdin(), errors)
        : manifestFiles(path).flatMap((file) => documentsOf(file, readTextFile(file, `${file}:`), errors))
    // Empty input is an error, because the program that feeds the pipe may have failed.
    if (documents.length === 0 && errors.length === found) errors.push(`${path}: contains no documents`)
    return documents
  })
  if (errors.length > 0) throw invalidConfig(errors.join('\n'))
  return manifests
}

/** Returns the manifest files at a path, sorted. Throws when the path does not exist or contains no manifest. */
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

/**
 * Returns all documents in the given text. Throws INVALID_CONFIG, which lists the file and line of every invalid
 * document.
 */
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
      const lineOfPath = (path: string): number => lineOf(stepsOf(path))
      return manifestOf({ file, line, lineOf: lineOfPath }, value, errors)
    })
    .flatMap((manifest) => unwrapList(manifest, errors))
}

function manifestOf(position: Omit<Manifest, 'doc'>, doc: unknown, errors: string[]): Manifest[] {
  if (isFields(doc)) return [{ ...position, doc }]
  errors.push(
    `${position.file}:${position.line}: a manifest must be a mapping with apiVersion, kind and metadata`,
  )
  return []
}

/** Splits a path such as `spec.list[1].two` into keys and indexes. */
function stepsOf(path: string): (string | number)[] {
  return (path.match(/[^.[\]]+/g) ?? []).map((step) => (/^\d+$/.test(step) ? Number(step) : step))
}

/** Returns the items of a `kind: List`. */
function unwrapList(manifest: Manifest, errors: string[]): Manifest[] {
  const { items, kind } = manifest.doc
  if (kind !== 'List' || !Array.isArray(items)) return [manifest]
  return items.flatMap((item: unknown, index) => {
    const lineOf = (path: string): number => manifest.lineOf(`items.${index}.${path}`)
    return manifestOf({ file: manifest.file, line: lineOf(''), lineOf }, item, errors)
  })
}
