/** Time limits (signals with a timeout), pauses, and retries. */
import { reasonOf } from '../../../net/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import { StepError } from './errors.ts'

/** A signal that fires when `outer` fires, on request, or after a timeout. */
export class Limit {
  readonly #controller = new AbortController()
  readonly #end: () => void

  constructor(clock: Clock, outer: AbortSignal, timeoutMs: number, failure: () => Error) {
    const onOuter = () => this.abort(outer.reason)
    const cancel = clock.after(Math.min(timeoutMs, longestMs), () => this.abort(failure()))
    outer.addEventListener('abort', onOuter, { once: true })
    const end = () => {
      cancel()
      outer.removeEventListener('abort', onOuter)
    }
    this.#end = end
    if (outer.aborted) onOuter()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason)
  }

  /** Releases the timer and the outer signal. */
  end(): void {
    this.#end()
  }
}

/** Maximum delay of a timer. */
const longestMs = 2 ** 31 - 1

/** Waits for a time. Rejects with the signal's reason. */
function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(reasonOf(signal))
    const onAbort = () => {
      cancel()
      reject(reasonOf(signal))
    }
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

export interface Retry {
  /** Number of attempts after the first attempt. */
  readonly count: number
  /** Pause before the second attempt. */
  readonly delayMs: number
}

/**
 * Growth factor and limits of the delays between attempts. Each delay varies by up to half, so callers do not retry at
 * the same time.
 */
const growth = 1.5
const largestFactor = 60
const jitterShare = 0.5
/** Maximum time between the first attempt and the start of the last attempt. */
const totalMs = 15 * 60_000

export interface RetryParts {
  readonly clock: Clock
  /** Returns a random number from 0 to 1. */
  readonly random: () => number
  readonly signal: AbortSignal
  /** Called before each attempt except the first. */
  readonly onRetry: () => void
}

/** Repeats `work` as long as it fails with a retryable error. Rejects with the last failure. */
export async function retrying<T>(retry: Retry, parts: RetryParts, work: () => Promise<T>): Promise<T> {
  const { clock, random, signal, onRetry } = parts
  const startedAt = clock.now()
  let interval = retry.delayMs
  for (let left = retry.count; ; left--) {
    try {
      return await work()
    } catch (error) {
      if (left <= 0 || signal.aborted || !(error instanceof StepError) || !error.retryable) throw error
      const ms = interval * (1 - jitterShare + random() * 2 * jitterShare)
      if (clock.now() - startedAt + ms > totalMs) throw error
      await pause(clock, ms, signal)
      interval = Math.min(interval * growth, largestFactor * retry.delayMs)
      onRetry()
    }
  }
}
