/** When a process has enough to do for optimized code, and when it is at rest: decided from samples, one a second. */

export interface Sample {
  /** How long the event loop was not idle, since the process began. */
  readonly activeMs: number
  readonly heapBytes: number
}

/** Optimizing begins when this much was done: about a thousand calls. A server that is hardly asked never gets there. */
const busyMs = 1_500
/** At rest: this many samples, in each of which next to nothing happened. */
const restSamples = 5
const restMs = 10
/** Collecting is worth its while after this much work, and a pause that nobody notices up to this heap. */
const worthMs = 50
const maxHeapBytes = 32 * 2 ** 20

export class Load {
  #lastMs = 0
  #restedSamples = 0
  #collectedMs = -worthMs
  #optimizing = false

  /** What is to be done now. `optimize` is said once. */
  next({ activeMs, heapBytes }: Sample): 'optimize' | 'collect' | undefined {
    const rested = activeMs - this.#lastMs < restMs
    this.#lastMs = activeMs
    this.#restedSamples = rested ? this.#restedSamples + 1 : 0
    if (!this.#optimizing && activeMs > busyMs) {
      this.#optimizing = true
      return 'optimize'
    }
    if (this.#restedSamples < restSamples || activeMs - this.#collectedMs < worthMs) return undefined
    if (heapBytes > maxHeapBytes) return undefined
    this.#collectedMs = activeMs
    return 'collect'
  }
}
