/**
 * Reads secrets from files, from the environment, and from the two providers of named secrets.
 *
 * The module wraps each value in a `Secret` as soon as it is read. Errors contain a secret's path, variable or name,
 * never its value. Only `rotatingSecret` keeps a value in memory. It rereads the file, so a rotated secret takes effect
 * without a restart.
 * Source: docs/reference/specification/proxy-command.md#rules, rule 3 and --remote-forward-headers-secret.
 */
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { GatehouseError, isSwitchedOn } from '../../../schemas/index.ts'
import { systemReason } from './system-reason.ts'
import { type Log, silentLog } from '../../net/index.ts'
import { Secret } from '../../observe/index.ts'
import { type Environment, readVariable, variables } from '../proxy/env.ts'

/** Maximum file size. A larger file is not a secret. */
const maxBytes = 65_536

/** Returns the content of a secret file without surrounding whitespace. Throws INVALID_CONFIG with the path. */
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

/** Milliseconds between checks of a file. */
const recheckMs = 2_000

export interface RotationOptions {
  /** Clock in milliseconds. Default: Date.now. */
  readonly now?: (() => number) | undefined
  /** Receives a warning when the file becomes unusable, and when the reason changes. */
  readonly log?: Log | undefined
}

/**
 * Returns a function that reads the current value of a secret file. A log that is passed to this function replaces the
 * log in the options. When the file becomes unreadable or empty, the last value stays in use, so that a half-finished
 * rotation causes no outage. Throws INVALID_CONFIG if the file initially has no value.
 */
export function rotatingSecret(
  path: string,
  { now = Date.now, log: ownLog = silentLog }: RotationOptions = {},
): (log?: Log) => Secret {
  let current = readSecretFile(path)
  let lookedAt = now()
  let problem: string | undefined
  return (log = ownLog) => {
    if (now() - lookedAt < recheckMs) return current
    lookedAt = now()
    try {
      current = readSecretFile(path)
      problem = undefined
    } catch (error) {
      const reason = error instanceof GatehouseError ? error.message : 'unknown error'
      if (reason !== problem) log.warn('secret not reloaded; the last value stays in use', { reason })
      problem = reason
    }
    return current
  }
}

/** Finds named secrets. */
export interface SecretsProvider {
  readonly kind: 'environment' | 'file'
  /** Returns the secret. Throws an INVALID_CONFIG error that contains the secret's name and the searched location. */
  find(name: string): Secret
  /** Returns the secret's location for watching. Throws like `find`. */
  locate(name: string): SecretLocation
}

/** The absolute path of a file, or the name of a variable. */
export type SecretLocation =
  | { readonly file: string; readonly variable?: undefined }
  | { readonly file?: undefined; readonly variable: string }

/** Returns the provider selected by the environment. Throws INVALID_CONFIG for an unknown or incomplete provider. */
export function makeSecretsProvider(env: Environment): SecretsProvider {
  const kind = readVariable(env, variables.secretsProvider) ?? 'environment'
  if (kind === 'environment') {
    return makeProvider(kind, env, (name) => variableOf(env, name) ?? throwMissing(name, 'the environment'))
  }
  if (kind !== 'file') {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${variables.secretsProvider.name}: must be environment or file, found ${JSON.stringify(kind.slice(0, 40))}`,
    })
  }
  const dir = readVariable(env, variables.secretsDir)
  if (dir === undefined) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${variables.secretsDir.name}: must be a directory when the secrets provider is file`,
    })
  }
  const fallback = !isSwitchedOn(env, variables.disableEnvFallback.name)
  return makeProvider(kind, env, (name) => {
    const file = resolve(dir, name)
    if (exists(file)) return { file }
    return (fallback ? variableOf(env, name) : undefined) ?? throwMissing(name, `the directory ${dir}`)
  })
}

function makeProvider(
  kind: SecretsProvider['kind'],
  env: Environment,
  placeOf: (name: string) => SecretLocation,
): SecretsProvider {
  const locate = (name: string): SecretLocation => placeOf(validName(name))
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

/**
 * Returns the name when it is valid as a file name and as part of a variable name, and is not reserved. Throws
 * otherwise.
 */
function validName(name: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/.test(name) || name.startsWith('__gatehouse_')) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `secret name ${JSON.stringify(name)}: must consist of letters, digits, ".", "_" and "-", and start with a letter or digit`,
    })
  }
  return name
}

/**
 * Looks for `GATEHOUSE_SECRET_<name>`, first with the name as written, then in upper case with `_` for characters that
 * are invalid in variables.
 */
function variableOf(env: Environment, name: string): SecretLocation | undefined {
  const prefix = variables.secretPrefix.name
  const names = [`${prefix}${name}`, `${prefix}${name.toUpperCase().replace(/[^A-Z0-9]/g, '_')}`]
  const variable = names.find((one) => (env[one] ?? '') !== '')
  return variable === undefined ? undefined : { variable }
}

function throwMissing(name: string, where: string): never {
  throw new GatehouseError('INVALID_CONFIG', {
    detail: `secret ${JSON.stringify(name)}: not found in ${where} (as a variable: ${variables.secretPrefix.name}${name.toUpperCase().replace(/[^A-Z0-9]/g, '_')})`,
  })
}
