/**
 * Finds the offsets of table headers and key-value pairs in TOML text.
 *
 * Expects valid text, because it finds the ends of strings, lists and inline tables without checking their contents.
 * Source: TOML 1.0.0.
 */

/** A `[header]` or a `key = value`, from the start of its line to the end of its value. */
export interface TomlStatement {
  readonly kind: 'table' | 'list-of-tables' | 'pair'
  /** The dotted name, which is absolute for headers and relative to the table above for pairs. */
  readonly path: readonly string[]
  /** Offset of the start of the line. */
  readonly start: number
  /** Offset after the closing bracket or the value. A comment can follow. */
  readonly end: number
}

export function scanToml(text: string): readonly TomlStatement[] {
  const statements: TomlStatement[] = []
  let at = 0
  while (at < text.length) {
    at = skip(text, at, /[ \t\r\n]*/y)
    if (at >= text.length) break
    if (text[at] === '#') {
      at = skip(text, at, /[^\n]*/y)
      continue
    }
    const start = text.lastIndexOf('\n', at - 1) + 1
    const statement = text[at] === '[' ? header(text, at) : pair(text, at)
    statements.push({ ...statement, start })
    // Only a comment can follow on the same line.
    at = skip(text, statement.end, /[^\n]*/y)
  }
  return statements
}

type Unplaced = Omit<TomlStatement, 'start'>

function header(text: string, at: number): Unplaced {
  const isList = text.startsWith('[[', at)
  const { path, end } = dottedName(text, at + (isList ? 2 : 1))
  return { kind: isList ? 'list-of-tables' : 'table', path, end: end + (isList ? 2 : 1) }
}

function pair(text: string, at: number): Unplaced {
  const { path, end } = dottedName(text, at)
  return { kind: 'pair', path, end: valueEnd(text, skip(text, end + 1, /[ \t]*/y)) }
}

/** A dotted name; `end` is the offset of the bracket or equals sign after it. */
function dottedName(text: string, from: number): { path: string[]; end: number } {
  const path: string[] = []
  let at = from
  for (;;) {
    at = skip(text, at, /[ \t]*/y)
    const quote = text[at]
    if (quote === '"' || quote === "'") {
      const end = stringEnd(text, at)
      path.push(unquoted(text.slice(at, end)))
      at = end
    } else {
      const end = skip(text, at, /[\w-]*/y)
      if (end === at) throw new RangeError('the text is not TOML')
      path.push(text.slice(at, end))
      at = end
    }
    at = skip(text, at, /[ \t]*/y)
    if (text[at] !== '.') return { path, end: at }
    at++
  }
}

function unquoted(quoted: string): string {
  if (quoted.startsWith("'")) return quoted.slice(1, -1)
  // Basic strings support JSON's escapes and two additional escapes.
  const json = quoted
    .replaceAll(/\\U([0-9a-fA-F]{8})/g, (_all, hex: string) => {
      return JSON.stringify(String.fromCodePoint(Number.parseInt(hex, 16))).slice(1, -1)
    })
    .replaceAll('\\e', '\\u001b')
    .replaceAll('\t', '\\t')
  return String(JSON.parse(json))
}

function valueEnd(text: string, at: number): number {
  const first = text[at]
  if (first === '"' || first === "'") return stringEnd(text, at)
  if (first === '[' || first === '{') return bracketEnd(text, at)
  return skip(text, at, /[^\s#,\]}]*(?: \d[^\s#,\]}]*)?/y)
}

/** Returns the offset after the matching bracket. */
function bracketEnd(text: string, at: number): number {
  let depth = 0
  for (let i = at; i < text.length; i++) {
    const char = text[i]
    if (char === '"' || char === "'") i = stringEnd(text, i) - 1
    else if (char === '#') i = skip(text, i, /[^\n]*/y) - 1
    else if (char === '[' || char === '{') depth++
    else if ((char === ']' || char === '}') && --depth === 0) return i + 1
  }
  return text.length
}

const longEnds = [/"{0,2}/y, /'{0,2}/y] as const

function stringEnd(text: string, at: number): number {
  const quote = text.charAt(at)
  const long = text.startsWith(quote.repeat(3), at)
  const escapes = quote === '"'
  const close = long ? quote.repeat(3) : quote
  for (let i = at + close.length; i < text.length; i++) {
    if (escapes && text[i] === '\\') i++
    else if (text.startsWith(close, i)) {
      // Up to two quotes can precede the closing three.
      return skip(text, i + close.length, long ? longEnds[quote === '"' ? 0 : 1] : /(?:)/y)
    }
  }
  return text.length
}

function skip(text: string, at: number, pattern: RegExp): number {
  pattern.lastIndex = at
  return at + (pattern.exec(text)?.[0].length ?? 0)
}
