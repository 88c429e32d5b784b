/**
 * Writes canonical JSON, independent of key order, and hashes it for change detection. The hooks and the runtime must
 * produce the same text. Follows the key order of RFC 8785 (UTF-16 code units).
 */
import { createHash } from 'node:crypto'
import { isRawJson } from './json/exact-json.ts'

/**
 * Returns JSON without spaces, with sorted keys and without undefined members. Throws TypeError for values that JSON
 * cannot represent (functions, bigint, NaN, infinity, a cycle).
 */
export function canonicalJson(value: unknown): string {
  return write(value, new Set())
}

function write(value: unknown, above: Set<object>): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value)
  if (typeof value !== 'object') throw new TypeError(`canonical JSON cannot represent a ${typeof value}`)
  if (isRawJson(value)) return value.rawJSON
  if (above.has(value)) throw new TypeError('canonical JSON cannot represent a cycle')
  above.add(value)
  const text = Array.isArray(value) ? list(value, above) : members(value, above)
  above.delete(value)
  return text
}

function list(items: readonly unknown[], above: Set<object>): string {
  return `[${items.map((item) => (item === undefined ? 'null' : write(item, above))).join(',')}]`
}

function members(value: object, above: Set<object>): string {
  const parts: string[] = []
  const entries: [string, unknown][] = Object.entries(value)
  for (const [key, member] of entries.sort(([a], [b]) => byText(a, b))) {
    if (member !== undefined) parts.push(`${JSON.stringify(key)}:${write(member, above)}`)
  }
  return `{${parts.join(',')}}`
}

/** Returns the SHA-256 of the canonical JSON, in lowercase hex. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex')
}

/** Compares two strings by code unit, independently of the locale. Returns 0 for equal strings. */
export function byText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
