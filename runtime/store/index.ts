/** Public API of the store module: memory and Redis behind one small interface. */
export { withLock } from './lock.ts'
export { makeRecordStream, type RecordStream } from './record-stream.ts'
export { makeMemoryStore } from './memory.ts'
export { inspectRedis, type RedisFacts } from './inspect.ts'
export { makeRedisStore, type RedisStoreConfig } from './redis.ts'
export { type SealedStore, sealId, sealStore, type SealOptions, type Secrets } from './sealed.ts'
export type { Bucket, BucketResult, Counter, CountResult, StoreEntry, SetOptions, Store } from './store.ts'
export type { RedisConfig, RedisTlsConfig } from './redis-config.ts'
