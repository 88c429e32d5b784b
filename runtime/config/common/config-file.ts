/**
 * Reads a configuration file of the runtime: strict YAML, checked by its schema, with defaults filled in. Reports all
 * errors at once.
 *
 * This module reads every kind of file in `schemas/runtime/`, but does not resolve the variables and files that a file
 * refers to.
 */
import {
  GatehouseError,
  type Violation,
  type RuntimeName,
  type RuntimeResult,
  validateRuntime,
} from '../../../schemas/index.ts'
import { readTextFile } from './text-file.ts'
import { readYaml } from '../../../schemas/yaml/index.ts'

type Config<N extends RuntimeName> = NonNullable<RuntimeResult<N>['config']>

/** Returns a file's text. Throws INVALID_CONFIG with the path. */
export function readConfigText(path: string): string {
  return readTextFile(path, `the configuration file ${path}`)
}

/**
 * Checks text against the schema with this name. Throws an INVALID_CONFIG error that lists the source and all errors.
 */
export function parseConfig<N extends RuntimeName>(name: N, text: string, source?: string): Config<N> {
  const { config, violations } = validateRuntime(name, readDocument(text, source))
  if (!config) throw invalidConfig(violations, source)
  return config
}

/** Returns the text's only document, unchecked. Throws INVALID_CONFIG for invalid YAML or several documents. */
export function readDocument(text: string, source?: string): unknown {
  const { documents, violations } = readYaml(text)
  if (violations.length > 0) {
    throw invalidConfig(violations, source)
  }
  if (documents.length > 1) {
    throw invalidConfig(
      [{ path: `line ${documents[1]?.line}`, message: 'must not contain a second document' }],
      source,
    )
  }
  return documents[0]?.value
}

/** Returns the error for an invalid configuration. */
export function invalidConfig(violations: readonly Violation[], source?: string): GatehouseError {
  const lines = violations.map(({ path, message }) => `  - ${path === '' ? message : `${path}: ${message}`}`)
  const where = source === undefined ? '' : `${source}: `
  return new GatehouseError('INVALID_CONFIG', {
    detail: `${where}invalid configuration:\n${lines.join('\n')}`,
  })
}
