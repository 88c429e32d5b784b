/**
 * Kustomizations below the folders that the user named. One with all that it refers to is applied by itself, so it is a
 * set of its own: its names may be those of another set, and its references are to its own objects.
 */
import { readdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Fields, fieldsOf, GatehouseError } from '../../../schemas/index.ts'
import { readTextFile, readYaml } from '../../config/index.ts'

/** What kustomize takes as the name of its file. */
const fileName = /^(kustomization\.ya?ml|Kustomization)$/

export interface Kustomization {
  /** Path as it follows from the user's. */
  readonly file: string
  readonly content: Fields
}

/** The kustomizations below the folders among `paths`. Throws INVALID_CONFIG. */
export function readKustomizations(paths: readonly string[]): Kustomization[] {
  return paths.filter(isFolder).flatMap(filesBelow).map(read)
}

/**
 * What the kustomizations' generators make, by name; the content may come from files that are not here. Throws
 * INVALID_CONFIG.
 */
export function generatedNames(paths: readonly string[]): { readonly file: string; readonly doc: Fields }[] {
  return readKustomizations(paths).flatMap(({ file, content }) => {
    const made = (field: string, kind: string) =>
      [content[field] ?? []].flat().map((generator) => {
        const { name, namespace = content['namespace'] } = fieldsOf(generator)
        return { file, doc: { kind, metadata: { name, namespace } } }
      })
    return [...made('secretGenerator', 'Secret'), ...made('configMapGenerator', 'ConfigMap')]
  })
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.') && name !== 'node_modules')
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return filesBelow(path)
      return fileName.test(entry.name) ? [path] : []
    })
}

function read(file: string): Kustomization {
  const { documents, violations } = readYaml(readTextFile(file, `${file}:`))
  const [violation] = violations
  if (violation) {
    const detail = `${file}:${violation.line}: not valid YAML: ${violation.message}`
    throw new GatehouseError('INVALID_CONFIG', { detail })
  }
  return { file, content: fieldsOf(documents[0]?.value) }
}

/** The sets that a file belongs to, the same object for files of the same sets; empty outside of every kustomization. */
export type SetsOf = (file: string) => ReadonlySet<string>

const none: ReadonlySet<string> = new Set()

/** All files are applied together. */
export const oneSet: SetsOf = () => none

/**
 * The sets of the files below the paths that the user named. A file belongs to the kustomization in the nearest folder above
 * it, and so to each set whose topmost kustomization includes that one: the base of two overlays belongs to both.
 */
export function kustomizationSets(paths: readonly string[]): SetsOf {
  const kustomizations = readKustomizations(paths)
  const included = new Map<string, readonly string[]>()
  for (const { file, content } of kustomizations)
    included.set(resolve(dirname(file)), foldersOf(file, content))
  const referenced = new Set([...included.values()].flat())
  const tops = [...included.keys()].filter((folder) => !referenced.has(folder))
  const sets = new Map<string, Set<string>>()
  for (const top of tops) addSet(top, top)
  // What only a circle includes is a set of its own.
  for (const folder of included.keys()) if (!sets.has(folder)) addSet(folder, folder)
  return (file) => {
    for (let folder = resolve(dirname(file)); ; folder = dirname(folder)) {
      const found = sets.get(folder)
      if (found) return found
      if (folder === dirname(folder)) return none
    }
  }

  function addSet(folder: string, top: string): void {
    const inner = included.get(folder)
    const known = sets.get(folder) ?? new Set()
    if (inner === undefined || known.has(top)) return
    sets.set(folder, known.add(top))
    for (const next of inner) addSet(next, top)
  }
}

/** The folders that a kustomization may include; paths of files and URLs do no harm: no kustomization is there. */
function foldersOf(file: string, content: Fields): string[] {
  return ['resources', 'bases', 'components']
    .flatMap((field) => content[field] ?? [])
    .filter((path) => typeof path === 'string')
    .map((path) => resolve(dirname(file), path))
}
