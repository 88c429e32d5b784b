/**
 * Measures the cost of the proxy against direct access and nginx in the same run.
 *
 * `node test/bench/main.ts proxy` measures everything in about three minutes, and `proxy:streams` one part; with only
 * two cores, `proxy:two-cores` runs only by name. Measures the built command in separate processes. Tables go to
 * standard output, progress to standard error. A part that fails or takes too long prints its error instead of a table,
 * and the next part runs. Read the ratios, not the digits.
 */
import { cores } from './common/cores.ts'
import { type Parts, runParts } from './common/parts.ts'
import { addedLatency } from './proxy/added-latency.ts'
import { build, stopAll } from './proxy/rig.ts'
import { sessions } from './proxy/sessions.ts'
import { streamMemory, streams } from './proxy/streams.ts'
import { oneCore, twoCores } from './proxy/throughput.ts'

export const parts: Parts = {
  'one-core': oneCore,
  'two-cores': twoCores,
  'added-latency': addedLatency,
  streams,
  'stream-memory': streamMemory,
  sessions,
}

/** With only two cores, load and measured program share them, and the figures mean little. */
const onlyByName = cores > 2 ? [] : ['two-cores']

/** Measures the named parts, or all. Resolves with true when all were measured. */
export function run(wanted: readonly string[] = []): Promise<boolean> {
  build()
  return runParts('proxy', parts, { wanted, onlyByName, limitMs: 3 * 60_000, cleanUp: stopAll })
}

if (import.meta.main) process.exit((await run(process.argv.slice(2))) ? 0 : 1)
