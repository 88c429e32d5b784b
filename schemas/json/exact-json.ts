/**
 * JSON and YAML whose integers keep all their digits. An integer that a double would round becomes a raw JSON value, which
 * JSON.stringify writes as it was read. `boundsViolations` rejects such values in manifests and configuration files, where
 * later code expects numbers.
 */

/** Members of JSON that the types of the language do not contain yet. */
interface ExactJson {
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown
  rawJSON(text: string): RawJson
  isRawJSON(value: unknown): value is RawJson
}

interface RawJson {
  readonly rawJSON: string
}

const json = JSON as unknown as ExactJson

/** A double holds every integer with fewer digits. */
const longNumber = /[[:,]\s*-?\d{16}|^\s*-?\d{16}/

/** Like JSON.parse, but an integer that a double would round becomes a raw JSON value. Throws SyntaxError. */
export function exactJson(text: string): unknown {
  if (!longNumber.test(text)) return JSON.parse(text)
  return json.parse(text, function exact(_key, value, { source }) {
    return typeof value === 'number' && source !== undefined ? exactInteger(value, source) : value
  })
}

/** Returns `value`, or a raw JSON value when `source` is an integer whose digits `value` does not have. */
export function exactInteger(value: number, source: string): unknown {
  if (Number.isSafeInteger(value) || source === String(value)) return value
  return /^-?\d+$/.test(source) ? json.rawJSON(source) : value
}

export function isRawJson(value: unknown): value is RawJson {
  return json.isRawJSON(value)
}

/** Describes a number that a double would round, and how to write it instead. */
export function roundedNumber(source: string): string {
  const shown = source.length > 40 ? `${source.slice(0, 39)}…` : source
  return `the number ${shown} would lose digits; numbers are exact up to ${Number.MAX_SAFE_INTEGER}. Write it in quotes if text is accepted here`
}
