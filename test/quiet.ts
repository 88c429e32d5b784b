/**
 * Loaded before each test file by test/run.ts: what a test writes to stderr (warnings of packages, of Node) is held
 * back, and left in a file for test/run.ts to print when the test fails. A file that is run by hand shows all at once.
 */
import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const maxBytes = 1_048_576
const held: Uint8Array[] = []
let size = 0

function hold(chunk: string | Uint8Array): void {
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  held.push(bytes)
  size += bytes.length
  while (size > maxBytes) size -= held.shift()?.length ?? 0
}

process.stderr.write = (
  chunk: string | Uint8Array,
  encodingOrDone?: BufferEncoding | ((error?: Error | null) => void),
  done?: (error?: Error | null) => void,
): boolean => {
  hold(chunk)
  const called = typeof encodingOrDone === 'function' ? encodingOrDone : done
  if (called) queueMicrotask(called)
  return true
}

// Node's own listener writes to the descriptor, past the stream.
process.removeAllListeners('warning')
process.on('warning', (warning) => hold(`${warning.stack ?? warning.message}\n`))

process.on('exit', (code) => {
  const folder = process.env['TEST_STDERR']
  if (code === 0 || held.length === 0 || folder === undefined) return
  const name = `${basename(process.argv[1] ?? 'test')}.${process.pid}`
  writeFileSync(join(folder, name), Buffer.concat(held))
})
