/**
 * Limits JSON while it arrives, before the parser runs, because 60 MiB of `[],[],…` would become 1 GiB of arrays.
 *
 * Counts the tokens that create values: commas, colons and opening brackets outside strings. Each token costs at most
 * 70 bytes after parsing. Also tracks the nesting depth. Does not check the syntax; the parser does that.
 */
import { GatehouseError } from '../../schemas/index.ts'

export interface JsonLimits {
  readonly bytes: number
  readonly values: number
  readonly depth: number
}

const [plain, quote, backslash, opener, closer, separator] = [0, 1, 2, 3, 4, 5] as const

/** The token kind of each byte. Bytes of multi-byte characters have the kind `plain`. */
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

  /** Number of values seen so far. */
  get values(): number {
    return this.#values
  }

  /** Scans the next chunk. Throws REQUEST_TOO_LARGE or BAD_REQUEST; the error names the exceeded limit. */
  scan(chunk: Uint8Array): void {
    const { bytes, values, depth } = this.#limits
    this.#bytes += chunk.length
    if (this.#bytes > bytes) throw tooLarge(`the request body is larger than ${bytes / 1024 / 1024} MiB`)
    this.#scan(chunk)
    if (this.#values > values) throw tooLarge(`the request body contains more than ${values} JSON values`)
    if (this.#depth > depth) {
      throw new GatehouseError('BAD_REQUEST', {
        detail: `the request body is nested more than ${depth} levels deep`,
      })
    }
  }

  /** Stops at the byte that exceeds the depth limit. Checks the value limit only at the end of a chunk. */
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

/** Limits for embedded JSON. The byte limit is the maximum size of a ConfigMap. */
const textLimits: JsonLimits = { bytes: 1024 * 1024, values: 200_000, depth: 128 }

/**
 * Parses JSON that is embedded in an object, for example in an annotation or a ConfigMap. Returns undefined if the text
 * is not valid JSON or exceeds the limits.
 */
export function parseEmbeddedJson(text: string): unknown {
  try {
    if (text.length <= textLimits.bytes) {
      new JsonBounds(textLimits).scan(Buffer.from(text))
      return JSON.parse(text)
    }
  } catch {
    // The text is invalid JSON or exceeds a limit.
  }
  return undefined
}
