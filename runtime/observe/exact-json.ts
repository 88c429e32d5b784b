/** JSON whose whole numbers keep all their digits on the way through a program. */

/** What the language has and its types do not tell yet. */
interface ExactJson {
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown
  rawJSON(text: string): unknown
  isRawJSON(value: unknown): boolean
}

const json = JSON as unknown as ExactJson

/** Shorter ones are held by a double. */
const longNumber = /\d{16}/

/** As JSON.parse; a whole number that a double does not hold stays its text, which JSON.stringify writes as it is. */
export function exactJson(text: string): unknown {
  if (!longNumber.test(text)) return JSON.parse(text)
  return json.parse(text, function exact(_key, value, { source }) {
    const isInexact = typeof value === 'number' && source !== undefined && !Number.isSafeInteger(value)
    return isInexact && /^-?\d+$/.test(source) && source !== String(value) ? json.rawJSON(source) : value
  })
}

export function isRawJson(value: unknown): boolean {
  return json.isRawJSON(value)
}
