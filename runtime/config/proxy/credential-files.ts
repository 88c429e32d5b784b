/**
 * Credentials in files that are read again for each use, so that a replaced file takes effect without a restart. If the
 * new file is unusable, the last value stays in use, and the log contains a warning.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Log } from '../../net/index.ts'
import { type AssertionAlg, type ClientKey, readClientKey, readGrantAssertion } from '../../oauth/index.ts'
import type { Secret } from '../../observe/index.ts'
import { readSecretFile } from '../common/secrets.ts'
import type { InputKey, SettingErrors } from '../common/setting-errors.ts'
import { flagOf } from './flags.ts'

/** Returns the current value. The log receives a warning when the file becomes unusable, and when the reason changes. */
export type CredentialFile<T> = (log: Log) => T

/** Returns undefined when the setting is absent. Reports an unusable file. */
export function secretInFile(violations: SettingErrors, key: InputKey): CredentialFile<Secret> | undefined {
  return credentialFile(violations, key, readSecretFile)
}

/** Like `secretInFile`, for a private key. */
export function privateKeyInFile(
  violations: SettingErrors,
  key: InputKey,
  alg?: AssertionAlg,
): CredentialFile<ClientKey> | undefined {
  return credentialFile(violations, key, (path) =>
    readClientKey(readSecretFile(path).reveal(), `the file ${path}`, alg),
  )
}

/** Like `secretInFile`, for a signed JWT. */
export function jwtInFile(violations: SettingErrors, key: InputKey): CredentialFile<string> | undefined {
  return credentialFile(violations, key, (path) =>
    readGrantAssertion(readSecretFile(path).reveal(), `the file ${path}`),
  )
}

function credentialFile<T>(
  violations: SettingErrors,
  key: InputKey,
  readFile: (path: string) => T,
): CredentialFile<T> | undefined {
  const path = violations.text(key)
  if (path === undefined) return undefined
  const first = violations.attempt(() => readFile(path), flagOf(key))
  return first === undefined ? undefined : rereading(first, () => readFile(path))
}

function rereading<T>(first: T, read: () => T): CredentialFile<T> {
  let last = first
  let problem: string | undefined
  return (log) => {
    try {
      last = read()
      problem = undefined
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
      const reason = error.message
      if (reason !== problem) log.warn('credential not reloaded; the last value stays in use', { reason })
      problem = reason
    }
    return last
  }
}
