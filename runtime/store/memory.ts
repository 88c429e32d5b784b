/**
 * The store in this process, for a single replica, development and tests.
 *
 * The store's size is bounded: when `maxEntries` or `maxBytes` is reached, the store sweeps expired entries and then
 * rejects writes of new or longer values with `STORE_FULL`. The store uses no timers, so it does not keep the process
 * alive. Reads detect expired entries, and the store sweeps them as the map grows.
 */
import { GatehouseError } from '../../schemas/index.ts'
import { decideBuckets, type Level, levelAt } from './bucket.ts'
import {
  type Bucket,
  checkBuckets,
  checkCounters,
  checkTtl,
  type Counter,
  type CountResult,
  addToSum,
  type StoreEntry,
  type SetOptions,
  type Store,
  type BucketResult,
} from './store.ts'

export interface MemoryStoreOptions {
  /** The clock, in milliseconds since the epoch. Default: Date.now. */
  readonly now?: () => number
  /** Maximum number of entries. Defaults to 200 000. */
  readonly maxEntries?: number
  /** Maximum combined size of keys and values, in UTF-16 units. Defaults to 256 Mi. */
  readonly maxBytes?: number
}

interface Slot {
  readonly value: string
  readonly version: number
  readonly expiresAtMs: number
}

const first = 1024
/** Number of digits in the largest possible sum of a counter. */
const maxDigits = 16
/** Number of keys visited per page of a scan. */
const scanPageSize = 500

class Memory {
  readonly now: () => number
  readonly #slots = new Map<string, Slot>()
  readonly #maxEntries: number
  readonly #maxBytes: number
  #bytes = 0
  #version = 0
  #evictAt = first

  constructor(options: MemoryStoreOptions) {
    this.now = options.now ?? Date.now
    this.#maxEntries = options.maxEntries ?? 200_000
    this.#maxBytes = options.maxBytes ?? 256 * 1024 * 1024
  }

  live(key: string): Slot | undefined {
    const slot = this.#slots.get(key)
    if (!slot || slot.expiresAtMs > this.now()) return slot
    this.drop(key)
    return undefined
  }

  /** Changes only the expiry, so a value that was read earlier can still be swapped. */
  prolong(key: string, slot: Slot, expiresAtMs: number): void {
    this.#slots.set(key, { ...slot, expiresAtMs })
  }

  put(key: string, value: string, expiresAtMs: number, yields = false): void {
    const old = this.live(key)
    const grows = value.length - (old ? old.value.length : -key.length)
    if (!this.#fits(old ? 0 : 1, grows, yields ? 0.75 : 1)) throw new GatehouseError('STORE_FULL')
    this.#version += 1
    this.#slots.set(key, { value, version: this.#version, expiresAtMs })
    this.#bytes += grows
  }

  /** Throws STORE_FULL when the entry does not fit. */
  requireSpace(entries: number, bytes: number, yields: boolean): void {
    if (!this.#fits(entries, bytes, yields ? 0.75 : 1)) throw new GatehouseError('STORE_FULL')
  }

  drop(key: string): boolean {
    const slot = this.#slots.get(key)
    if (!slot) return false
    this.#slots.delete(key)
    this.#bytes -= key.length + slot.value.length
    return slot.expiresAtMs > this.now()
  }

  /**
   * Iterates over the live map, so entries written during the scan come last. Visits at most twice the initial number
   * of keys.
   */
  *pages(prefix: string): Generator<readonly string[]> {
    let left = 2 * this.#slots.size
    let page: string[] = []
    let looked = 0
    for (const key of this.#slots.keys()) {
      if (left-- <= 0) break
      if (key.startsWith(prefix) && this.live(key)) page.push(key.slice(prefix.length))
      if (++looked % scanPageSize !== 0) continue
      yield page
      page = []
    }
    yield page
  }

  clear(): void {
    this.#slots.clear()
    this.#bytes = 0
  }

  /** `share` is the usable fraction of each cap. */
  #fits(entries: number, bytes: number, share: number): boolean {
    const space = (): boolean =>
      this.#slots.size + entries <= this.#maxEntries * share &&
      (bytes <= 0 || this.#bytes + bytes <= this.#maxBytes * share)
    // Sweeps each time the size doubles, which costs constant amortized time per write. Sweeps a full store once more
    // before it rejects a write.
    if (this.#slots.size >= this.#evictAt || !space()) this.#evict()
    return space()
  }

  #evict(): void {
    const now = this.now()
    for (const [key, slot] of this.#slots) if (slot.expiresAtMs <= now) this.drop(key)
    this.#evictAt = Math.max(first, this.#slots.size * 2)
  }
}

/** Creates an empty store. Tests inject `now` to control the time. */
export function makeMemoryStore(options: MemoryStoreOptions = {}): Store {
  return view(new Memory(options), '')
}

function view(memory: Memory, prefix: string): Store {
  const until = (ttlMs: number | undefined): number => {
    checkTtl(ttlMs)
    return ttlMs === undefined ? Number.POSITIVE_INFINITY : memory.now() + ttlMs
  }

  function takeTokens(buckets: readonly Bucket[], cost: number): BucketResult {
    checkBuckets(buckets, cost)
    const now = memory.now()
    const levels = buckets.map((bucket) => {
      const slot = memory.live(prefix + bucket.key)
      return levelAt(bucket, slot && readLevel(slot.value), now)
    })
    const taken = decideBuckets(buckets, levels, cost)
    if (!taken.ok) return taken
    for (const [index, bucket] of buckets.entries()) {
      const level: Level = { tokens: (levels[index] ?? 0) - cost, atMs: now }
      memory.put(prefix + bucket.key, `${level.tokens} ${level.atMs}`, now + 2 * bucket.refillMs)
    }
    return taken
  }

  function count(counters: readonly Counter[]): CountResult {
    checkCounters(counters)
    const now = memory.now()
    const slots = counters.map(({ key }) => memory.live(prefix + key))
    const sums = slots.map((slot) => Number(slot?.value ?? 0))
    const next = counters.map((counter, i) => addToSum(counter, sums[i] ?? 0))
    if (next.includes(undefined)) return { ok: false, sums }
    // Changes all counters or none.
    const fresh = counters.filter((_counter, i) => !slots[i])
    const bytes = fresh.reduce((sum, { key }) => sum + prefix.length + key.length + maxDigits, 0)
    memory.requireSpace(
      fresh.length,
      bytes + (counters.length - fresh.length) * maxDigits,
      fresh.some((counter) => counter.yields),
    )
    for (const [i, { key, add, ttlMs }] of counters.entries())
      if (add > 0 || (add < 0 && slots[i])) memory.put(prefix + key, String(next[i]), now + ttlMs)
    return { ok: true, sums: next.map((sum) => sum ?? 0) }
  }

  return {
    kind: 'memory',
    async get(key) {
      return memory.live(prefix + key)?.value
    },
    async read(key): Promise<StoreEntry | undefined> {
      const slot = memory.live(prefix + key)
      return slot && { value: slot.value, version: String(slot.version) }
    },
    async set(key, value, options: SetOptions = {}) {
      const expiresAtMs = until(options.ttlMs)
      const present = memory.live(prefix + key) !== undefined
      if (options.onlyIf && (options.onlyIf === 'present') !== present) return false
      memory.put(prefix + key, value, expiresAtMs, options.yields)
      return true
    },
    async take(key) {
      const slot = memory.live(prefix + key)
      if (slot) memory.drop(prefix + key)
      return slot?.value
    },
    async delete(key) {
      return memory.drop(prefix + key)
    },
    async touch(key, ttlMs) {
      const expiresAtMs = until(ttlMs)
      const slot = memory.live(prefix + key)
      if (!slot) return false
      memory.prolong(prefix + key, slot, expiresAtMs)
      return true
    },
    async swap(key, seen, next, ttlMs) {
      const expiresAtMs = until(ttlMs)
      const slot = memory.live(prefix + key)
      if ((slot && String(slot.version)) !== seen?.version) return false
      if (next === undefined) memory.drop(prefix + key)
      else memory.put(prefix + key, next, ttlMs === undefined && slot ? slot.expiresAtMs : expiresAtMs)
      return true
    },
    async takeTokens(buckets, cost = 1) {
      return takeTokens(buckets, cost)
    },
    async count(counters) {
      return count(counters)
    },
    async *scan() {
      yield* memory.pages(prefix)
    },
    namespace: (more) => view(memory, prefix + more),
    async ping() {},
    async close() {
      if (prefix === '') memory.clear()
    },
  }
}

function readLevel(raw: string): Level {
  const [tokens, atMs] = raw.split(' ', 2)
  return { tokens: Number(tokens), atMs: Number(atMs) }
}
