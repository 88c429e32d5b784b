/**
 * Parses environment variables that switch a feature on or off. All switches accept the same words and nothing else,
 * because a misread word could disable a protection that the operator wants to enable.
 */
import { GatehouseError } from './errors.ts'

type Environment = Readonly<Record<string, string | undefined>>

const words: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['yes', true],
  ['on', true],
  ['false', false],
  ['0', false],
  ['no', false],
  ['off', false],
])
const maxShown = 40

/** Returns the error for the variable's value, or undefined when the value is valid or unset. */
export function switchViolation(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim() ?? ''
  if (value === '' || words.has(value.toLowerCase())) return undefined
  const shown = JSON.stringify(value.length > maxShown ? `${value.slice(0, maxShown)}…` : value)
  return `${name}: must be true or false (or 1, 0, yes, no, on, off), found ${shown}`
}

/** Returns the variable's value, ignoring case, or `fallback` when it is empty or unset. Throws INVALID_CONFIG. */
export function isSwitchedOn(
  env: Environment,
  name: string,
  { fallback = false }: { readonly fallback?: boolean } = {},
): boolean {
  const problem = switchViolation(env, name)
  if (problem !== undefined) throw new GatehouseError('INVALID_CONFIG', { detail: problem })
  return words.get(env[name]?.trim().toLowerCase() ?? '') ?? fallback
}
