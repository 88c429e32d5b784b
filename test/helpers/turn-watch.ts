/**
 * Measures the turns of a server's event loop. Loaded into its process with `--import`. Uses CPU time of the main
 * thread, which other processes on a busy machine do not lengthen. Messages on the IPC channel: `{watch: true}` starts,
 * `{watch: false}` stops and returns `{longestUs, yardUs}`, where `yardUs` is the cost of a fixed piece of work in this
 * process at that moment.
 */
import { cpuUsage } from './thread-time.ts'

let watching = false
let last = 0
let longest = 0
let yard = 0

/**
 * Runs in each turn that begins at least a millisecond after the previous one. Shorter turns count as one turn, so that
 * the watch does not keep a core busy while the server waits.
 */
function turn(): void {
  if (!watching) return
  const now = cpuUsage()
  longest = Math.max(longest, now - last)
  last = cpuUsage()
  setTimeout(turn, 1)
}

/** A fixed piece of work that resembles the work of servers: parsing, loops over bytes, allocation. */
function yardstick(): number {
  const text = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => ({ a: i, b: [`${i}`] })))
  const bytes = Buffer.from(text)
  const began = cpuUsage()
  const value: unknown[] = JSON.parse(text)
  let sum = value.length
  for (const byte of bytes) sum = (sum * 31 + byte) | 0
  return sum === 0 ? 0 : cpuUsage() - began
}

process.on('message', (message: { readonly watch: boolean }) => {
  if (message.watch) {
    yard = Math.max(yardstick(), yardstick())
    longest = 0
    watching = true
    last = cpuUsage()
    setTimeout(turn, 1)
    process.send?.({ watching: true })
    return
  }
  watching = false
  process.send?.({ longestUs: longest, yardUs: Math.max(yard, yardstick()) })
})
process.channel?.unref()
