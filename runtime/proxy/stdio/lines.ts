/**
 * Messages as lines: splits an input stream at line ends, with a bound, and writes messages as one line each.
 * Source: MCP 2025-11-25, transports, "stdio".
 */
import type { Readable, Writable } from 'node:stream'

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20

/**
 * Lines of the stream without their ends; empty ones are left out. A line beyond `maxBytes` is dropped while it
 * arrives, and `undefined` stands for it.
 */
export async function* readLines(input: Readable, maxBytes: number): AsyncGenerator<Buffer | undefined> {
  let parts: Buffer[] = []
  let size = 0
  for await (const chunk of input) {
    let rest: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk))
    for (let end = rest.indexOf(LF); end >= 0; end = rest.indexOf(LF)) {
      if (size + end > maxBytes) yield undefined
      else {
        const line = trimEnd(Buffer.concat([...parts, rest.subarray(0, end)]))
        if (line.length > 0) yield line
      }
      parts = []
      size = 0
      rest = rest.subarray(end + 1)
    }
    size += rest.length
    if (size > maxBytes) parts = []
    else if (rest.length > 0) parts.push(rest)
  }
  if (size > maxBytes) yield undefined
  const last = trimEnd(Buffer.concat(parts))
  if (last.length > 0) yield last
}

function trimEnd(line: Buffer): Buffer {
  return line.at(-1) === CR ? line.subarray(0, -1) : line
}

export interface LineWriter {
  /** Writes a whole message as one line; resolves when the reader has room for more. Never rejects. */
  write(message: Buffer): Promise<void>
  /** Resolves when nobody reads any more; what is written after that is dropped. */
  readonly closed: Promise<void>
}

export function makeLineWriter(output: Writable): LineWriter {
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  let open = true
  let room: Promise<void> | undefined
  const onEnd = (): void => {
    open = false
    close()
  }
  // A reader that went away shows as EPIPE: the end of a conversation, not a fault.
  output.on('error', onEnd).on('close', onEnd)
  return {
    closed,
    async write(message) {
      if (!open) return
      if (!output.write(Buffer.concat([oneLine(message), newline]))) {
        room ??= new Promise<void>((resolve) => output.once('drain', resolve)).then(() => {
          room = undefined
        })
      }
      if (room) await Promise.race([room, closed])
    },
  }
}

const newline = Buffer.from('\n')

/** In JSON a raw line end can only be white space between tokens, so a blank says the same. */
function oneLine(message: Buffer): Buffer {
  if (message.indexOf(LF) < 0 && message.indexOf(CR) < 0) return message
  const copy = Buffer.from(message)
  for (let i = 0; i < copy.length; i++) if (copy[i] === LF || copy[i] === CR) copy[i] = SPACE
  return copy
}
