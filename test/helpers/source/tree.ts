/**
 * Parses the project with the compiler: a syntax tree for each file, without generated files.
 *
 * Starts the compiler's own server (1 to 2 seconds), which ends with `close`.
 */
import { relative } from 'node:path'
import { API, type Checker } from 'typescript/unstable/sync'
import type { SourceFile } from 'typescript/unstable/ast'

const root = new URL('../../../', import.meta.url).pathname

/** Trees by path, relative to the root of the project. */
export type SourceFiles = ReadonlyMap<string, SourceFile>

export interface SourceTree {
  readonly files: SourceFiles
  /** Types and symbols of the trees. */
  readonly checker: Checker
  close(): void
}

let allFiles: SourceFiles | undefined

/** Returns the trees of all sources, also of those that run in browsers. Parses them once per process. */
export function allSourceFiles(): SourceFiles {
  if (allFiles) return allFiles
  const { files, close } = openProjects(['tsconfig.json', 'runtime/console/web/tsconfig.json'])
  close()
  allFiles = files
  return files
}

/** Opens the sources that do not run in browsers, with the type checker. */
export function openSourceTree(): SourceTree {
  return openProjects(['tsconfig.json'])
}

function openProjects(paths: readonly string[]): SourceTree {
  const api = new API({ cwd: root })
  const projects = api.updateSnapshot({ openProjects: paths.map((path) => root + path) }).getProjects()
  const [project] = projects
  if (!project || projects.length !== paths.length) throw new Error('the compiler did not find each project')
  const files = new Map<string, SourceFile>()
  for (const { rootFiles, program } of projects) {
    for (const name of rootFiles) {
      const path = relative(root, name)
      const tree = /\/(generated|fixtures)\//.test(path) ? undefined : program.getSourceFile(name)
      if (tree && /\.tsx?$/.test(path)) files.set(path, tree)
    }
  }
  return { files, checker: project.checker, close: () => api.close() }
}
