/**
 * Loaded before each test file by test/run.ts: what a test writes to stderr (warnings of packages, of Node) is held
 * back, and left in a file for test/run.ts to print when the test fails. A file that is run by hand shows all at once.
 * What is skipped, and for want of what, is left in a file as well, and so is the time that each file took.
 */
import { writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'

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

const skipped: string[] = []
let line = ''
const write = process.stdout.write.bind(process.stdout) as (...args: unknown[]) => boolean

process.stdout.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
  const lines = (line + (typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString())).split('\n')
  line = lines.pop()?.slice(-maxBytes) ?? ''
  for (const one of lines) {
    const [, name, reason] = /^ *ok \d+ - (.*) # SKIP ?(.*)$/.exec(one) ?? []
    if (name !== undefined) skipped.push(`${name}: ${reason || 'no reason given'}`)
  }
  return write(chunk, ...rest)
}

process.on('exit', (code) => {
  const folder = process.env['TEST_NOTES']
  if (folder === undefined) return
  const file = process.argv[1] ?? 'test'
  const name = `${basename(file)}.${process.pid}`
  writeFileSync(join(folder, 'seconds', name), `${process.uptime().toFixed(1)} ${relative('', file)}\n`)
  if (skipped.length > 0) writeFileSync(join(folder, 'skipped', name), `${skipped.join('\n')}\n`)
  if (code !== 0 && held.length > 0) writeFileSync(join(folder, 'stderr', name), Buffer.concat(held))
})
