/**
 * Messages as lines: splits an input stream at line ends, with a bound, and writes messages as one line each.
 * Source: MCP 2025-11-25, transports, "stdio".
 */
import type { Readable, Writable } from 'node:stream'

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20

/** Lines of the stream without their ends; empty ones are left out. Throws RangeError for a line beyond `maxBytes`. */
export async function* readLines(input: Readable, maxBytes: number): AsyncGenerator<Buffer> {
  let parts: Buffer[] = []
  let size = 0
  for await (const chunk of input) {
    let rest: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk))
    for (let end = rest.indexOf(LF); end >= 0; end = rest.indexOf(LF)) {
      const line = trimEnd(Buffer.concat([...parts, rest.subarray(0, end)]))
      parts = []
      size = 0
      if (line.length > 0) yield line
      rest = rest.subarray(end + 1)
    }
    size += rest.length
    if (size > maxBytes) throw new RangeError('a line is longer than allowed')
    if (rest.length > 0) parts.push(rest)
  }
  const last = trimEnd(Buffer.concat(parts))
  if (last.length > 0) yield last
}

function trimEnd(line: Buffer): Buffer {
  return line.at(-1) === CR ? line.subarray(0, -1) : line
}

/** Writes whole messages, one line each, waiting while the reader is slow. */
export function lineWriter(output: Writable): (message: Buffer | string) => Promise<void> {
  return async function write(message) {
    const line = oneLine(typeof message === 'string' ? Buffer.from(message) : message)
    if (output.writableEnded || output.destroyed) return
    if (!output.write(Buffer.concat([line, newline]))) {
      await new Promise((resolve) => output.once('drain', resolve).once('close', resolve))
    }
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
