/**
 * What workers print, as whole lines on the output of this process. Several processes that write to one pipe cut into
 * each other's lines as soon as these are longer than what the system writes at once.
 */
import type { Readable } from 'node:stream'

/** A line that is longer is written in parts. */
const maxLineBytes = 4 * 1024 * 1024
const newline = 10

/** Writes each line with its end. The last one gets an end when it has none. */
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
  // A pipe that breaks has ended.
  from.on('error', () => flush('\n'))
}
