/** How this program is started again: by Node from a file, or as a single executable that holds everything. */
import { resolve } from 'node:path'
import { isSea } from 'node:sea'

/** The words that start this program, before its arguments. */
export function selfCommand(): string[] {
  return isSea()
    ? [process.execPath]
    : [process.execPath, ...process.execArgv, resolve(process.argv[1] ?? '')]
}
