/**
 * What a server does about its own memory while it is hardly asked for anything. Most gateways are: one for each team or tool.
 *
 * The launcher (`manifests/bundle/launcher.js`) starts servers without V8's optimizing compilers: code that runs for a moment is
 * not worth them, and what they touch of themselves and leave behind is 11 MB of a virtual server's 97. They are let loose when
 * there is work. At rest, what the start and the last requests left behind is collected, for which V8 itself waits until more
 * has come together: 12 MB of a virtual server.
 */
import { flushCompileCache } from 'node:module'
import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'
import { Load } from './load.ts'

const sampleMs = 1_000
let isOptimizing = false

/** Watches until the process ends, and keeps it from nothing. Flags belong to the whole process, so threads do not watch. */
export function watchLoad(): void {
  if (!isMainThread) return
  const load = new Load()
  setInterval(() => {
    const { active: activeMs } = performance.eventLoopUtilization()
    const todo = load.next({ activeMs, heapBytes: getHeapStatistics().used_heap_size, isOptimizing })
    if (todo === 'optimize') optimize()
    else if (todo === 'collect') collect()
  }, sampleMs).unref()
}

/** Lets the optimizing compilers loose before their time: for large requests, and for the work of threads. */
export function optimize(): void {
  if (isOptimizing || !isMainThread) return
  isOptimizing = true
  for (const flag of ['--maglev', '--opt']) setFlagsFromString(flag)
}

/** Collects everything that can be, and gives the pages back to the system. */
export function collect(): void {
  flushCompileCache()
  setFlagsFromString('--expose-gc')
  const gc: unknown = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  if (typeof gc === 'function') gc({ type: 'major', flavor: 'last-resort' })
}
