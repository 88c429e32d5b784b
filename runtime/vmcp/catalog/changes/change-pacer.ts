/**
 * Limits how often announced changes take effect. The first changes take effect immediately. Later changes are delayed
 * by increasing pauses, and all changes during a pause take effect together when the pause ends. After a quiet period,
 * the pauses return to their initial length.
 *
 * Without this limit, a backend that announces a change with every list response would cause an endless loop of
 * requests.
 */
import { systemClock, type Clock } from '../../model/time/clock.ts'

/** Pacing limits. Times are in milliseconds. */
export interface Pace {
  /** Number of changes that take effect before pauses start to increase. */
  readonly free: number
  /**
   * Minimum time between two changes, before the pauses start to increase. A backend announces the same change on all
   * of its connections at once.
   */
  readonly burstMs: number
  readonly firstPauseMs: number
  readonly maxPauseMs: number
  /** Minimum time without a change before the pauses return to their initial length. */
  readonly quietMs: number
  /** Number of changes without a quiet period after which the changes are reported. */
  readonly reportFrom: number
}

export interface ChangePacerOptions {
  readonly pace: Pace
  readonly clock?: Clock
  /** Called when the first key reaches `reportFrom`, and again once all such keys are quiet. */
  readonly onChange: (state: 'paced' | 'quiet') => void
}

interface KeyState {
  /** Number of changes that took effect since the last quiet period. */
  count: number
  appliedAt: number
  /** The change to apply at the end of the pause. */
  pending: (() => void) | undefined
  cancel: (() => void) | undefined
}

const maxKeys = 1_024

export class ChangePacer {
  readonly #options: ChangePacerOptions
  readonly #clock: Clock
  /** Keys in order of last use. */
  readonly #keys = new Map<string, KeyState>()
  readonly #reported = new Set<string>()

  constructor(options: ChangePacerOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  /** Calls `apply` now or at the end of the pause. A later call replaces a pending call. */
  announce(key: string, apply: () => void): void {
    const state = this.#use(key)
    if (state.pending) {
      state.pending = apply
      return
    }
    const waitMs = state.appliedAt + this.#pauseAfter(state.count) - this.#clock.now()
    if (waitMs <= 0) {
      this.#apply(key, state, apply)
      return
    }
    state.pending = apply
    state.cancel?.()
    state.cancel = this.#clock.after(waitMs, () => this.flush(key))
  }

  /** Applies a pending change now, unless the previous change was applied less than `minPauseMs` ago. */
  flush(key: string, minPauseMs = 0): void {
    const state = this.#keys.get(key)
    const pending = state?.pending
    if (!state || !pending || this.#clock.now() - state.appliedAt < minPauseMs) return
    state.pending = undefined
    this.#apply(key, state, pending)
  }

  /** Applies the pending changes of all keys with this prefix. */
  flushAll(prefix: string, minPauseMs = 0): void {
    for (const key of [...this.#keys.keys()]) if (key.startsWith(prefix)) this.flush(key, minPauseMs)
  }

  /** Drops all keys with this prefix and their pending changes. */
  forgetAll(prefix: string): void {
    for (const key of [...this.#keys.keys()]) if (key.startsWith(prefix)) this.forget(key)
  }

  #use(key: string): KeyState {
    const known = this.#keys.get(key)
    this.#keys.delete(key)
    const state = known ?? {
      count: 0,
      appliedAt: Number.NEGATIVE_INFINITY,
      pending: undefined,
      cancel: undefined,
    }
    this.#keys.set(key, state)
    const [oldest] = this.#keys
    if (this.#keys.size > maxKeys && oldest) {
      const [name, { pending }] = oldest
      this.forget(name)
      pending?.()
    }
    return state
  }

  #apply(key: string, state: KeyState, apply: () => void): void {
    const { quietMs, reportFrom } = this.#options.pace
    state.count++
    state.appliedAt = this.#clock.now()
    state.cancel?.()
    const quietAfterMs = Math.max(quietMs, 2 * this.#pauseAfter(state.count))
    state.cancel = this.#clock.after(quietAfterMs, () => this.forget(key))
    if (state.count >= reportFrom && !this.#reported.has(key)) {
      this.#reported.add(key)
      if (this.#reported.size === 1) this.#options.onChange('paced')
    }
    apply()
  }

  #pauseAfter(count: number): number {
    const { free, burstMs, firstPauseMs, maxPauseMs } = this.#options.pace
    if (count === 0) return 0
    return count < free ? burstMs : Math.min(firstPauseMs * 2 ** Math.min(count - free, 30), maxPauseMs)
  }

  /** Drops a key and its pending change. */
  forget(key: string): void {
    this.#keys.get(key)?.cancel?.()
    this.#keys.delete(key)
    if (this.#reported.delete(key) && this.#reported.size === 0) this.#options.onChange('quiet')
  }

  /** Drops all pending changes. */
  close(): void {
    for (const { cancel } of this.#keys.values()) cancel?.()
    this.#keys.clear()
  }
}
