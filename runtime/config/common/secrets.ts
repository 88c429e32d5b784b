/**
 * Where secret values come from: files, the environment, and the two providers of named secrets.
 *
 * Values are wrapped at once. Errors name the path, variable or secret, never a value. Nothing is cached but in
 * `rotatingSecret`, which looks at its file again so that a rotated secret is reloaded without a restart.
 * Source: docs/reference/specification/proxy-command.md#rules, rule 3 and --remote-forward-headers-secret.
 */
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { GatehouseError, isSwitchedOn } from '../../../schemas/index.ts'
import { systemReason } from './system-reason.ts'
import { Secret } from '../../observe/index.ts'
import { type Environment, readVariable, variables } from '../proxy/env.ts'

/** Files larger than this are no secrets. */
const maxBytes = 65_536

/** The content of a secret file without surrounding white space. Throws INVALID_CONFIG naming the path. */
export function readSecretFile(path: string): Secret {
  let text: string
  try {
    if (statSync(path).size > maxBytes) throw new Error('too large')
    text = readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `the secret file ${path} cannot be read: ${systemReason(cause)}`,
      cause,
    })
  }
  if (text === '') throw new GatehouseError('INVALID_CONFIG', { detail: `the secret file ${path} is empty` })
  return new Secret(text)
}

/** How long a file's value is used without looking again, in milliseconds. */
const lookEveryMs = 2_000

/**
 * A secret that follows its file. A file that becomes unreadable or empty leaves the last value in use: half of a
 * rotation must not be an outage. Throws INVALID_CONFIG at once when there is no value to begin with.
 */
export function rotatingSecret(path: string, now: () => number = Date.now): () => Secret {
  let current = readSecretFile(path)
  let lookedAt = now()
  return () => {
    if (now() - lookedAt < lookEveryMs) return current
    lookedAt = now()
    try {
      current = readSecretFile(path)
    } catch {
      // Keeps the last value.
    }
    return current
  }
}

/** Finds named secrets. */
export interface SecretsProvider {
  readonly kind: 'environment' | 'file'
  /** Throws INVALID_CONFIG naming the secret and where it was looked for. */
  find(name: string): Secret
  /** Where the secret is, for who follows its changes. Throws as `find` does. */
  locate(name: string): SecretPlace
}

/** An absolute path, or the name of a variable. */
export type SecretPlace =
  | { readonly file: string; readonly variable?: undefined }
  | { readonly file?: undefined; readonly variable: string }

/** The provider that the environment chooses. Throws INVALID_CONFIG for an unknown or half-configured one. */
export function makeSecretsProvider(env: Environment): SecretsProvider {
  const kind = readVariable(env, variables.secretsProvider) ?? 'environment'
  if (kind === 'environment') {
    return finding(kind, env, (name) => variableOf(env, name) ?? missing(name, 'the environment'))
  }
  if (kind !== 'file') {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${variables.secretsProvider.name}: must be environment or file, found ${JSON.stringify(kind.slice(0, 40))}`,
    })
  }
  const dir = readVariable(env, variables.secretsDir)
  if (dir === undefined) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${variables.secretsDir.name}: must name a directory when the secrets provider is file`,
    })
  }
  const fallback = !isSwitchedOn(env, variables.disableEnvFallback.name)
  return finding(kind, env, (name) => {
    const file = resolve(dir, name)
    if (exists(file)) return { file }
    return (fallback ? variableOf(env, name) : undefined) ?? missing(name, `the directory ${dir}`)
  })
}

function finding(
  kind: SecretsProvider['kind'],
  env: Environment,
  placeOf: (name: string) => SecretPlace,
): SecretsProvider {
  const locate = (name: string): SecretPlace => placeOf(checked(name))
  return {
    kind,
    locate,
    find(name) {
      const { file, variable } = locate(name)
      return file === undefined ? new Secret(env[variable] ?? '') : readSecretFile(file)
    },
  }
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

/** A name can be a file name and part of a variable name, and is not one of ours. */
function checked(name: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/.test(name) || name.startsWith('__gatehouse_')) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `secret name ${JSON.stringify(name)}: must be letters, digits, ".", "_" and "-", beginning with a letter or digit`,
    })
  }
  return name
}

/** `GATEHOUSE_SECRET_<name>` as written, then in upper case with `_` for what a variable name cannot hold. */
function variableOf(env: Environment, name: string): SecretPlace | undefined {
  const prefix = variables.secretPrefix.name
  const names = [`${prefix}${name}`, `${prefix}${name.toUpperCase().replace(/[^A-Z0-9]/g, '_')}`]
  const variable = names.find((one) => (env[one] ?? '') !== '')
  return variable === undefined ? undefined : { variable }
}

function missing(name: string, where: string): never {
  throw new GatehouseError('INVALID_CONFIG', {
    detail: `secret ${JSON.stringify(name)}: not found in ${where} (as a variable: ${variables.secretPrefix.name}${name.toUpperCase().replace(/[^A-Z0-9]/g, '_')})`,
  })
}
