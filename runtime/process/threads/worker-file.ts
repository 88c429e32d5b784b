/**
 * Where the programs of worker threads are. From source they are files of their modules; in a build they are
 * `<name>.js` (or `.mjs`) beside the bundled program, which has the same ending.
 */
import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface WorkerProgram {
  /** File name in a build, without its ending. */
  readonly name: string
  /** Path of the source, from here. */
  readonly source: string
}

export const scriptWorker: WorkerProgram = { name: 'script-worker', source: '../codemode/worker.ts' }

export const workflowWorker: WorkerProgram = {
  name: 'workflow-worker',
  source: '../workflows/evaluation/worker.ts',
}

export function workerFile({ name, source }: WorkerProgram, here = import.meta.url): URL {
  const ending = extname(fileURLToPath(here))
  return new URL(ending === '.ts' ? source : `./${name}${ending}`, here)
}

/** What keeps a program from running; empty when nothing does. */
export function workerViolations(program: WorkerProgram): string[] {
  const file = workerFile(program)
  return existsSync(file) ? [] : [`${fileURLToPath(file)} is missing; it belongs beside the program`]
}
