import { stateKeys } from '../../../config/index.ts'
import type { Log } from '../../../net/index.ts'
import type { SessionStorage } from './storage.ts'

/** Key material that the replicas share. */
export class SharedSecret {
  /** The key that seals, followed by the keys that only open. Empty until the key has been read. */
  values: readonly string[]
  readonly #storage: SessionStorage | undefined
  readonly #log: Log

  constructor(
    env: Readonly<Record<string, string | undefined>>,
    storage: SessionStorage | undefined,
    log: Log,
  ) {
    this.values = stateKeys((name) => env[name])
    this.#storage = storage
    this.#log = log
  }

  /** The key that seals. Undefined until it has been read. */
  get value(): string | undefined {
    return this.values[0]
  }

  /**
   * Reads the key from the session store, unless the key is configured or was read before. Call this method again until
   * the store is available.
   */
  async share(): Promise<void> {
    if (this.value !== undefined || !this.#storage) return
    try {
      this.values = [await this.#storage.sharedSecret()]
    } catch (error) {
      this.#log.debug('failed to read the shared key', { err: error })
    }
  }
}
