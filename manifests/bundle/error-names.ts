/**
 * Keeps the names of error classes, which appear in logs and stack traces, while the bundler shortens all other names.
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
      // Leaves files without error classes to the bundler.
      return contents === text ? undefined : { contents, loader: 'ts' }
    })
  },
}
