/**
 * A lock across replicas, for work that must not run twice at the same time (refreshing an upstream token, registering
 * with an upstream).
 *
 * A lock may expire while a slow owner is still working, so it only avoids duplicate work. `Store.swap` ensures
 * correctness: it writes the result only if the value read under the lock is unchanged.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { GatehouseError } from '../../schemas/index.ts'
import type { Store } from './store.ts'

export interface LockOptions {
  /** Milliseconds after which the lock expires, even if its owner has died. */
  readonly ttlMs: number
  /** Milliseconds to wait for another owner to release the lock. After that, the call throws `STORE_DOWN`. */
  readonly waitMs: number
  /** Milliseconds between two attempts. Default: 25. */
  readonly retryMs?: number
  readonly signal?: AbortSignal
}

/** Runs `work` under the lock. Rethrows errors from `work`, and throws `STORE_DOWN` when the lock stays unavailable. */
export async function withLock<T>(
  store: Store,
  name: string,
  options: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  const key = `lock:${name}`
  const token = randomUUID()
  const until = performance.now() + options.waitMs
  while (!(await store.set(key, token, { ttlMs: options.ttlMs, onlyIf: 'absent' }))) {
    if (performance.now() >= until) {
      throw new GatehouseError('STORE_DOWN', { cause: new Error(`lock ${name} is already held`) })
    }
    await delay(options.retryMs ?? 25, undefined, options.signal ? { signal: options.signal } : {})
  }
  try {
    return await work()
  } finally {
    // Releases only this owner's lock. A failure is harmless, because the lock expires.
    const entry = await store.read(key).catch(() => undefined)
    if (entry?.value === token) await store.swap(key, entry, undefined).catch(() => false)
  }
}
