/** When a process has enough to do for optimized code, and when it is at rest: decided from samples, one a second. */

export interface Sample {
  /** How long the event loop was not idle, since the process began. */
  readonly activeMs: number
  readonly heapBytes: number
  /** The optimizing compilers are let loose already. */
  readonly isOptimizing: boolean
}

/** Optimizing begins when this much was done: about a thousand calls. A server that is hardly asked never gets there. */
const busyMs = 1_500
/**
 * At rest: this many samples, in each of which next to nothing happened. Collecting drops compiled code too, which is made again
 * in no time where nothing was optimized; a server that was busy would need three times the processor time for its next
 * thousands of requests, and is let alone for longer.
 */
const restSamples = 5
const busyRestSamples = 600
const restMs = 10
/** Collecting is worth its while after this much work, and a pause that nobody notices up to this heap. */
const worthMs = 50
const maxHeapBytes = 32 * 2 ** 20

export class Load {
  #lastMs = 0
  #restedSamples = 0
  #collectedMs = -worthMs

  /** What is to be done now. */
  next({ activeMs, heapBytes, isOptimizing }: Sample): 'optimize' | 'collect' | undefined {
    const rested = activeMs - this.#lastMs < restMs
    this.#lastMs = activeMs
    this.#restedSamples = rested ? this.#restedSamples + 1 : 0
    if (!isOptimizing && activeMs > busyMs) return 'optimize'
    const enough = isOptimizing ? busyRestSamples : restSamples
    if (this.#restedSamples < enough || activeMs - this.#collectedMs < worthMs) return undefined
    if (heapBytes > maxHeapBytes) return undefined
    this.#collectedMs = activeMs
    return 'collect'
  }
}
