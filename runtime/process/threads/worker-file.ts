/**
 * Locates the programs of worker threads. When Gatehouse runs from source, a program is a file in its module. In a
 * build, the program is `<name>.js` (or `.mjs`) next to the bundled program with the same extension.
 */
import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface WorkerProgram {
  /** File name in a build, without its extension. */
  readonly name: string
  /** The source file. */
  readonly source: URL
}

export function workerFile({ name, source }: WorkerProgram, here = import.meta.url): URL {
  const ending = extname(fileURLToPath(here))
  return ending === '.ts' ? source : new URL(`./${name}${ending}`, here)
}

/** Returns the reasons why a program cannot run. The list is empty when the program can run. */
export function workerViolations(program: WorkerProgram): string[] {
  const file = workerFile(program)
  return existsSync(file) ? [] : [`${fileURLToPath(file)} is missing; the file must be next to the program`]
}
