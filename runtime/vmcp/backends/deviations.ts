/** Tracks how one backend deviates from the protocol. Reports the beginning and the end of each deviation. */
import type { Deviation, Events } from '../../observe/index.ts'
import type { DeviationReport } from './transport/target.ts'

export class Deviations implements DeviationReport {
  readonly #backend: string
  readonly #events: Pick<Events, 'emit'>
  readonly #found = new Set<Deviation>()

  constructor(backend: string, events: Pick<Events, 'emit'>) {
    this.#backend = backend
    this.#events = events
  }

  note(deviation: Deviation): void {
    if (this.#found.has(deviation)) return
    this.#found.add(deviation)
    this.#report()
  }

  clear(deviation: Deviation): void {
    if (this.#found.delete(deviation)) this.#report()
  }

  #report(): void {
    this.#events.emit('backend_deviates', { backend: this.#backend, deviations: [...this.#found].sort() })
  }
}
