/**
 * The virtual server against direct access to its backends, measured in one run: see issue list in docs/performance.md.
 *
 * `node test/bench/main.ts vmcp` measures everything in about ten minutes; `vmcp:lists` one part. The server under test
 * has one core, load and backends have the others. Tables go to standard output, progress to standard error. A part
 * that fails or takes too long says so in place of its table, and the next one goes on. Those that are about steadiness end with
 * a verdict.
 */
import { large, rates, throughput } from './vmcp/calls.ts'
import { hung } from './vmcp/hung.ts'
import { fairness } from './vmcp/steady/fairness.ts'
import { overload } from './vmcp/steady/overload.ts'
import { idleConnections } from './vmcp/steady/idle-connections.ts'
import { lists } from './vmcp/lists.ts'
import { replicas } from './vmcp/replicas.ts'
import { pinSelf, stopAll } from './vmcp/rig.ts'
import { flood, idle } from './vmcp/sessions.ts'
import { slowReaders } from './vmcp/steady/slow-readers.ts'
import { manySessions } from './vmcp/steady/many-sessions.ts'
import { progress } from './vmcp/table.ts'
import { told } from './vmcp/told.ts'
import type { Measured } from './vmcp/steady/verdict.ts'
import { workers } from './vmcp/workers.ts'

export const parts: Readonly<Record<string, () => Promise<string | Measured>>> = {
  rates,
  throughput,
  large,
  lists,
  hung,
  idle,
  flood,
  replicas,
  told,
  workers,
  overload,
  fairness,
  'slow-readers': slowReaders,
  'idle-connections': idleConnections,
  'many-sessions': manySessions,
}

/** No part needs half of it. */
const PART_MS = 5 * 60_000

/** Measures the named parts, or all. Resolves with whether all of them could be measured. */
export async function run(wanted: readonly string[] = []): Promise<boolean> {
  pinSelf()
  let good = true
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    progress(`vmcp:${name}`)
    const started = performance.now()
    try {
      const measured = await inTime(part())
      console.log(`\n${typeof measured === 'string' ? measured : measured.text}`)
      if (typeof measured !== 'string' && !measured.isGood) good = false
    } catch (error) {
      good = false
      console.log(
        `\nvmcp:${name} could not be measured: ${error instanceof Error ? error.message : String(error)}`,
      )
    } finally {
      await stopAll()
    }
    progress(`vmcp:${name} took ${((performance.now() - started) / 1_000).toFixed(0)} s`)
  }
  return good
}

async function inTime<T>(work: Promise<T>): Promise<T> {
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
