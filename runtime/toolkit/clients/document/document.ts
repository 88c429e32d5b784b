/**
 * Parses a client's file in any of its formats to plain values.
 *
 * Errors contain file, line and column. Invalid files are not repaired or edited.
 */
import { TomlError, parse as parseToml } from 'smol-toml'
import { type Document, isMap } from 'yaml'
import { GatehouseError, isFields } from '../../../../schemas/index.ts'
import { readYamlTree } from '../../../config/index.ts'
import { jsonTree, jsonValue } from './json.ts'
import { refusedFile } from './text.ts'

export type Format = 'json' | 'toml' | 'yaml'

/**
 * Returns the document's object; `{}` for an empty file. Throws INVALID_CONFIG when the file does not contain an
 * object.
 */
export function parseDocument(format: Format, text: string, file: string): Readonly<Record<string, unknown>> {
  const value = bounded(() => parsers[format](text, file), file) ?? {}
  if (isFields(value)) return value
  throw refusedFile(
    file,
    `must contain an object at the top level, not ${Array.isArray(value) ? 'a list' : 'a plain value'}`,
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

/** Parses YAML text into a document with offsets; returns undefined for an empty file. Throws INVALID_CONFIG. */
export function yamlDocument(text: string, file: string): Document | undefined {
  const { documents, violations } = readYamlTree(text)
  const [violation] = violations
  if (violation) throw refusedFile(`${file}:${violation.line}:`, `not valid YAML: ${violation.message}`)
  const [document, second] = documents
  if (second) throw refusedFile(file, 'contains several YAML documents, but a client reads only one')
  if (document?.contents && !isMap(document.contents))
    throw refusedFile(file, 'must contain a map at the top level')
  return document
}

/** Converts parser errors, including a stack overflow in a recursive parser, to INVALID_CONFIG. */
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
