/**
 * Parses JSON that JSON.stringify would reproduce exactly: without duplicate members, inexact numbers or alternative
 * spellings. Most items from backends have this form, and JSON.parse is many times faster than a byte-by-byte scan.
 */

/**
 * Text above this size is parsed in slices. Text up to this size always contains fewer values than an item may have.
 */
const maxBytes = 64 * 1024

/** Returns the value of `json`, or undefined if JSON.stringify would write the value differently. */
export function plainValue(json: Buffer, limit: number = maxBytes): unknown {
  if (json.length > limit) return undefined
  const text = json.toString()
  try {
    const value: unknown = JSON.parse(text)
    return JSON.stringify(value) === text ? value : undefined
  } catch {
    return undefined
  }
}
