/**
 * A lock across replicas, for work that must not run twice at the same time (refreshing an upstream token, registering
 * with an upstream).
 *
 * A lock may expire while a slow holder is still working, so it only avoids duplicate work. Correctness comes from
 * `Store.swap`: the result is written only if the value read under the lock is unchanged.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { GatehouseError } from '../../schemas/index.ts'
import type { Store } from './store.ts'

export interface LockOptions {
  /** Milliseconds after which the lock is free again, even if its holder died. */
  readonly ttlMs: number
  /** Milliseconds to wait for another holder to release the lock before `STORE_DOWN` is thrown. */
  readonly waitMs: number
  /** Milliseconds between two attempts. Default: 25. */
  readonly retryMs?: number
  readonly signal?: AbortSignal
}

/**
 * Runs `work` while holding the lock. Rethrows errors from `work`, and throws `STORE_DOWN` when the lock stays taken.
 */
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
    // Only the holder's lock is released. A failure is harmless, because the lock expires.
    const entry = await store.read(key).catch(() => undefined)
    if (entry?.value === token) await store.swap(key, entry, undefined).catch(() => false)
  }
}
