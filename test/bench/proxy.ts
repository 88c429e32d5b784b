/**
 * What the proxy costs, against direct access and nginx in the same run.
 *
 * `node test/bench/main.ts proxy` measures everything in about three minutes; `proxy:streams` one part; `proxy:two-cores` only
 * by name where there are only two. The built command is measured, as processes of their own. Tables go to standard output,
 * progress to standard error. A part that fails or takes too long says so in place of its table, and the next one goes on. Read
 * the ratios, not the digits.
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

/** With two cores in all, the load shares them with what is measured: little is left to read. */
const onlyByName = cores > 2 ? [] : ['two-cores']

/** Measures the named parts, or all. Resolves with whether all of them could be measured. */
export function run(wanted: readonly string[] = []): Promise<boolean> {
  build()
  return runParts('proxy', parts, { wanted, onlyByName, limitMs: 3 * 60_000, cleanUp: stopAll })
}

if (import.meta.main) process.exit((await run(process.argv.slice(2))) ? 0 : 1)
