/**
 * Variables for `gatehouse run`: those of this process, and of the files of `--env-file`. References of a client's file are
 * resolved before anything starts.
 */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { invalidConfig } from '../../../schemas/index.ts'
import { type ClientEntry, type Reference, referencesOf, shown } from '../../clients/index.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The environment wins over the files, and a later file over an earlier one, as for `node --env-file`. Node takes that flag
 * from any place of the command line, so that only a single executable needs this.
 */
export function withEnvFiles(env: Environment, files: readonly string[]): Environment {
  return Object.assign({}, ...files.map(readEnvFile), env) as Environment
}

function readEnvFile(path: string): Environment {
  try {
    return parseEnv(readFileSync(path, 'utf8'))
  } catch (cause) {
    const why = cause instanceof Error && 'code' in cause ? String(cause.code) : 'not a text'
    throw invalidConfig(`--env-file: ${path} cannot be read (${why})`)
  }
}

/** Looks up what a client would take from its environment or ask for. An empty variable gives way to a default. */
export function referenceLookup(env: Environment): (reference: Reference) => string | undefined {
  return ({ kind, name, fallback }) => {
    if (kind !== 'env' && kind !== 'input') return undefined
    const value = env[name]
    return value === '' && fallback !== undefined ? fallback : value
  }
}

/** Throws INVALID_CONFIG that names every variable without a value, and the servers that need it. */
export function refuseUnresolved(
  entries: readonly ClientEntry[],
  lookup: (reference: Reference) => string | undefined,
): void {
  const missing = new Map<string, Set<string>>()
  for (const entry of entries.filter(({ enabled }) => enabled)) {
    for (const reference of referencesOf(entry)) {
      const { kind, name, fallback } = reference
      if ((kind !== 'env' && kind !== 'input') || (lookup(reference) ?? fallback) !== undefined) continue
      missing.set(name, (missing.get(name) ?? new Set()).add(shown(entry.name)))
    }
  }
  if (missing.size === 0) return
  const lines = [...missing].map(([name, servers]) => `${shown(name)}, for ${[...servers].join(', ')}`)
  throw invalidConfig(
    `--from: variables are not set: ${lines.join('; ')}. Set them, or give a file with --env-file FILE`,
  )
}
