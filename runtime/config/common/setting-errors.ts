/**
 * Collects what is wrong with the given settings, and reads single values with their shape checked. Messages name the
 * flag and the rule, never a value that could be a secret.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { formatViolations, GatehouseError, timerMs, type Violation } from '../../../schemas/index.ts'
import { endpointViolation } from '../../oauth/index.ts'
import { originRule, parseOrigin } from '../../net/index.ts'
import type { Secret } from '../../observe/index.ts'
import { flagOf, type ProxyInput } from '../proxy/flags.ts'
import { readSecretFile } from './secrets.ts'
import { systemReason } from './system-reason.ts'

/** At least one letter, so that a mistyped address is no name. */
export const hostName = /^(?=.*[a-z])[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?\.?$/i
const maxShown = 40

/** A value that is no secret, as a message quotes it. */
export function shown(value: string): string {
  return JSON.stringify(value.length > maxShown ? `${value.slice(0, maxShown)}…` : value)
}

/** What is wrong with an allowed origin; undefined when nothing is. */
export function originViolation(origin: string): string | undefined {
  if (parseOrigin(origin) !== undefined) return undefined
  const hint = origin.includes(',') ? '; give each origin on its own' : ''
  return `${originRule}, found ${shown(origin)}${hint}`
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

  /** Runs what throws INVALID_CONFIG; its message becomes an error, about `subject` when one is given. */
  attempt<T>(run: () => T, subject?: string): T | undefined {
    try {
      return run()
    } catch (error) {
      if (!(error instanceof GatehouseError) || error.code !== 'INVALID_CONFIG') throw error
      this.#violations.push({ path: subject ?? '', message: error.message })
      return undefined
    }
  }

  /** A single text. Given but empty is an error: an empty variable in a script must not switch anything off. */
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
    this.about(key, `must be a whole number from ${min} to ${max}, found ${shown(value)}`)
    return undefined
  }

  /** Milliseconds. */
  duration(key: InputKey, options: { readonly zero?: boolean } = {}): number | undefined {
    const value = this.text(key)
    if (value === undefined) return undefined
    let milliseconds: number
    try {
      milliseconds = timerMs(value)
    } catch {
      this.about(key, `must be a duration such as 30s, 1m or 2m30s, found ${shown(value)}`)
      return undefined
    }
    if (milliseconds > 0 || options.zero) return milliseconds
    this.about(key, 'must be longer than zero')
    return undefined
  }

  /** An endpoint URL: https, or http on loopback. */
  url(key: InputKey, allowHttp = false): string | undefined {
    const value = this.text(key)
    if (value === undefined) return undefined
    const problem = endpointViolation(value, allowHttp)
    if (problem !== undefined) this.about(key, problem)
    return value
  }

  /** Scopes, or undefined when none were given. */
  scopes(key: InputKey): readonly string[] | undefined {
    const value = this.input[key]
    if (!Array.isArray(value) || value.length === 0) return undefined
    const list: readonly unknown[] = value
    const scopes = list.flatMap((part) => String(part).split(',')).map((scope) => scope.trim())
    if (scopes.some((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))) {
      this.about(key, 'every scope must be printable characters without blanks, quotes and backslashes')
    }
    return scopes
  }

  /** The content of a readable file. */
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

  /** At most one of the two may be given. */
  exclusive(first: InputKey, second: InputKey): void {
    if (this.given(first) && this.given(second))
      this.add(`${flagOf(first)}, ${flagOf(second)}`, 'give one of them, not both')
  }

  /** These mean nothing without something else. */
  needs(keys: readonly InputKey[], what: string): void {
    const given = keys.filter((key) => this.given(key))
    if (given.length > 0) this.add(given.map(flagOf).join(', '), `needs ${what}`)
  }

  /** An IP address or a name; whether it exists is found out when it is bound. */
  host(key: InputKey): string | undefined {
    const value = this.text(key)
    if (value === undefined || isIP(value) !== 0 || hostName.test(value)) return value
    this.about(key, `must be an IP address or a host name, found ${shown(value)}`)
    return undefined
  }

  error(): GatehouseError {
    return new GatehouseError('INVALID_CONFIG', { detail: formatViolations(this.#violations) })
  }

  throwIfAny(): void {
    if (this.#violations.length > 0) throw this.error()
  }
}
