/**
 * A stream of records in Redis that several processes write and read. Keeps a limited number of the latest records, in
 * order of arrival.
 * Source: Redis streams (XADD, XRANGE).
 */
import { checkRedisConfig, type RedisConfig } from './redis-config.ts'
import { RedisLink } from './redis-link.ts'

/** Approximate number of stored records. The oldest records are dropped first. */
const maxRecords = 20_000
/** Seconds to keep records after the last write. */
const lifeSec = 24 * 60 * 60

export interface StreamRecord {
  /** Id of the record, greater than all previous ids. */
  readonly id: string
  readonly value: string
}

export interface RecordStream {
  /** Appends records. Rejects with STORE_DOWN when not all records were stored. */
  append(values: readonly string[]): Promise<void>
  /** Returns the records after an id; '0-0' starts at the first record. Rejects with STORE_DOWN. */
  after(id: string, count: number): Promise<readonly StreamRecord[]>
  close(): void
}

/** Connects in the background. Throws INVALID_CONFIG. */
export function makeRecordStream(config: RedisConfig, key: string): RecordStream {
  checkRedisConfig(config)
  const link = new RedisLink(config)
  return {
    async append(values) {
      const adds = values.map((value) =>
        link.send(key, 'write', ['XADD', key, 'MAXLEN', '~', String(maxRecords), '*', 'v', value]),
      )
      await Promise.all(adds)
      await link.send(key, 'write', ['EXPIRE', key, String(lifeSec)])
    },
    async after(id, count) {
      const found = await link.send(key, 'write', ['XRANGE', key, `(${id}`, '+', 'COUNT', String(count)])
      return Array.isArray(found) ? found.flatMap(recordOf) : []
    },
    close: () => link.close(),
  }
}

/** Parses an entry, which consists of an id and a list of names and values. */
function recordOf(entry: unknown): StreamRecord[] {
  if (!Array.isArray(entry)) return []
  const [id, fields] = entry as readonly unknown[]
  const value: unknown = Array.isArray(fields) ? fields[1] : undefined
  return typeof id === 'string' && typeof value === 'string' ? [{ id, value }] : []
}
