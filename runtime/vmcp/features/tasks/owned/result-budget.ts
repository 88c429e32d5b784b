/**
 * Bounds the memory for the results of tasks that have ended. A caller with a token or a session may use only a part of
 * the memory, so one caller cannot prevent other callers from storing results.
 */
import { isShared } from '../../../model/client.ts'
import { callerOf, type OperationClient } from '../../../model/session.ts'

/** Maximum total size of the results that this replica stores. */
const maxStoredBytes = 256 * 1024 * 1024
/** Maximum total size of the results of one caller. */
const maxCallerBytes = maxStoredBytes / 8
/** Each result counts as at least this many bytes, so the number of results is bounded too. */
const minResultBytes = 1024

interface StoredResult {
  readonly owner: string
  readonly bytes: number
  readonly endsAt: number
}

export class ResultBudget {
  readonly #now: () => number
  readonly #results = new Set<StoredResult>()
  readonly #perOwner = new Map<string, number>()
  #bytes = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** Reserves memory until `endsAt`. Returns false if the caller or the replica uses too much memory. */
  reserve(client: OperationClient, length: number, endsAt: number): boolean {
    const bytes = Math.max(length, minResultBytes)
    const owner = callerOf(client)
    const limit = isShared(client.caller) && !client.session ? maxStoredBytes : maxCallerBytes
    const fits = () =>
      this.#bytes + bytes <= maxStoredBytes && (this.#perOwner.get(owner) ?? 0) + bytes <= limit
    if (!fits()) this.#sweep()
    if (!fits()) return false
    this.#results.add({ owner, bytes, endsAt })
    this.#change(owner, bytes)
    return true
  }

  #sweep(): void {
    const now = this.#now()
    for (const result of this.#results) {
      if (result.endsAt > now) continue
      this.#results.delete(result)
      this.#change(result.owner, -result.bytes)
    }
  }

  #change(owner: string, bytes: number): void {
    this.#bytes += bytes
    const left = (this.#perOwner.get(owner) ?? 0) + bytes
    if (left > 0) this.#perOwner.set(owner, left)
    else this.#perOwner.delete(owner)
  }
}
