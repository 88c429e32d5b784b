import { resolve } from 'node:path'
import { isSea } from 'node:sea'
import { imageReference } from '../../../schemas/index.ts'
import manifest from '../../../package.json' with { type: 'json' }

/**
 * Returns the command that starts this program again, without arguments: Node with a file, or the single executable.
 */
export function selfCommand(): string[] {
  return isSea()
    ? [process.execPath]
    : [process.execPath, ...process.execArgv, resolve(process.argv[1] ?? '')]
}

/** This build's version, which the bundler inlines from package.json. */
export const version: string = manifest.version

/** The runtime image for this version. */
export const runtimeImage = imageReference('gatehouse', version)
