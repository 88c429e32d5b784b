/**
 * Responds to questions of its parent about the memory of the program under test. Loaded first (`--import`). It changes
 * nothing else, and keeps no process alive.
 */
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics, writeHeapSnapshot } from 'node:v8'

export interface ProbeAnswer {
  readonly rss: number
  readonly heapUsed: number
  readonly heapTotal: number
  readonly external: number
  readonly arrayBuffers: number
  /** Heap after a full collection. Present only when one was requested. */
  readonly liveHeap: number | undefined
  /** Memory outside the heap after that collection. */
  readonly liveExternal: number | undefined
  /** Handles that keep the process alive, by type. */
  readonly handles: Readonly<Record<string, number>>
  readonly contexts: number
  /** Milliseconds of garbage collection so far. */
  readonly collectedMs: number
  /** CPU time of all threads so far in microseconds. */
  readonly cpuMicros: number
  /** Longest event-loop turn since the last question in milliseconds, including requested collections. */
  readonly longestTurnMs: number
}

export type ProbeQuestion = { readonly collect: boolean } | { readonly snapshot: string }

/** Another thread frees the memory outside the heap a moment after the collection. */
const EVICT_MS = 100

/** Interval of the delay measurement, which is part of the delay. */
const RESOLUTION_MS = 5

let collectedMs = 0
const turns = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
turns.enable()
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) collectedMs += duration
}).observe({ entryTypes: ['gc'] })

async function response(collect: boolean): Promise<ProbeAnswer> {
  const longestTurnMs = Math.max(0, turns.max / 1e6 - RESOLUTION_MS)
  turns.reset()
  const before = process.memoryUsage()
  if (collect) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, EVICT_MS))
    globalThis.gc?.()
  }
  const after = collect ? process.memoryUsage() : undefined
  const handles: Record<string, number> = {}
  const { user, system } = process.cpuUsage()
  for (const type of process.getActiveResourcesInfo()) handles[type] = (handles[type] ?? 0) + 1
  return {
    ...before,
    liveHeap: after?.heapUsed,
    liveExternal: after?.external,
    handles,
    contexts: getHeapStatistics().number_of_native_contexts,
    collectedMs,
    cpuMicros: user + system,
    longestTurnMs,
  }
}

process.on('message', (question: ProbeQuestion) => {
  if ('snapshot' in question) {
    globalThis.gc?.()
    writeHeapSnapshot(question.snapshot)
    process.send?.({ snapshot: question.snapshot })
  } else void response(question.collect).then((said) => process.send?.(said))
})
process.channel?.unref()
