/**
 * Reads a secret from the first of several sources that is set: flag, file, environment.
 * Source: docs/reference/specification/proxy-command.md#rules, rule 3.
 */
import { Secret } from '../../observe/index.ts'
import { type Environment, readVariable, type DocumentedVariable } from '../proxy/env.ts'
import type { SettingErrors, InputKey } from './setting-errors.ts'

export function secretFrom(
  violations: SettingErrors,
  env: Environment,
  from: { readonly flag: InputKey; readonly file?: InputKey; readonly variable: DocumentedVariable },
): Secret | undefined {
  const typed = violations.text(from.flag)
  if (typed !== undefined) return new Secret(typed)
  if (from.file !== undefined && violations.given(from.file)) return violations.secretFile(from.file)
  const value = readVariable(env, from.variable)
  return value === undefined ? undefined : new Secret(value)
}
