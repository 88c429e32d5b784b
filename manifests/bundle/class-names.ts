/**
 * Keeps the class names that the program reads at run time: those of error classes, which appear in logs and stack
 * traces, and of oidc-provider's models, whose names oidc-provider stores. The bundler shortens all other names.
 */
import { readFile } from 'node:fs/promises'
import type { Plugin } from 'esbuild'

const errorClass =
  /^((?:export )?class (\w+) extends (?:Error|TypeError|ModuleError|GatehouseError)\b[^{\n]*\{)/gm
const modelClass = /(\bclass (\w+)(?: extends [^{\n]+)? \{)/g

export const classNames: Plugin = {
  name: 'class-names',
  setup(build) {
    const keep = (filter: RegExp, classes: RegExp, loader: 'js' | 'ts'): void =>
      build.onLoad({ filter }, async ({ path }) => {
        const text = await readFile(path, 'utf8')
        const contents = text.replace(
          classes,
          "$1 static { Object.defineProperty(this, 'name', { value: '$2' }) }",
        )
        // Leaves files that contain none of these classes to the bundler.
        return contents === text ? undefined : { contents, loader }
      })
    keep(/\/(?:hooks|runtime|schemas)\/.*\.ts$/, errorClass, 'ts')
    keep(/\/oidc-provider\/lib\/models\/.*\.js$/, modelClass, 'js')
  },
}
