/**
 * Where the worker's program is. From source it is a file of this room; in a build it is `script-worker.js` (or `.mjs`)
 * beside the bundled program, which has the same ending.
 */
import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

export function workerFile(here = import.meta.url): URL {
  const ending = extname(fileURLToPath(here))
  return ending === '.ts' ? new URL('./worker.ts', here) : new URL(`./script-worker${ending}`, here)
}

/** What keeps scripts from running; empty when nothing does. */
export function workerProblems(): string[] {
  const file = workerFile()
  return existsSync(file)
    ? []
    : [`codeMode: ${fileURLToPath(file)} is missing; it belongs beside the program`]
}
