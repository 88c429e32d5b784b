/**
 * Messages as lines: splits an input stream at line ends, with a bound, and writes messages as one line each.
 * Source: MCP 2025-11-25, transports, "stdio".
 */
import type { Readable, Writable } from 'node:stream'
import { onOneLine } from '../../mcp/index.ts'
import { endBytes, Oversize } from './oversize.ts'

const lf = 0x0a
const cr = 0x0d
const empty: Buffer = Buffer.alloc(0)

/**
 * Lines of the stream without their ends; empty ones are left out. A line beyond `maxBytes` is dropped while it
 * arrives, and what is held of it stands in its place.
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

/** What has arrived of one line. */
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
  /** Writes a whole message as one line; resolves when the reader has space for more. Never rejects. */
  write(message: Buffer): Promise<void>
  /** Resolves when nobody reads any more; what is written after that is dropped. */
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
  // A reader that went away shows as EPIPE: the end of a conversation, not an error.
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
