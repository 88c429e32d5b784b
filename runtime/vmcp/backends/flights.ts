/** Work that concurrent callers share: one run at a time for each key. */
import { abortable, type AnySignal } from '../../net/index.ts'

export class Flights<T> {
  readonly #running = new Map<string, Promise<T>>()

  /**
   * Joins the run of this key, or starts one. The key names everything that decides how the run ends, so that callers
   * of other keys are not failed by it. A caller that gives up (`signal`) ends its own waiting and not the run: `work`
   * needs a time limit of its own. Entries leave with their run, so there are at most as many as concurrent callers.
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
