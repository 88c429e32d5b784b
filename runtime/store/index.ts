/** Public API of the store module: memory and Redis behind one small interface. */
export { type LockOptions, withLock } from './lock.ts'
export { makeMemoryStore, type MemoryStoreOptions } from './memory.ts'
export { makeRedisStore, type RedisStoreConfig } from './redis.ts'
export type { LinkOptions, RedisTls } from './redis-link.ts'
export {
  type SealedStore,
  sealId,
  sealStore,
  type Sealing,
  type SealOptions,
  type Secrets,
} from './sealed.ts'
export type { Bucket, StoreEntry, SetOptions, Store, BucketResult } from './store.ts'
