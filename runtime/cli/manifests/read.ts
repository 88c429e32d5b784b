/**
 * Reads Kubernetes manifests from files, folders and standard input.
 *
 * Every document keeps where it stands (file and line), so that a message can point at it. Folders are read
 * recursively in name order; files that are not YAML or JSON, hidden files, and kustomizations are passed over.
 * Does not validate: that is the webhook's code.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isMap, LineCounter, parseAllDocuments } from 'yaml'
import { GatehouseError } from '../../../schemas/index.ts'

export interface Manifest {
  /** The parsed document. */
  readonly doc: Record<string, unknown>
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
    if (path === '-') return parse('-', stdin())
    return manifestFiles(path).flatMap((file) => parse(file, readFileSync(file, 'utf8')))
  })
}

/** The manifest files behind one path, sorted. Throws when the path does not exist or holds no manifest. */
export function manifestFiles(path: string): string[] {
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
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return walk(path)
      return extensions.test(entry.name) && !/^kustomization\.ya?ml$/.test(entry.name) ? [path] : []
    })
}

function parse(file: string, text: string): Manifest[] {
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true })
  if (!Array.isArray(documents)) return []
  const manifests: Manifest[] = []
  for (const document of documents) {
    const fault = document.errors[0]
    if (fault) {
      const { line } = lines.linePos(fault.pos[0])
      const what = fault.message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '')
      throw new GatehouseError('INVALID_CONFIG', { detail: `${file}:${line}: not valid YAML: ${what}` })
    }
    const doc: unknown = document.toJS({ maxAliasCount: 100 })
    if (doc === null || doc === undefined) continue
    const line = lines.linePos(document.contents?.range?.[0] ?? 0).line
    if (typeof doc !== 'object' || Array.isArray(doc)) {
      throw new GatehouseError('INVALID_CONFIG', {
        detail: `${file}:${line}: a manifest must be a mapping with apiVersion, kind and metadata`,
      })
    }
    const lineOf = (path: string): number => {
      const keys = path.match(/[^.[\]]+/g) ?? []
      for (let length = keys.length; length > 0; length--) {
        const steps = keys.slice(0, length).map((key) => (/^\d+$/.test(key) ? Number(key) : key))
        const node: unknown = document.getIn(steps, true)
        const range = rangeOf(node)
        if (range !== undefined) return lines.linePos(range).line
      }
      return line
    }
    manifests.push({ doc: doc as Record<string, unknown>, file, line, lineOf })
  }
  return manifests.flatMap(unwrapList)
}

function rangeOf(node: unknown): number | undefined {
  if (typeof node !== 'object' || node === null) return undefined
  const range = (node as { range?: readonly number[] | null }).range
  if (isMap(node) && node.items.length > 0) return rangeOf(node.items[0]?.key) ?? range?.[0]
  return range?.[0]
}

/** `kind: List` holds its documents in `items`. */
function unwrapList(manifest: Manifest): Manifest[] {
  const { items, kind } = manifest.doc
  if (kind !== 'List' || !Array.isArray(items)) return [manifest]
  return items.map((item: unknown, index) => ({
    ...manifest,
    doc: item as Record<string, unknown>,
    lineOf: (path: string) => manifest.lineOf(`items.${index}.${path}`),
  }))
}
