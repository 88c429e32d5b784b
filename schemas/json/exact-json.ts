/**
 * Keeps all digits of integers from JSON and YAML. An integer that a double would round becomes a raw JSON value, which
 * JSON.stringify writes unchanged. `boundsViolations` rejects such values in manifests and configuration files, where
 * later code expects numbers.
 */

/** Members of `JSON` that TypeScript does not yet declare. */
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

/** A double represents every integer with fewer digits exactly. */
const longNumber = /[[:,]\s*-?\d{16}|^\s*-?\d{16}/

/** Like JSON.parse, but an integer that a double would round becomes a raw JSON value. Throws SyntaxError. */
export function exactJson(text: string): unknown {
  if (!longNumber.test(text)) return JSON.parse(text)
  return json.parse(text, function exact(_key, value, { source }) {
    return typeof value === 'number' && source !== undefined ? exactInteger(value, source) : value
  })
}

/** Returns `value`, or a raw JSON value when `source` is an integer that `value` does not represent exactly. */
export function exactInteger(value: number, source: string): unknown {
  if (Number.isSafeInteger(value) || source === String(value)) return value
  return /^-?\d+$/.test(source) ? json.rawJSON(source) : value
}

export function isRawJson(value: unknown): value is RawJson {
  return json.isRawJSON(value)
}

/** Returns a deep copy of a JSON value. Accepts raw JSON values, for which `structuredClone` throws. */
export function cloneJson<T>(value: T): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a copy has the type of the original
  return copy(value) as T
}

function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy)
  if (typeof value !== 'object' || value === null || isRawJson(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copy(member)]))
}

/** Returns the error message for a number that a double would round; it shows another way to write the number. */
export function roundedNumber(source: string): string {
  const shown = source.length > 40 ? `${source.slice(0, 39)}…` : source
  return `the number ${shown} would lose digits; numbers are exact up to ${Number.MAX_SAFE_INTEGER}. Write it in quotes if text is accepted here`
}
