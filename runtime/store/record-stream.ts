/**
 * Records that several processes write and read, in Redis: the latest ones, in the order of their arrival, bounded in number.
 * Source: Redis streams (XADD, XRANGE).
 */
import { checkRedisConfig, type RedisConfig } from './redis-config.ts'
import { RedisLink } from './redis-link.ts'

/** About how many records are stored; the oldest go first. */
const maxRecords = 20_000
/** How long they are stored after the last one. */
const lifeSec = 24 * 60 * 60

export interface StreamRecord {
  /** Greater than those of all before. */
  readonly id: string
  readonly value: string
}

export interface RecordStream {
  /** Rejects with STORE_DOWN when they are not, or not all, stored. */
  append(values: readonly string[]): Promise<void>
  /** The next ones after an id, '0-0' before the first. Rejects with STORE_DOWN. */
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

/** An entry is its id and a list of names and values. */
function recordOf(entry: unknown): StreamRecord[] {
  if (!Array.isArray(entry)) return []
  const [id, fields] = entry as readonly unknown[]
  const value: unknown = Array.isArray(fields) ? fields[1] : undefined
  return typeof id === 'string' && typeof value === 'string' ? [{ id, value }] : []
}
