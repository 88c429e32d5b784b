/**
 * Bounds JSON while it arrives, before it becomes values: `[],[],…` of sixty mebibytes is a gibibyte of lists.
 *
 * Counts what makes values (commas, colons and opening brackets outside of strings; each costs 70 bytes at most once it is
 * parsed) and how deep they nest. Does not check the syntax: what is no JSON is for the parser to refuse.
 */
import { GatehouseError } from '../../schemas/index.ts'

export interface JsonLimits {
  readonly bytes: number
  readonly values: number
  readonly depth: number
}

const [plain, quote, backslash, opener, closer, separator] = [0, 1, 2, 3, 4, 5] as const

/** What each byte is. Bytes of longer characters are plain. */
const kinds = new Uint8Array(256)
for (const [characters, kind] of [
  ['"', quote],
  ['\\', backslash],
  ['[{', opener],
  [']}', closer],
  [',:', separator],
] as const)
  for (const byte of Buffer.from(characters)) kinds[byte] = kind

export class JsonBounds {
  readonly #limits: JsonLimits
  #bytes = 0
  #values = 0
  #depth = 0
  #inString = false
  #escaped = false

  constructor(limits: JsonLimits) {
    this.#limits = limits
  }

  /** Counted so far. */
  get values(): number {
    return this.#values
  }

  /** Takes the next bytes. Throws REQUEST_TOO_LARGE or BAD_REQUEST naming the limit. */
  take(chunk: Uint8Array): void {
    const { bytes, values, depth } = this.#limits
    this.#bytes += chunk.length
    if (this.#bytes > bytes) throw tooLarge(`the request body is larger than ${bytes / 1024 / 1024} MiB`)
    this.#scan(chunk)
    if (this.#values > values) throw tooLarge(`the request body holds more than ${values} JSON values`)
    if (this.#depth > depth) {
      throw new GatehouseError('BAD_REQUEST', {
        detail: `the request body is nested more than ${depth} levels deep`,
      })
    }
  }

  /** Stops at the byte that is too deep; the values of a whole chunk may be counted beyond their limit. */
  #scan(chunk: Uint8Array): void {
    let values = this.#values
    let depth = this.#depth
    let inString = this.#inString
    let escaped = this.#escaped
    for (let at = 0; at < chunk.length && depth <= this.#limits.depth; at++) {
      const kind = kinds[chunk[at] ?? 0]
      if (inString) {
        if (escaped) escaped = false
        else if (kind === backslash) escaped = true
        else if (kind === quote) inString = false
      } else if (kind !== plain) {
        if (kind === quote) inString = true
        else if (kind === closer) depth -= 1
        else if (kind !== backslash) {
          values += 1
          if (kind === opener) depth += 1
        }
      }
    }
    this.#values = values
    this.#depth = depth
    this.#inString = inString
    this.#escaped = escaped
  }
}

function tooLarge(detail: string): GatehouseError {
  return new GatehouseError('REQUEST_TOO_LARGE', { detail })
}

/** As much as a ConfigMap can hold. */
const textLimits: JsonLimits = { bytes: 1024 * 1024, values: 200_000, depth: 128 }

/** The JSON in a text that is part of an object (an annotation, a ConfigMap); undefined when there is none within bounds. */
export function jsonIn(text: string): unknown {
  try {
    if (text.length <= textLimits.bytes) {
      new JsonBounds(textLimits).take(Buffer.from(text))
      return JSON.parse(text)
    }
  } catch {
    // Not JSON, or too much of it.
  }
  return undefined
}
