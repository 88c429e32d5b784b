/**
 * Finds repeated keys and deep nesting in a JSON text, which JSON.parse accepts. Takes linear time and does not
 * recurse.
 */

export interface JsonFault {
  readonly kind: 'duplicate-key' | 'depth'
  readonly line: number
  /** The repeated key; '' for depth. */
  readonly key: string
}

const quote = 0x22
const backslash = 0x5c

/**
 * Returns the first fault; undefined if the text has none. The text does not have to be valid JSON, because the parser
 * reports syntax errors.
 */
export function jsonFault(text: string, maxDepth: number): JsonFault | undefined {
  /** Keys of the open objects; undefined for an open list. */
  const open: (Set<string> | undefined)[] = []
  let isKey = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      const end = stringEnd(text, at)
      const keys = open.at(-1)
      if (isKey && keys !== undefined) {
        const key = decoded(text.slice(at, end + 1))
        if (keys.has(key)) return { kind: 'duplicate-key', line: lineAt(text, at), key }
        keys.add(key)
      }
      isKey = false
      at = end
    } else if (code === 0x7b || code === 0x5b) {
      isKey = code === 0x7b
      open.push(isKey ? new Set() : undefined)
      if (open.length > maxDepth) return { kind: 'depth', line: lineAt(text, at), key: '' }
    } else if (code === 0x7d || code === 0x5d) open.pop()
    else if (code === 0x2c) isKey = open.at(-1) !== undefined
  }
  return undefined
}

/** Returns the index of the closing quote, or the end of the text. */
function stringEnd(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1
  return at
}

/** Decodes escapes, because `"a"` and `"\u0061"` are the same key. */
function decoded(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1)
  try {
    return String(JSON.parse(quoted))
  } catch {
    return quoted
  }
}

function lineAt(text: string, end: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < end; at = text.indexOf('\n', at + 1)) line += 1
  return line
}
