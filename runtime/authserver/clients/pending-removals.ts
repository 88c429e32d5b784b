/**
 * Pending removals of clients and bindings, which the store does not contain yet. Such removals take effect in this
 * process even while the store is down.
 */
export class PendingRemovals {
  /** Time of each removal in Unix milliseconds. */
  readonly #removed = new Map<string, number>()

  record(ids: Iterable<string>, nowMs: number): void {
    for (const id of ids) this.#removed.set(id, nowMs)
  }

  /** Calls `storeRemoval` for each removal. If `storeRemoval` rejects, the next call retries. */
  async store(storeRemoval: (id: string) => Promise<void>): Promise<void> {
    try {
      for (const [id, atMs] of [...this.#removed]) {
        await storeRemoval(id)
        if (this.#removed.get(id) === atMs) this.#removed.delete(id)
      }
    } catch {
      // The store is down, which its own health check reports.
    }
  }

  /** True if a removal of the id after this time has not been stored yet. */
  hasSince(id: string, sinceSec: number): boolean {
    const removedAtMs = this.#removed.get(id)
    return removedAtMs !== undefined && sinceSec * 1000 <= removedAtMs
  }
}
