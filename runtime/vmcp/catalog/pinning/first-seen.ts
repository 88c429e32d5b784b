/**
 * Implements trust on first use (`noLock: pin`). If a backend has no lock, its first items are stored as approved
 * before they are offered. A backend's items are stored once, regardless of which client lists them first. A backend
 * without items is not stored.
 *
 * The LockKeeper decides where locks are stored. Items that cannot be stored are not offered.
 */
import type { RuntimeToolLock } from '../../../../schemas/index.ts'
import type { Listing } from '../listing.ts'

/** Stores approved definitions for later starts. */
export interface LockKeeper {
  /**
   * Returns a backend's lock, created from the backend's items. Returns an existing lock unchanged. Rejects with an
   * error that explains the failure to operators.
   */
  keep(backend: string, listing: Listing): Promise<FirstLock>
}

interface FirstLock {
  readonly locks: readonly RuntimeToolLock[]
  /** False if the lock already existed. */
  readonly written: boolean
}

export class FirstSeen {
  readonly #keeper: LockKeeper | undefined
  readonly #onWritten: (backend: string, listing: Listing) => void
  readonly #stored = new Map<string, readonly RuntimeToolLock[]>()
  readonly #keeping = new Map<string, Promise<void>>()
  readonly #failures = new Map<string, string>()

  constructor(keeper: LockKeeper | undefined, onWritten: (backend: string, listing: Listing) => void) {
    this.#keeper = keeper
    this.#onWritten = onWritten
  }

  /** Locks created in this process, grouped by backend. */
  get locks(): readonly RuntimeToolLock[] {
    return [...this.#stored.values()].flat()
  }

  /** Returns the reason why a backend's items could not be stored. */
  failureOf(backend: string): string | undefined {
    return this.#failures.get(backend)
  }

  /** Stores the offered items. Never rejects. */
  async keep(backend: string, listing: Listing): Promise<readonly RuntimeToolLock[] | undefined> {
    if (this.#stored.has(backend) || !this.#keeper || isEmpty(listing)) return this.#stored.get(backend)
    const keeping = this.#keeping.get(backend) ?? this.#write(this.#keeper, backend, listing)
    this.#keeping.set(backend, keeping)
    await keeping
    return this.#stored.get(backend)
  }

  async #write(keeper: LockKeeper, backend: string, listing: Listing): Promise<void> {
    try {
      const { locks, written } = await keeper.keep(backend, listing)
      this.#stored.set(backend, locks)
      this.#failures.delete(backend)
      if (written) this.#onWritten(backend, listing)
    } catch (error) {
      this.#failures.set(backend, error instanceof Error ? error.message : String(error))
    } finally {
      this.#keeping.delete(backend)
    }
  }
}

/**
 * True for a listing without items. A server that is still starting might not list any items yet. Storing a lock
 * without items would make all later items count as new.
 */
function isEmpty({ tools, prompts, templates, server }: Listing): boolean {
  return tools.length + prompts.length + templates.length === 0 && server.instructions === undefined
}
