/**
 * The project as the compiler reads it: a syntax tree for each file, without the generated ones.
 *
 * Starts the compiler's own server (1 to 2 seconds), which ends with `close`.
 */
import { relative } from 'node:path'
import { API } from 'typescript/unstable/sync'
import type { SourceFile } from 'typescript/unstable/ast'

const root = new URL('../../../', import.meta.url).pathname

export interface SourceTree {
  /** Trees by path, relative to the root of the project. */
  readonly files: ReadonlyMap<string, SourceFile>
  close(): void
}

export function openSourceTree(): SourceTree {
  const api = new API({ cwd: root })
  const [project] = api.updateSnapshot({ openProjects: [`${root}tsconfig.json`] }).getProjects()
  if (!project) throw new Error('the compiler found no project')
  const files = new Map<string, SourceFile>()
  for (const name of project.rootFiles) {
    const path = relative(root, name)
    const tree = /\/(generated|fixtures)\//.test(path) ? undefined : project.program.getSourceFile(name)
    if (tree && path.endsWith('.ts')) files.set(path, tree)
  }
  return { files, close: () => api.close() }
}
