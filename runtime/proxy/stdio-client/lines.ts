/**
 * Reads and writes messages as lines: splits an input stream at line ends, up to a maximum length, and writes each
 * message as one line.
 * Source: MCP 2025-11-25, transports, "stdio".
 */
import type { Readable, Writable } from 'node:stream'
import { onOneLine } from '../../mcp/index.ts'
import { endBytes, Oversize } from './oversize.ts'

const lf = 0x0a
const cr = 0x0d
const empty: Buffer = Buffer.alloc(0)

/**
 * Yields the lines of the stream without line endings, skipping empty lines. A line longer than `maxBytes` is dropped
 * as it arrives and yielded as an `Oversize`.
 */
export async function* readLines(input: Readable, maxBytes: number): AsyncGenerator<Buffer | Oversize> {
  let line = new PartialLine(maxBytes)
  for await (const chunk of input) {
    let rest: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk))
    for (let end = rest.indexOf(lf); end >= 0; end = rest.indexOf(lf)) {
      line.add(rest.subarray(0, end))
      const whole = line.end()
      if (whole) yield whole
      line = new PartialLine(maxBytes)
      rest = rest.subarray(end + 1)
    }
    line.add(rest)
  }
  const last = line.end()
  if (last) yield last
}

/** The part of a line received so far. */
class PartialLine {
  readonly #maxBytes: number
  #parts: Buffer[] = []
  #size = 0
  #head: Buffer = empty
  #tail: Buffer = empty

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get #tooLong(): boolean {
    return this.#size > this.#maxBytes
  }

  add(part: Buffer): void {
    if (part.length === 0) return
    this.#size += part.length
    if (this.#tooLong) this.#parts = []
    else this.#parts.push(part)
    if (this.#head.length < endBytes) this.#head = Buffer.concat([this.#head, part.subarray(0, endBytes)])
    this.#tail = Buffer.concat([this.#tail, part.subarray(-endBytes)]).subarray(-endBytes)
  }

  end(): Buffer | Oversize | undefined {
    if (this.#tooLong) return new Oversize(this.#head, this.#tail)
    const line = trimEnd(Buffer.concat(this.#parts, this.#size))
    return line.length > 0 ? line : undefined
  }
}

function trimEnd(line: Buffer): Buffer {
  return line.at(-1) === cr ? line.subarray(0, -1) : line
}

export interface LineWriter {
  /** Writes a message as one line. Resolves when the reader can accept more. Never rejects. */
  write(message: Buffer): Promise<void>
  /** Resolves when the output is closed; later messages are dropped. */
  readonly closed: Promise<void>
}

export function makeLineWriter(output: Writable): LineWriter {
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  let open = true
  let space: Promise<void> | undefined
  const onEnd = (): void => {
    open = false
    close()
  }
  // A reader that exits causes EPIPE, which is the normal end of a conversation.
  output.on('error', onEnd).on('close', onEnd)
  return {
    closed,
    async write(message) {
      if (!open) return
      if (!output.write(Buffer.concat([onOneLine(message), newline]))) {
        space ??= new Promise<void>((resolve) => output.once('drain', resolve)).then(() => {
          space = undefined
        })
      }
      if (space) await Promise.race([space, closed])
    },
  }
}

const newline = Buffer.from('\n')
