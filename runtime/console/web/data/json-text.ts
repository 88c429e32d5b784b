/**
 * JSON whose numbers stay what they were: a number that a double cannot hold is read as its source text and written
 * back as it was.
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

/** Throws a SyntaxError, or a RangeError for nesting that is too deep. */
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

/** The text of a number as it was written; undefined for everything else. */
export function numberText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return json.isRawJSON(value) ? value.rawJSON : undefined
}

/** Indented, or as it is when it is not JSON. */
export function indented(text: string): string {
  try {
    return writeJson(readJson(text))
  } catch {
    return text
  }
}

/** A short text that says where JSON is wrong; undefined when it is right. */
export function jsonProblem(text: string): string | undefined {
  try {
    readJson(text)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
