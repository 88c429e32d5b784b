/** The timer that renews a login before its token expires, and retries a failed renewal for a while. */
import type { RenewalPace } from '../../config/index.ts'
import { waitAfterFailure } from './kept-login.ts'

/** A background renewal starts this long before the token expires. */
export const aheadMs = 60_000
const longestTimerMs = 86_400_000

/** Renews the login. Resolves to `retry` if the same login still needs a renewal. */
export type Renew = () => Promise<'done' | 'retry'>

export class BackgroundRenewal {
  readonly #pace: RenewalPace
  readonly #now: () => number
  #timer: NodeJS.Timeout | undefined

  constructor(pace: RenewalPace, now: () => number) {
    this.#pace = pace
    this.#now = now
  }

  /** Replaces the previous schedule. `expiresAt` is in Unix milliseconds. */
  schedule(expiresAt: number, renew: Renew): void {
    const life = expiresAt - this.#now()
    this.#runAfter(Math.max(life - Math.min(aheadMs, life / 2), 0), () => this.#renew(renew, 0, this.#now()))
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #runAfter(ms: number, work: () => Promise<void>): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void work(), Math.min(ms, longestTimerMs))
    this.#timer.unref()
  }

  /** A request that needs the token retries immediately and reports the failure. */
  async #renew(renew: Renew, failures: number, since: number): Promise<void> {
    const timer = this.#timer
    if ((await renew()) === 'done' || this.#timer !== timer) return
    const wait = waitAfterFailure(this.#pace, failures + 1, this.#now() - since)
    if (wait !== undefined) this.#runAfter(wait, () => this.#renew(renew, failures + 1, since))
  }
}
