/**
 * Locates the programs of worker threads. When running from source, they are files in their modules. In a build, they
 * are `<name>.js` (or `.mjs`) next to the bundled program, which has the same extension.
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

/** Returns the reasons why a program cannot run; empty when it can. */
export function workerViolations(program: WorkerProgram): string[] {
  const file = workerFile(program)
  return existsSync(file) ? [] : [`${fileURLToPath(file)} is missing; it must be next to the program`]
}
