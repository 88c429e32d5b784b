/**
 * Skips over JSON text that may be truncated anywhere.
 *
 * Tolerates invalid JSON, because the result affects only records. Functions return the index after the skipped part,
 * or -1 when the text ends first.
 */
export function skipSpace(text: string, at: number): number {
  let i = at
  while (i < text.length && text.charCodeAt(i) <= 0x20) i++
  return i
}

/** Skips a string; `at` is the index of the opening quote. */
export function skipString(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 0x22) return i + 1
    if (c === 0x5c) i++
  }
  return -1
}

/** Skips a number or literal, or anything else up to the next structural character. */
export function skipScalar(text: string, at: number): number {
  for (let i = at; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c <= 0x20 || c === 0x2c || c === 0x5d || c === 0x7d || c === 0x22 || c === 0x3a)
      return i > at ? i : i + 1
  }
  return -1
}

export function skipValue(text: string, at: number): number {
  const first = text.charCodeAt(at)
  if (first === 0x22) return skipString(text, at)
  if (first !== 0x7b && first !== 0x5b) return skipScalar(text, at)
  let depth = 0
  for (let i = at; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 0x22) {
      i = skipString(text, i) - 1
      if (i < 0) return -1
    } else if (c === 0x7b || c === 0x5b) depth++
    else if ((c === 0x7d || c === 0x5d) && --depth === 0) return i + 1
  }
  return -1
}

/** Decodes a complete string token. Returns undefined for an invalid token. */
export function decodeString(token: string): string | undefined {
  if (!token.includes('\\')) return token.slice(1, -1)
  try {
    const value: unknown = JSON.parse(token)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Calls `visit` with each member of the object at `at`, up to the end of the text. Stops when `visit` returns false.
 */
export function walkMembers(
  text: string,
  at: number,
  visit: (name: string, valueAt: number) => boolean,
): void {
  if (text.charCodeAt(at) !== 0x7b) return
  let i = skipSpace(text, at + 1)
  while (i < text.length && text.charCodeAt(i) === 0x22) {
    const nameEnd = skipString(text, i)
    if (nameEnd < 0) return
    const name = decodeString(text.slice(i, nameEnd)) ?? ''
    const valueAt = skipSpace(text, skipSpace(text, nameEnd) + 1)
    if (valueAt >= text.length || !visit(name, valueAt)) return
    const end = skipValue(text, valueAt)
    if (end < 0) return
    i = skipSpace(text, skipSpace(text, end) + 1)
  }
}
