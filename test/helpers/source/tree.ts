/**
 * Parses the project with the compiler: a syntax tree for each file, without generated files.
 *
 * Starts the compiler's own server (1 to 2 seconds), which ends with `close`.
 */
import { relative } from 'node:path'
import { API, type Checker } from 'typescript/unstable/sync'
import type { SourceFile } from 'typescript/unstable/ast'

const root = new URL('../../../', import.meta.url).pathname

export interface SourceTree {
  /** Trees by path, relative to the root of the project. */
  readonly files: ReadonlyMap<string, SourceFile>
  /** Types and symbols of the trees. */
  readonly checker: Checker
  close(): void
}

export interface SourceTreeOptions {
  /** Sources that also run in browsers. The type checker does not include them. */
  readonly browser?: true
}

export function openSourceTree(options: SourceTreeOptions = {}): SourceTree {
  const api = new API({ cwd: root })
  const paths = ['tsconfig.json', ...(options.browser ? ['runtime/console/web/tsconfig.json'] : [])]
  const openProjects = paths.map((path) => root + path)
  const projects = api.updateSnapshot({ openProjects }).getProjects()
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
