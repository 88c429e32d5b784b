/**
 * Measures the virtual server against direct access to its backends in one run: docs/evidence/performance.md.
 *
 * `node test/bench/main.ts vmcp` measures everything in about ten minutes, and `vmcp:lists` one part;
 * `vmcp:many-sessions` runs only by name. The server under test has one core, load and backends have the others. Tables
 * go to standard output, progress to standard error. A part that fails or takes too long prints its error instead of a
 * table, and the next part runs. Parts about steadiness end with a verdict.
 */
import { type Parts, runParts } from './common/parts.ts'
import { large, rates, throughput } from './vmcp/calls.ts'
import { hung } from './vmcp/hung.ts'
import { fairness } from './vmcp/steady/fairness.ts'
import { overload } from './vmcp/steady/overload.ts'
import { idleConnections } from './vmcp/steady/idle-connections.ts'
import { lists } from './vmcp/lists.ts'
import { replicas } from './vmcp/replicas.ts'
import { pinSelf, stopAll } from './vmcp/rig.ts'
import { idle } from './vmcp/sessions.ts'
import { slowReaders } from './vmcp/steady/slow-readers.ts'
import { manySessions } from './vmcp/steady/many-sessions.ts'
import { told } from './vmcp/told.ts'
import { workers } from './vmcp/workers.ts'

export const parts: Parts = {
  rates,
  throughput,
  large,
  lists,
  hung,
  idle,
  replicas,
  told,
  workers,
  overload,
  fairness,
  'slow-readers': slowReaders,
  'idle-connections': idleConnections,
  'many-sessions': manySessions,
}

/** `idle` also measures the cost of a session. This part measures a whole pod. */
const onlyByName = ['many-sessions']

/** Measures the named parts, or all. Resolves with true when all were measured. */
export function run(wanted: readonly string[] = []): Promise<boolean> {
  pinSelf()
  return runParts('vmcp', parts, { wanted, onlyByName, limitMs: 5 * 60_000, cleanUp: stopAll })
}
