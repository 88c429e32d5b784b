/** A request to a backend that waits for its response: settled once, by the response, an error, or the end of its time. */
import { type InFlightEntry, reasonOf } from '../../../net/index.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { Relay } from '../connection.ts'
import type { Deadline } from '../../model/time/deadline.ts'
import type { Inbound, Pending } from './inbound.ts'

export class RoundTrip implements Pending {
  readonly id: string
  readonly relay: Relay | undefined
  readonly deadline: Deadline
  readonly response: Promise<Outcome>
  readonly #inbound: Inbound
  readonly #entry: InFlightEntry<Pending>
  readonly #resolve: (outcome: Outcome) => void
  readonly #reject: (error: Error) => void
  readonly #onAbort = (): void => this.reject(reasonOf(this.deadline))

  constructor(inbound: Inbound, id: string, deadline: Deadline, relay: Relay | undefined) {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    this.id = id
    this.relay = relay
    this.deadline = deadline
    this.response = promise
    this.#inbound = inbound
    this.#resolve = resolve
    this.#reject = reject
    this.#entry = inbound.pending.add(this)
    deadline.addEventListener('abort', this.#onAbort)
  }

  resolve(outcome: Outcome): void {
    if (this.#settle()) this.#resolve(outcome)
  }

  reject(error: Error): void {
    if (this.#settle()) this.#reject(error)
  }

  #settle(): boolean {
    this.deadline.removeEventListener('abort', this.#onAbort)
    return this.#inbound.forget(this.#entry)
  }
}
