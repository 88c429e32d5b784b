/**
 * Bounds the memory for the records and results of tasks, including tasks that have ended. A caller with a token or a
 * session may use only a part of the memory, so one caller cannot prevent other callers from storing tasks.
 */
import { GatehouseError } from '../../../../../schemas/index.ts'
import { isShared } from '../../../model/client.ts'
import { callerOf, type OperationClient } from '../../../model/session.ts'

/** Maximum total size of the tasks that this replica stores. */
const maxStoredBytes = 256 * 1024 * 1024
/** Maximum total size of the tasks of one caller. */
const maxCallerBytes = maxStoredBytes / 8
/** Size that each task counts as, in addition to its result. */
export const recordBytes = 1024
const sweepMs = 1_000

interface Reservation {
  readonly owner: string
  readonly bytes: number
  readonly endsAt: number
}

/** Releases a reservation before it expires. */
export type Release = () => void

export class TaskBudget {
  readonly #now: () => number
  readonly #reservations = new Set<Reservation>()
  readonly #perOwner = new Map<string, number>()
  #bytes = 0
  #sweptAt = Number.NEGATIVE_INFINITY

  constructor(now: () => number) {
    this.#now = now
  }

  /** Reserves memory until `endsAt`. Returns undefined if the caller or the replica uses too much memory. */
  reserve(client: OperationClient, bytes: number, endsAt: number): Release | undefined {
    const owner = callerOf(client)
    const limit = isShared(client.caller) && !client.session ? maxStoredBytes : maxCallerBytes
    const fits = () =>
      this.#bytes + bytes <= maxStoredBytes && (this.#perOwner.get(owner) ?? 0) + bytes <= limit
    if (!fits()) this.#sweep()
    if (!fits()) return undefined
    const reservation = { owner, bytes, endsAt }
    this.#reservations.add(reservation)
    this.#change(owner, bytes)
    return () => this.#remove(reservation)
  }

  #sweep(): void {
    const now = this.#now()
    if (now - this.#sweptAt < sweepMs) return
    this.#sweptAt = now
    for (const reservation of this.#reservations) if (reservation.endsAt <= now) this.#remove(reservation)
  }

  #remove(reservation: Reservation): void {
    const { owner, bytes } = reservation
    if (this.#reservations.delete(reservation)) this.#change(owner, -bytes)
  }

  #change(owner: string, bytes: number): void {
    this.#bytes += bytes
    const left = (this.#perOwner.get(owner) ?? 0) + bytes
    if (left > 0) this.#perOwner.set(owner, left)
    else this.#perOwner.delete(owner)
  }
}

/** Returns the error for a caller whose tasks use too much memory. */
export function tooMuchMemory(): GatehouseError {
  return new GatehouseError('RATE_LIMITED', {
    detail: 'stored tasks use too much memory: wait until a task expires',
  })
}
