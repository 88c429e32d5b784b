/**
 * Trust on first use (`noLock: pin`): what a backend without a lock is first seen to offer is written down as approved, before
 * any of it is offered. One backend is written down once, whoever lists it first; a backend that offers nothing is not.
 *
 * Where locks are stored is for others to say. What cannot be written down is not offered.
 */
import type { RuntimeToolLock } from '../../../../schemas/index.ts'
import type { Listing } from '../listing.ts'

/** Stores approved definitions where the next start finds them. */
export interface LockKeeper {
  /**
   * The lock of a backend, made of what it offers. One that is there already is answered as it is, and never changed.
   * Rejects with an error whose message tells an operator why there is none.
   */
  keep(backend: string, listing: Listing): Promise<FirstLock>
}

interface FirstLock {
  readonly locks: readonly RuntimeToolLock[]
  /** False: there was one already. */
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

  /** The locks of this process, those of a backend together. */
  get locks(): readonly RuntimeToolLock[] {
    return [...this.#stored.values()].flat()
  }

  /** Why what a backend offers could not be written down. */
  failureOf(backend: string): string | undefined {
    return this.#failures.get(backend)
  }

  /** Writes down what is offered. Never rejects. */
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

/** A server that is not set up yet may list nothing at first, and everything that came later would be new. */
function isEmpty({ tools, prompts, templates, server }: Listing): boolean {
  return tools.length + prompts.length + templates.length === 0 && server.instructions === undefined
}
