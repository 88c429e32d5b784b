/**
 * Parses a client's file in whichever format it has, to plain values.
 *
 * Errors name file, line and column. Nothing is repaired: what cannot be parsed is not edited either.
 */
import { TomlError, parse as parseToml } from 'smol-toml'
import { type Document, isMap } from 'yaml'
import { GatehouseError, isFields } from '../../../../schemas/index.ts'
import { readYamlTree } from '../../../config/index.ts'
import { jsonTree, jsonValue } from './json.ts'
import { refusedFile } from './text.ts'

export type Format = 'json' | 'toml' | 'yaml'

/** Members of an object; `{}` for an empty file. Throws INVALID_CONFIG when the file is no map. */
export function parseDocument(format: Format, text: string, file: string): Readonly<Record<string, unknown>> {
  const value = bounded(() => parsers[format](text, file), file) ?? {}
  if (isFields(value)) return value
  throw refusedFile(
    file,
    `must hold an object at the top, not ${Array.isArray(value) ? 'a list' : 'a plain value'}`,
  )
}

const parsers: Readonly<Record<Format, (text: string, file: string) => unknown>> = {
  json: (text, file) => jsonValue(jsonTree(text, file), text),
  toml: tomlValue,
  yaml: (text, file) => yamlDocument(text, file)?.toJS({ maxAliasCount: -1 }) as unknown,
}

function tomlValue(text: string, file: string): unknown {
  try {
    return parseToml(text, { integersAsBigInt: 'asNeeded' })
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const why = error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '')
    throw refusedFile(`${file}:${error.line}:${error.column}:`, `not valid TOML: ${why}`)
  }
}

/** The one document of a YAML text, with offsets; undefined for an empty file. Throws INVALID_CONFIG. */
export function yamlDocument(text: string, file: string): Document | undefined {
  const { documents, violations } = readYamlTree(text)
  const [violation] = violations
  if (violation) throw refusedFile(`${file}:${violation.line}:`, `not valid YAML: ${violation.message}`)
  const [document, second] = documents
  if (second) throw refusedFile(file, 'holds several YAML documents; a client reads one')
  if (document?.contents && !isMap(document.contents)) throw refusedFile(file, 'must hold a map at the top')
  return document
}

/** Parsers recurse: input that is nested too deeply for them is refused like any other bad input. */
function bounded<T>(parse: () => T, file: string): T {
  try {
    return parse()
  } catch (error) {
    if (error instanceof GatehouseError) throw error
    if (error instanceof RangeError) throw refusedFile(file, 'is nested too deeply', error)
    throw refusedFile(
      file,
      `cannot be read: ${error instanceof Error ? error.message : 'it is damaged'}`,
      error,
    )
  }
}
