/**
 * Reads JSON whose text says no more than its value: no member twice, no number that a double does not hold, nothing
 * that could be written in another way. Most of what backends list is so, and it is read many times faster than byte by byte.
 */

/** What is larger is read in turns. It holds fewer values than an item may. */
const maxBytes = 64 * 1024

/** The value of `json`; undefined when JSON.stringify would write it in another way. */
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
