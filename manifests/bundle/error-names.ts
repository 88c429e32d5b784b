/**
 * Keeps the names of our error classes, which logs and stack traces show, while the bundler shortens all other names.
 */
import { readFile } from 'node:fs/promises'
import type { Plugin } from 'esbuild'

const errorClass =
  /^((?:export )?class (\w+) extends (?:Error|TypeError|ModuleError|GatehouseError)\b[^{\n]*\{)/gm

export const errorNames: Plugin = {
  name: 'error-names',
  setup(build) {
    build.onLoad({ filter: /\/(?:hooks|runtime|schemas)\/.*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      const contents = text.replace(
        errorClass,
        "$1 static { Object.defineProperty(this, 'name', { value: '$2' }) }",
      )
      // Files without one are left to the bundler, which reads them itself.
      return contents === text ? undefined : { contents, loader: 'ts' }
    })
  },
}
