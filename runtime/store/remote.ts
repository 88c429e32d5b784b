/**
 * The store of another process of this machine, over calls to it: what the worker processes of one server share where there
 * is no Redis. One side serves its store, the other sees it; whether a call is lost or the process is gone, it is
 * STORE_DOWN, as with a server that cannot be reached.
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

/** Scans that are in flight at a time; the oldest ends when there is one more. */
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
  /** The next page of a scan, a new one without its id; without keys it is over. */
  page(prefix: string, scan: number | undefined): Promise<ScanPage>
  ping(): Promise<void>
}

interface ScanPage {
  readonly scan: number
  readonly keys: readonly string[] | undefined
}

/** A call that crosses to the process that has the store. */
export interface StoreCall {
  readonly operation: keyof Operations
  readonly parameters: readonly unknown[]
}

/** Carries out the calls of other processes on a store. Rejects as the store does. */
export function serveStore(store: Store): (call: StoreCall) => Promise<unknown> {
  const scans = new Map<number, AsyncIterator<readonly string[]>>()
  let next = 1

  async function page(prefix: string, known: number | undefined): Promise<ScanPage> {
    const scan = known ?? next++
    const pages =
      known === undefined ? store.namespace(prefix).scan()[Symbol.asyncIterator]() : scans.get(known)
    // One that was ended for others has not shown every key.
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

/** The store that `send` leads to. */
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
