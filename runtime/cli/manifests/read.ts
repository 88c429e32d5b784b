/**
 * Reads Kubernetes manifests from files, folders and standard input.
 *
 * Every document keeps where it stands (file and line), so that a message can point at it. Folders are read
 * recursively in name order; files that are not YAML or JSON, hidden files, and kustomizations are skipped.
 * Does not validate: that is the webhook's code.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Fields, GatehouseError, isFields, byText } from '../../../schemas/index.ts'
import { readYaml } from '../../config/index.ts'

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

/** Reads all documents behind the given paths. Throws GatehouseError INVALID_CONFIG naming file and line. */
export function readManifests(paths: readonly string[], stdin: () => string): Manifest[] {
  return paths.flatMap((path) => {
    if (path === '-') return parseManifests('-', stdin())
    return manifestFiles(path).flatMap((file) => parseManifests(file, readFileSync(file, 'utf8')))
  })
}

/** The manifest files behind one path, sorted. Throws when the path does not exist or holds no manifest. */
function manifestFiles(path: string): string[] {
  const kind = statSync(path, { throwIfNoEntry: false })
  if (!kind) throw new GatehouseError('INVALID_CONFIG', { detail: `${path}: no such file or folder` })
  if (!kind.isDirectory()) return [path]
  const files = walk(path)
  if (files.length === 0) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${path}: no .yaml, .yml or .json file in this folder`,
    })
  }
  return files
}

function walk(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.name.startsWith('.') && entry.name !== 'node_modules')
    .sort((a, b) => byText(a.name, b.name))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return walk(path)
      return extensions.test(entry.name) && !/^kustomization\.ya?ml$/.test(entry.name) ? [path] : []
    })
}

/** All documents of a text. Throws GatehouseError INVALID_CONFIG naming file and line. */
export function parseManifests(file: string, text: string): Manifest[] {
  const { documents, violations } = readYaml(text)
  const [failure] = violations
  if (failure) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${file}:${failure.line}: not valid YAML: ${failure.message}`,
    })
  }
  return documents
    .filter(({ value }) => value !== null && value !== undefined)
    .map(({ value, line, lineOf }) => {
      if (!isFields(value)) throw notAMapping(file, line)
      return { doc: value, file, line, lineOf: (path: string) => lineOf(stepsOf(path)) }
    })
    .flatMap(unwrapList)
}

/** The keys and indexes of a path such as `spec.list[1].two`. */
function stepsOf(path: string): (string | number)[] {
  return (path.match(/[^.[\]]+/g) ?? []).map((step) => (/^\d+$/.test(step) ? Number(step) : step))
}

/** `kind: List` holds its documents in `items`. */
function unwrapList(manifest: Manifest): Manifest[] {
  const { items, kind } = manifest.doc
  if (kind !== 'List' || !Array.isArray(items)) return [manifest]
  return items.map((item: unknown, index) => {
    const lineOf = (path: string): number => manifest.lineOf(`items.${index}.${path}`)
    const line = lineOf('')
    if (!isFields(item)) throw notAMapping(manifest.file, line)
    return { ...manifest, doc: item, line, lineOf }
  })
}

function notAMapping(file: string, line: number): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', {
    detail: `${file}:${line}: a manifest must be a mapping with apiVersion, kind and metadata`,
  })
}
