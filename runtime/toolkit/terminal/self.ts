import { resolve } from 'node:path'
import { isSea } from 'node:sea'

/**
 * Returns the command that starts this program again, without arguments: Node with a file, or the single executable.
 */
export function selfCommand(): string[] {
  return isSea()
    ? [process.execPath]
    : [process.execPath, ...process.execArgv, resolve(process.argv[1] ?? '')]
}
