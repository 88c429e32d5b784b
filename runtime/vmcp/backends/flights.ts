/** Shares work between concurrent callers. There is one run at a time for each key. */
import { abortable, type AnySignal } from '../../net/index.ts'

export class Flights<T> {
  readonly #running = new Map<string, Promise<T>>()

  /**
   * Joins the run for this key, or starts a new run. The key must contain everything that affects the outcome, so a
   * failure does not affect callers with other keys. A caller that aborts (`signal`) stops waiting, but the run
   * continues. `work` therefore needs its own time limit. An entry is removed when its run ends, so there are never
   * more entries than concurrent callers.
   */
  run(key: string, signal: AnySignal, work: () => Promise<T>): Promise<T> {
    let flight = this.#running.get(key)
    if (!flight) {
      flight = work().finally(() => this.#running.delete(key))
      this.#running.set(key, flight)
    }
    return abortable(flight, signal)
  }
}
