/**
 * What the proxy costs, against direct access and nginx in the same run.
 *
 * `node test/bench/main.ts proxy` measures everything in about four minutes; `proxy:streams` one part. The built command
 * is measured, as processes of their own. Tables go to standard output, progress to standard error. A part that fails or
 * takes too long says so in place of its table, and the next one goes on. Read the ratios, not the digits.
 */
import { addedLatency } from './proxy/added-latency.ts'
import { build, stopAll } from './proxy/rig.ts'
import { sessions } from './proxy/sessions.ts'
import { streamMemory, streams } from './proxy/streams.ts'
import { oneCore, twoCores } from './proxy/throughput.ts'
import { progress } from './vmcp/table.ts'

export const parts: Readonly<Record<string, () => Promise<string>>> = {
  'one-core': oneCore,
  'two-cores': twoCores,
  'added-latency': addedLatency,
  streams,
  'stream-memory': streamMemory,
  sessions,
}

/** No part needs half of it. */
const PART_MS = 3 * 60_000

/** Measures the named parts, or all. Resolves with whether all of them could be measured. */
export async function run(wanted: readonly string[] = []): Promise<boolean> {
  build()
  let good = true
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    progress(`proxy:${name}`)
    const started = performance.now()
    try {
      console.log(`\n${await inTime(part())}`)
    } catch (error) {
      good = false
      const why = error instanceof Error ? error.message : String(error)
      console.log(`\nproxy:${name} could not be measured: ${why}`)
    } finally {
      await stopAll()
    }
    progress(`proxy:${name} took ${((performance.now() - started) / 1_000).toFixed(0)} s`)
  }
  return good
}

async function inTime(work: Promise<string>): Promise<string> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${PART_MS / 60_000} minutes`)), PART_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

if (import.meta.main) process.exit((await run(process.argv.slice(2))) ? 0 : 1)
