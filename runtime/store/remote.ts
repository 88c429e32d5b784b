/**
 * A store in another process on this machine, for the worker processes of a server without Redis. One side serves its
 * store; the other side accesses it through calls. A lost call or a dead process causes STORE_DOWN, as an unreachable
 * server does.
 */
import { GatehouseError } from '../../schemas/index.ts'
import {
  type Bucket,
  type BucketResult,
  checkBuckets,
  checkCounters,
  checkTtl,
  type Counter,
  type CountResult,
  type SetOptions,
  type Store,
  type StoreEntry,
} from './store.ts'

/** Maximum number of scans in flight. Beyond this limit, a new scan ends the oldest scan. */
const maxScans = 64

interface Operations {
  get(key: string): Promise<string | undefined>
  read(key: string): Promise<StoreEntry | undefined>
  set(key: string, value: string, options: SetOptions): Promise<boolean>
  take(key: string): Promise<string | undefined>
  delete(key: string): Promise<boolean>
  touch(key: string, ttlMs: number): Promise<boolean>
  swap(
    key: string,
    seen: StoreEntry | undefined,
    next: string | undefined,
    ttlMs: number | undefined,
  ): Promise<boolean>
  takeTokens(buckets: readonly Bucket[], cost: number): Promise<BucketResult>
  count(counters: readonly Counter[]): Promise<CountResult>
  /** Returns the next page of a scan; without an id, starts a new scan. Undefined keys mark the end of the scan. */
  page(prefix: string, scan: number | undefined): Promise<ScanPage>
  ping(): Promise<void>
}

interface ScanPage {
  readonly scan: number
  readonly keys: readonly string[] | undefined
}

/** A call to the process that owns the store. */
export interface StoreCall {
  readonly operation: keyof Operations
  readonly parameters: readonly unknown[]
}

/** Executes calls from other processes on a store. Rejects with the store's errors. */
export function serveStore(store: Store): (call: StoreCall) => Promise<unknown> {
  const scans = new Map<number, AsyncIterator<readonly string[]>>()
  let next = 1

  async function page(prefix: string, known: number | undefined): Promise<ScanPage> {
    const scan = known ?? next++
    const pages =
      known === undefined ? store.namespace(prefix).scan()[Symbol.asyncIterator]() : scans.get(known)
    // Rejects, because a scan that was ended to make room has not returned every key.
    if (!pages) throw new GatehouseError('STORE_DOWN')
    scans.delete(scan)
    const { done, value } = await pages.next()
    if (done) return { scan, keys: undefined }
    const [oldest] = scans.keys()
    if (scans.size >= maxScans && oldest !== undefined) scans.delete(oldest)
    scans.set(scan, pages)
    return { scan, keys: value }
  }

  const operations: Operations = { ...store, page }
  const named = operations as unknown as Readonly<Record<string, (...given: readonly unknown[]) => unknown>>
  return async ({ operation, parameters }) => named[operation]?.(...parameters)
}

/** Returns a store that performs each call through `send`. */
export function makeRemoteStore(send: (call: StoreCall) => Promise<unknown>): Store {
  return view(send, '')
}

function view(send: (call: StoreCall) => Promise<unknown>, prefix: string): Store {
  async function call<O extends keyof Operations>(
    operation: O,
    ...parameters: Parameters<Operations[O]>
  ): Promise<Awaited<ReturnType<Operations[O]>>> {
    try {
      return (await send({ operation, parameters })) as Awaited<ReturnType<Operations[O]>>
    } catch (cause) {
      if (cause instanceof GatehouseError && cause.code.startsWith('STORE_')) throw cause
      throw new GatehouseError('STORE_DOWN', { cause })
    }
  }

  return {
    kind: 'memory',
    get: (key) => call('get', prefix + key),
    read: (key) => call('read', prefix + key),
    async set(key, value, options = {}) {
      checkTtl(options.ttlMs)
      return call('set', prefix + key, value, options)
    },
    take: (key) => call('take', prefix + key),
    delete: (key) => call('delete', prefix + key),
    async touch(key, ttlMs) {
      checkTtl(ttlMs)
      return call('touch', prefix + key, ttlMs)
    },
    async swap(key, seen, next, ttlMs) {
      checkTtl(ttlMs)
      return call('swap', prefix + key, seen, next, ttlMs)
    },
    async takeTokens(buckets, cost = 1) {
      checkBuckets(buckets, cost)
      const taken = await call(
        'takeTokens',
        buckets.map((bucket) => ({ ...bucket, key: prefix + bucket.key })),
        cost,
      )
      return { ...taken, refusedBy: taken.refusedBy?.slice(prefix.length) }
    },
    async count(counters) {
      checkCounters(counters)
      return call(
        'count',
        counters.map((counter) => ({ ...counter, key: prefix + counter.key })),
      )
    },
    async *scan() {
      let scan: number | undefined
      for (;;) {
        const page: ScanPage = await call('page', prefix, scan)
        if (!page.keys) return
        scan = page.scan
        yield page.keys
      }
    },
    namespace: (more) => view(send, prefix + more),
    ping: () => call('ping'),
    async close() {},
  }
}
