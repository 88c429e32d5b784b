/**
 * Variables for `gatehouse run`, from the environment and from `--env-file` files. References in a client's file are
 * resolved before anything starts.
 */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { invalidConfig } from '../../../schemas/index.ts'
import { decodeText, type ClientEntry, printableName } from '../../toolkit/clients/index.ts'
import { type ReferenceLookup, unresolvedNames } from '../../toolkit/client-files/references.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Merges `--env-file` files with the environment. The environment takes precedence over the files, and a later file
 * takes precedence over an earlier file, as with `node --env-file`. Node itself handles this flag anywhere on the
 * command line, so only the single executable needs this function.
 */
export function withEnvFiles(env: Environment, files: readonly string[]): Environment {
  return Object.assign({}, ...files.map(readEnvFile), env) as Environment
}

function readEnvFile(path: string): Environment {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (cause) {
    const why = cause instanceof Error && 'code' in cause ? String(cause.code) : 'not a text file'
    throw invalidConfig(`--env-file: cannot read ${path} (${why})`)
  }
  return parseEnv(decodeText(bytes, `--env-file: ${path}`).text)
}

/**
 * Throws INVALID_CONFIG, which lists every variable without a value, and the servers that need each of these variables.
 */
export function refuseUnresolved(entries: readonly ClientEntry[], lookup: ReferenceLookup): void {
  const missing = new Map<string, Set<string>>()
  for (const entry of entries.filter(({ enabled }) => enabled)) {
    for (const name of unresolvedNames(entry, lookup)) {
      missing.set(name, (missing.get(name) ?? new Set()).add(printableName(entry.name)))
    }
  }
  if (missing.size === 0) return
  const lines = [...missing].map(([name, servers]) => `${printableName(name)} for ${[...servers].join(', ')}`)
  throw invalidConfig(
    `--from: variables not set: ${lines.join('; ')}. Set them, or pass a file with --env-file FILE`,
  )
}
