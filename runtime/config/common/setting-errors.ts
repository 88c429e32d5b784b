/**
 * Collects errors in the settings, and reads single values while checking their format. Messages contain the flag and
 * the rule, never a value that could be a secret.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { formatViolations, GatehouseError, timerMs, type Violation } from '../../../schemas/index.ts'
import { endpointViolation } from '../../oauth/index.ts'
import { originRule, parseOrigin } from '../../net/index.ts'
import { Secret } from '../../observe/index.ts'
import { flagOf, type ProxyInput } from '../proxy/flags.ts'
import { readSecretFile } from './secrets.ts'
import { systemReason } from './system-reason.ts'
import { type Environment, readVariable, type DocumentedVariable } from '../proxy/env.ts'

/** Requires a letter, because a mistyped address must not pass as a name. */
export const hostName = /^(?=.*[a-z])[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?\.?$/i
const maxShown = 40

/** Quotes a value for a message. The value must not be a secret. */
export function quoteShortened(value: string): string {
  return JSON.stringify(value.length > maxShown ? `${value.slice(0, maxShown)}…` : value)
}

/** Returns the reason why an allowed origin is invalid, or undefined when it is valid. */
export function originViolation(origin: string): string | undefined {
  if (parseOrigin(origin) !== undefined) return undefined
  const hint = origin.includes(',') ? '; repeat the flag for each origin' : ''
  return `${originRule}, found ${quoteShortened(origin)}${hint}`
}

export type InputKey = keyof ProxyInput

export class SettingErrors {
  readonly input: ProxyInput
  readonly #violations: Violation[] = []

  constructor(input: ProxyInput) {
    this.input = input
  }

  add(subject: string, rule: string): void {
    this.#violations.push({ path: subject, message: rule })
  }

  about(key: InputKey, rule: string): void {
    this.add(flagOf(key), rule)
  }

  /** Calls `run`. If it throws INVALID_CONFIG, records the message, with `subject` if given. */
  attempt<T>(run: () => T, subject?: string): T | undefined {
    try {
      return run()
    } catch (error) {
      if (!(error instanceof GatehouseError) || error.code !== 'INVALID_CONFIG') throw error
      this.#violations.push({ path: subject ?? '', message: error.message })
      return undefined
    }
  }

  /**
   * Returns a string value. An empty value is an error, because an empty variable in a script must not disable a
   * setting.
   */
  text(key: InputKey): string | undefined {
    const value = this.input[key]
    if (typeof value !== 'string') return undefined
    if (value !== '') return value
    this.about(key, 'must not be empty')
    return undefined
  }

  given(key: InputKey): boolean {
    const value = this.input[key]
    return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false
  }

  integer(key: InputKey, min: number, max: number): number | undefined {
    const value = this.text(key)
    if (value === undefined) return undefined
    const number = /^\d{1,6}$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    this.about(key, `must be a whole number from ${min} to ${max}, found ${quoteShortened(value)}`)
    return undefined
  }

  /** Returns milliseconds. */
  duration(key: InputKey, options: { readonly zero?: boolean } = {}): number | undefined {
    const value = this.text(key)
    if (value === undefined) return undefined
    let milliseconds: number
    try {
      milliseconds = timerMs(value)
    } catch {
      this.about(key, `must be a duration such as 30s, 1m or 2m30s, found ${quoteShortened(value)}`)
      return undefined
    }
    if (milliseconds > 0 || options.zero) return milliseconds
    this.about(key, 'must be greater than zero')
    return undefined
  }

  /** Returns an endpoint URL: https, or http on loopback. */
  url(key: InputKey, allowHttp = false): string | undefined {
    const value = this.text(key)
    if (value === undefined) return undefined
    const problem = endpointViolation(value, allowHttp)
    if (problem !== undefined) this.about(key, problem)
    return value
  }

  /** Returns the scopes, or undefined when none are set. */
  scopes(key: InputKey): readonly string[] | undefined {
    const value = this.input[key]
    if (!Array.isArray(value) || value.length === 0) return undefined
    const list: readonly unknown[] = value
    const scopes = list.flatMap((part) => String(part).split(',')).map((scope) => scope.trim())
    if (scopes.some((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))) {
      this.about(
        key,
        'every scope must consist of printable characters without spaces, quotes and backslashes',
      )
    }
    return scopes
  }

  /** Returns the content of a file. */
  file(key: InputKey): string | undefined {
    const path = this.text(key)
    if (path === undefined) return undefined
    try {
      return readFileSync(path, 'utf8')
    } catch (cause) {
      this.about(key, `the file ${path} cannot be read: ${systemReason(cause)}`)
      return undefined
    }
  }

  secretFile(key: InputKey): Secret | undefined {
    const path = this.text(key)
    return path === undefined ? undefined : this.attempt(() => readSecretFile(path), flagOf(key))
  }

  /** Rejects two settings that exclude each other. */
  exclusive(first: InputKey, second: InputKey): void {
    if (this.given(first) && this.given(second))
      this.add(`${flagOf(first)}, ${flagOf(second)}`, 'set only one of them')
  }

  /** Rejects settings that have no effect without another setting. */
  needs(keys: readonly InputKey[], what: string): void {
    const given = keys.filter((key) => this.given(key))
    if (given.length > 0) this.add(given.map(flagOf).join(', '), `requires ${what}`)
  }

  /** Returns an IP address or a name. Binding fails later if the address does not exist. */
  host(key: InputKey): string | undefined {
    const value = this.text(key)
    if (value === undefined || isIP(value) !== 0 || hostName.test(value)) return value
    this.about(key, `must be an IP address or a host name, found ${quoteShortened(value)}`)
    return undefined
  }

  error(): GatehouseError {
    return new GatehouseError('INVALID_CONFIG', { detail: formatViolations(this.#violations) })
  }

  throwIfAny(): void {
    if (this.#violations.length > 0) throw this.error()
  }
}

/**
 * Reads a secret from the first of several sources that is set: flag, file, environment.
 * Source: docs/reference/specification/proxy-command.md#rules, rule 3.
 */
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
