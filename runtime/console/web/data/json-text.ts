/**
 * Parses and writes JSON without losing digits. The parser keeps the source text of a number that a double cannot
 * represent, and the writer writes that text unchanged.
 */
interface RawJson {
  readonly rawJSON: string
}

interface SourceJson {
  parse(text: string, revive: (key: string, value: unknown, context: { source?: string }) => unknown): unknown
  rawJSON(text: string): RawJson
  isRawJSON(value: unknown): value is RawJson
}

const json = JSON as unknown as SourceJson

/** Parses JSON. Throws a SyntaxError, or a RangeError for deep nesting. */
export function readJson(text: string): unknown {
  return json.parse(text, (_, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? json.rawJSON(source)
      : value,
  )
}

export function writeJson(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? 'null'
}

/** Returns the source text of a number, or undefined for any other value. */
export function numberText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return json.isRawJSON(value) ? value.rawJSON : undefined
}

/** Indents JSON; returns other text unchanged. */
export function indented(text: string): string {
  try {
    return writeJson(readJson(text))
  } catch {
    return text
  }
}

/** Describes where the JSON is invalid; undefined when it is valid. */
export function jsonProblem(text: string): string | undefined {
  try {
    readJson(text)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
