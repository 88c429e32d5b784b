/**
 * Splits a server's output into lines, each of which contains one message, and forwards the lines one at a time.
 * Reading pauses while a line that needs many turns of the event loop is processed.
 *
 * A line that is too long is dropped; reading continues with the next line.
 * Source: MCP 2025-11-25, transports, "stdio".
 */
import { inTurns, joined, largeBytes, TurnQueue } from '../../mcp/index.ts'

/** Maximum length of a message from a server. */
export const maxLineBytes = 64 * 1024 * 1024
/** Maximum length of a log line; longer lines are shortened. */
const maxLogLineBytes = 64 * 1024
/** Number of bytes kept from each end of a line that is too long. */
const endBytes = 512
const lf = 0x0a

export interface LineHandlers {
  readonly onLine: (line: Buffer) => void | Promise<void>
  /** Called when a line is too long or could not be handled. */
  readonly onOverflow: () => void
  /** The first and last bytes of a line that was too long, once it has ended. */
  readonly onSkipped?: (ends: Buffer) => void
}

export class LineReader {
  readonly #handlers: LineHandlers
  readonly #lines: TurnQueue<readonly Buffer[]>
  readonly #maxBytes: number
  #parts: Buffer[] = []
  #size = 0
  #skipping: { readonly first: Buffer; last: Buffer } | undefined

  constructor(handlers: LineHandlers, maxBytes: number = maxLineBytes) {
    this.#handlers = handlers
    this.#maxBytes = maxBytes
    this.#lines = new TurnQueue((parts) => this.#hand(parts), handlers.onOverflow)
  }

  /**
   * Pending while lines wait or are handled, otherwise undefined; never rejects. Do not push more data until the
   * promise settles.
   */
  get busy(): Promise<void> | undefined {
    return this.#lines.busy
  }

  push(chunk: Buffer): void {
    let from = 0
    for (let at = chunk.indexOf(lf); at >= 0; at = chunk.indexOf(lf, from)) {
      this.#add(chunk.subarray(from, at))
      this.#end()
      from = at + 1
    }
    this.#add(chunk.subarray(from))
  }

  /** When the output ends, forwards an incomplete last line. */
  end(): void {
    this.#end()
  }

  /** Stops passing on lines. */
  close(): void {
    this.#lines.close()
  }

  #add(part: Buffer): void {
    if (part.length === 0) return
    if (this.#skipping) {
      this.#skipping.last = lastOf(this.#skipping.last, part)
      return
    }
    this.#parts.push(part)
    this.#size += part.length
    if (this.#size <= this.#maxBytes) return
    this.#skipping = { first: firstOf(this.#parts), last: lastOf(Buffer.alloc(0), part) }
    this.#clear()
    this.#handlers.onOverflow()
  }

  #end(): void {
    const skipped = this.#skipping
    if (skipped) {
      this.#skipping = undefined
      this.#handlers.onSkipped?.(Buffer.concat([skipped.first, skipped.last]))
    } else if (this.#parts.length > 0) this.#lines.push(this.#parts)
    this.#clear()
  }

  #clear(): void {
    this.#parts = []
    this.#size = 0
  }

  #hand(parts: readonly Buffer[]): void | Promise<void> {
    const { onLine } = this.#handlers
    const [only] = parts
    if (only && parts.length === 1) return onLine(only)
    const size = parts.reduce((sum, { length }) => sum + length, 0)
    return size < largeBytes ? onLine(Buffer.concat(parts, size)) : inTurns(joined(parts, size)).then(onLine)
  }
}

function firstOf(parts: readonly Buffer[]): Buffer {
  const found: Buffer[] = []
  let size = 0
  for (const part of parts) {
    if (size >= endBytes) break
    found.push(part.subarray(0, endBytes - size))
    size += part.length
  }
  return Buffer.concat(found)
}

function lastOf(known: Buffer, part: Buffer): Buffer {
  return Buffer.concat([known, part.subarray(-endBytes)]).subarray(-endBytes)
}

/** Reads log output, such as standard error. Calls `onLine` with each line; long lines are shortened. */
export function logLineReader(onLine: (line: string) => void): LineReader {
  return new LineReader(
    {
      onLine: (line) => onLine(line.toString('utf8').trimEnd()),
      onOverflow: () => undefined,
      onSkipped: (ends) => onLine(`${ends.toString('utf8')} (cut)`),
    },
    maxLogLineBytes,
  )
}
