/**
 * Finds the kustomizations in the input folders. A kustomization and everything that it includes are applied
 * separately, so they form a set. Another set can use the same names, and references are resolved within a set.
 */
import { readdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Fields, fieldsOf, GatehouseError } from '../../../schemas/index.ts'
import { readTextFile, readYaml } from '../../config/index.ts'

/** File names that kustomize accepts. */
const fileName = /^(kustomization\.ya?ml|Kustomization)$/

export interface Kustomization {
  /** Path relative to the folder that the user specified. */
  readonly file: string
  readonly content: Fields
}

/** Returns the kustomizations in the folders of `paths`. Throws INVALID_CONFIG. */
export function readKustomizations(paths: readonly string[]): Kustomization[] {
  return paths.filter(isFolder).flatMap(filesBelow).map(read)
}

/**
 * Returns the names of the objects that kustomizations generate. Omits the objects' content, which can come from files
 * outside the input. Throws INVALID_CONFIG.
 */
export function generatedNames(paths: readonly string[]): { readonly file: string; readonly doc: Fields }[] {
  return readKustomizations(paths).flatMap(({ file, content }) => {
    const generated = (field: string, kind: string) =>
      [content[field] ?? []].flat().map((generator) => {
        const { name, namespace = content['namespace'] } = fieldsOf(generator)
        return { file, doc: { kind, metadata: { name, namespace } } }
      })
    return [...generated('secretGenerator', 'Secret'), ...generated('configMapGenerator', 'ConfigMap')]
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

/**
 * Returns a file's sets: the same object for files that belong to the same sets, and an empty set for a file outside
 * every kustomization.
 */
export type SetsOf = (file: string) => ReadonlySet<string>

const none: ReadonlySet<string> = new Set()

/** A single set that contains all files. */
export const oneSet: SetsOf = () => none

/**
 * Returns the sets of the files below `paths`. A file belongs to the kustomization in the nearest parent folder, and to
 * each top-level kustomization that includes it. A base that two overlays include belongs to both sets.
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
  // Kustomizations that are only reachable through a cycle form their own sets.
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

/**
 * Returns the paths that a kustomization includes. Files and URLs among the paths are harmless, because they contain no
 * kustomization.
 */
function foldersOf(file: string, content: Fields): string[] {
  return ['resources', 'bases', 'components']
    .flatMap((field) => content[field] ?? [])
    .filter((path) => typeof path === 'string')
    .map((path) => resolve(dirname(file), path))
}
