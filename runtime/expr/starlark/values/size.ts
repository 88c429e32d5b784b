/** Determines the truth value and the length of values. */
import { Bytes, Float, Range, TextView } from './scalars.ts'
import { List, type StarlarkValue, Tuple } from './values.ts'

/** Returns whether a value counts as true in conditions. */
export function truth(value: StarlarkValue): boolean {
  if (value === null || typeof value === 'boolean') return value === true
  if (typeof value === 'number') return value !== 0
  if (typeof value === 'bigint') return true
  if (typeof value === 'string') return value !== ''
  if (value instanceof Float) return value.value !== 0
  if (value instanceof Bytes) return value.data !== ''
  if (value instanceof Tuple || value instanceof List) return value.items.length > 0
  if (value instanceof Range) return value.length > 0
  if (value instanceof TextView) return value.text !== ''
  return value.type !== 'dict' || value.size > 0
}

/** Returns the number of elements, or undefined for values without a length. */
export function lengthOf(value: StarlarkValue): number | undefined {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null || value instanceof Float) return undefined
  if (value instanceof Bytes) return value.data.length
  if (value instanceof Tuple || value instanceof List) return value.items.length
  if (value instanceof Range) return value.length
  if (value instanceof TextView) return value.method.startsWith('elem') ? value.text.length : undefined
  return value.type === 'dict' ? value.size : undefined
}
