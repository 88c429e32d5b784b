import type { Log } from '../../../net/index.ts'
import type { SessionStorage } from './storage.ts'

/** Key material that the replicas share. Undefined until it has been read. */
export class SharedSecret {
  value: string | undefined
  readonly #storage: SessionStorage | undefined
  readonly #log: Log

  constructor(value: string | undefined, storage: SessionStorage | undefined, log: Log) {
    this.value = value
    this.#storage = storage
    this.#log = log
  }

  /**
   * Reads the key from the session store, unless the key is configured or was read before. Call this method again until
   * the store is available.
   */
  async share(): Promise<void> {
    if (this.value !== undefined || !this.#storage) return
    try {
      this.value = await this.#storage.sharedSecret()
    } catch (error) {
      this.#log.debug('failed to read the shared key', { err: error })
    }
  }
}
