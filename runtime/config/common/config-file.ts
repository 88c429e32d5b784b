/**
 * Reads a configuration file of the runtime: strict YAML, checked by its schema, defaults filled in, all errors at once.
 *
 * Used for every file of `schemas/runtime/`. Does not look at what the file names (variables, other files).
 */
import {
  GatehouseError,
  type Violation,
  type RuntimeName,
  type RuntimeResult,
  validateRuntime,
} from '../../../schemas/index.ts'
import { readTextFile } from './text-file.ts'
import { readYaml } from './yaml.ts'

type Config<N extends RuntimeName> = NonNullable<RuntimeResult<N>['config']>

/** The text of a file. Throws INVALID_CONFIG naming the file. */
export function readConfigText(path: string): string {
  return readTextFile(path, `the configuration file ${path}`)
}

/** Checks a text by the schema of this name. Throws INVALID_CONFIG naming every error, and the source when it is given. */
export function parseConfig<N extends RuntimeName>(name: N, text: string, source?: string): Config<N> {
  const { config, violations } = validateRuntime(name, readDocument(text, source))
  if (!config) throw invalidConfig(violations, source)
  return config
}

/** The one document of a text, unchecked. Throws INVALID_CONFIG when it is not YAML, or more than one. */
export function readDocument(text: string, source?: string): unknown {
  const { documents, violations } = readYaml(text)
  if (violations.length > 0) {
    throw invalidConfig(violations, source)
  }
  if (documents.length > 1) {
    throw invalidConfig([{ path: `line ${documents[1]?.line}`, message: 'begins a second document' }], source)
  }
  return documents[0]?.value
}

/** The error for a configuration with errors. */
export function invalidConfig(violations: readonly Violation[], source?: string): GatehouseError {
  const lines = violations.map(({ path, message }) => `  - ${path === '' ? message : `${path}: ${message}`}`)
  const where = source === undefined ? '' : `${source}: `
  return new GatehouseError('INVALID_CONFIG', {
    detail: `${where}invalid configuration:\n${lines.join('\n')}`,
  })
}
