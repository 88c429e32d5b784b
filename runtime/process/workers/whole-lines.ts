/**
 * Writes the output of workers as whole lines. Several processes that write to one pipe would mix long lines, because
 * only short writes are atomic.
 */
import type { Readable } from 'node:stream'

/** Maximum length of a line. A longer line is written in parts. */
const maxLineBytes = 4 * 1024 * 1024
const newline = 10

/** Writes each line with its line ending. Adds a missing line ending to the last line. */
export function forwardLines(from: Readable, write: (lines: string) => void): void {
  let parts: Buffer[] = []
  let bytes = 0

  function flush(end: string): void {
    if (parts.length > 0) write(Buffer.concat(parts).toString() + end)
    parts = []
    bytes = 0
  }
  from.on('data', (chunk: Buffer) => {
    const at = chunk.lastIndexOf(newline) + 1
    if (at > 0) {
      parts.push(chunk.subarray(0, at))
      flush('')
    }
    if (at === chunk.length) return
    parts.push(chunk.subarray(at))
    bytes += chunk.length - at
    if (bytes > maxLineBytes) flush('\n')
  })
  from.on('end', () => flush('\n'))
  // A broken pipe is treated as the end of the output.
  from.on('error', () => flush('\n'))
}
