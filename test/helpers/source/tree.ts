/**
 * Parses the project with the compiler: a syntax tree for each file, without generated files.
 *
 * The files of a process share the trees and the compiler's own server, which ends with the process.
 */
import { relative } from 'node:path'
import { API, type Checker, type Project } from 'typescript/unstable/sync'
import type { SourceFile } from 'typescript/unstable/ast'

const root = new URL('../../../', import.meta.url).pathname

export interface SourceTree {
  /** Trees by path, relative to the root of the project. */
  readonly files: ReadonlyMap<string, SourceFile>
  /** Types and symbols of the trees. */
  readonly checker: Checker
}

export interface SourceTreeOptions {
  /** Sources that also run in browsers. The type checker does not include them. */
  readonly browser?: true
}

let trees: { readonly own: SourceTree; readonly withBrowser: SourceTree } | undefined

export function openSourceTree(options: SourceTreeOptions = {}): SourceTree {
  trees ??= parseProject()
  return options.browser ? trees.withBrowser : trees.own
}

function parseProject(): NonNullable<typeof trees> {
  const api = new API({ cwd: root })
  process.once('exit', () => api.close())
  const paths = ['tsconfig.json', 'runtime/console/web/tsconfig.json']
  const openProjects = paths.map((path) => root + path)
  const projects = api.updateSnapshot({ openProjects }).getProjects()
  const [project, browser] = projects.map((opened) => filesOf(opened))
  const checker = projects[0]?.checker
  if (!project || !browser || !checker) throw new Error('the compiler did not find each project')
  return {
    own: { files: project, checker },
    withBrowser: { files: new Map([...project, ...browser]), checker },
  }
}

function filesOf({ rootFiles, program }: Project): Map<string, SourceFile> {
  const files = new Map<string, SourceFile>()
  for (const name of rootFiles) {
    const path = relative(root, name)
    const tree = /\/(generated|fixtures)\//.test(path) ? undefined : program.getSourceFile(name)
    if (tree && /\.tsx?$/.test(path)) files.set(path, tree)
  }
  return files
}
