/**
 * Loaded into the program under test before anything else (`--import`): answers questions about its memory over the
 * channel to its parent. It changes nothing else, and holds nothing open.
 */
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics, writeHeapSnapshot } from 'node:v8'

export interface ProbeAnswer {
  readonly rss: number
  readonly heapUsed: number
  readonly heapTotal: number
  readonly external: number
  readonly arrayBuffers: number
  /** Heap that was left after a full collection; only when one was asked for. */
  readonly liveHeap: number | undefined
  /** What was left outside the heap then. */
  readonly liveExternal: number | undefined
  /** Things that keep the process alive, by type. */
  readonly handles: Readonly<Record<string, number>>
  readonly contexts: number
  /** Spent on collecting garbage so far, milliseconds. */
  readonly collectedMs: number
  /** CPU time of all threads so far, microseconds. */
  readonly cpuMicros: number
  /** The longest turn of the event loop since the last question, milliseconds; collections that were asked for count. */
  readonly longestTurnMs: number
}

export type ProbeQuestion = { readonly collect: boolean } | { readonly snapshot: string }

/** What a collection frees outside the heap is given back a little later, by another thread. */
const EVICT_MS = 100

/** How often the delay is looked at, which is part of it. */
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
