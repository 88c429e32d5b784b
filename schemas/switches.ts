/**
 * Variables that switch something on or off: one set of words for all of them, and nothing else is accepted. A word that
 * is not understood could mean that a protection stays off although somebody meant to switch it on.
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

/** What is wrong with the variable's value; undefined when it is a switch, or not set. */
export function switchViolation(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim() ?? ''
  if (value === '' || words.has(value.toLowerCase())) return undefined
  const shown = JSON.stringify(value.length > maxShown ? `${value.slice(0, maxShown)}…` : value)
  return `${name}: must be true or false (or 1, 0, yes, no, on, off), found ${shown}`
}

/** The variable's value in any case of letters; `fallback` when it is empty or not set. Throws INVALID_CONFIG. */
export function isSwitchedOn(
  env: Environment,
  name: string,
  { fallback = false }: { readonly fallback?: boolean } = {},
): boolean {
  const problem = switchViolation(env, name)
  if (problem !== undefined) throw new GatehouseError('INVALID_CONFIG', { detail: problem })
  return words.get(env[name]?.trim().toLowerCase() ?? '') ?? fallback
}
