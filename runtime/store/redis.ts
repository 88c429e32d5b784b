/**
 * The store on Redis or Valkey (6.2 or newer), shared by replicas and persistent across restarts.
 *
 * Every operation is a single command or script and therefore atomic. In cluster mode, a hash tag is appended to a key
 * prefix that does not contain a hash tag. All of a server's keys then share a slot, which is required by scripts that
 * use several keys.
 */
import { createHash } from 'node:crypto'
import { GatehouseError } from '../../schemas/index.ts'
import { type CommandAccess, ReplyError } from './redis-client.ts'
import { checkRedisConfig, type RedisConfig } from './redis-config.ts'
import { type LinkOptions, RedisLink } from './redis-link.ts'
import {
  count as countScript,
  type RedisScript,
  swap as swapScript,
  takeTokens as takeTokensScript,
} from './scripts.ts'
import {
  checkBuckets,
  checkCounters,
  checkTtl,
  type CountResult,
  type StoreEntry,
  type SetOptions,
  type Store,
  type BucketResult,
} from './store.ts'

export interface RedisStoreConfig extends RedisConfig {
  /** Prefix of every key in every mode, for instance `gh:auth:{namespace:name}:`. */
  readonly keyPrefix: string
}

/**
 * Creates a store and connects in the background; `ping` reports whether it is connected. Throws INVALID_CONFIG.
 * `onChange` is called when the connection is lost and restored.
 */
export function makeRedisStore(config: RedisStoreConfig, options: LinkOptions = {}): Store {
  checkRedisConfig(config)
  const prefix = config.clusterMode ? withHashTag(config.keyPrefix) : config.keyPrefix
  const link = new RedisLink(config, options)
  return { ...view(link, prefix), close: async () => link.close() }
}

/**
 * Appends a hash tag that keeps all keys in one slot of a cluster. The configured prefix stays at the start, because
 * ACL patterns match it. Throws INVALID_CONFIG.
 */
function withHashTag(prefix: string): string {
  const open = prefix.indexOf('{')
  const close = open < 0 ? -1 : prefix.indexOf('}', open)
  if (close === open + 1 && open >= 0) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: 'redis: keyPrefix must not contain an empty hash tag {} in cluster mode',
    })
  }
  if (close > open) return prefix
  // Keys still start with the whole prefix. Two prefixes that contain the same tag share a slot but no keys.
  const tag = createHash('sha256').update(prefix).digest('hex').slice(0, 8)
  return `${prefix}{${tag}}:`
}

async function evaluate(
  link: RedisLink,
  script: RedisScript,
  keys: readonly string[],
  args: readonly string[],
) {
  const rest = [String(keys.length), ...keys, ...args]
  try {
    return await link.send(keys[0], 'write', ['EVALSHA', script.sha1, ...rest])
  } catch (error) {
    if (!(error instanceof ReplyError && error.message.startsWith('NOSCRIPT'))) throw error
    return link.send(keys[0], 'write', ['EVAL', script.source, ...rest])
  }
}

/** Returns a store that adds the prefix to every key. Closing the returned store keeps the shared connection open. */
function view(link: RedisLink, prefix: string): Store {
  const command = async (
    access: CommandAccess,
    name: string,
    key: string,
    ...args: string[]
  ): Promise<unknown> => asStoreError(link.send(prefix + key, access, [name, prefix + key, ...args]))
  const get = async (key: string): Promise<string | undefined> => text(await command('read', 'GET', key))

  return {
    kind: 'redis',
    get,
    async read(key): Promise<StoreEntry | undefined> {
      const value = await get(key)
      return value === undefined ? undefined : { value, version: value }
    },
    async set(key, value, options: SetOptions = {}) {
      checkTtl(options.ttlMs)
      const ttl = options.ttlMs === undefined ? [] : ['PX', String(options.ttlMs)]
      const condition = options.onlyIf ? [options.onlyIf === 'absent' ? 'NX' : 'XX'] : []
      return (await command('write', 'SET', key, value, ...ttl, ...condition)) !== null
    },
    async take(key) {
      return text(await command('write', 'GETDEL', key))
    },
    async delete(key) {
      return (await command('write', 'DEL', key)) === 1
    },
    async touch(key, ttlMs) {
      checkTtl(ttlMs)
      return (await command('write', 'PEXPIRE', key, String(ttlMs))) === 1
    },
    async swap(key, seen, next, ttlMs) {
      checkTtl(ttlMs)
      const args = [
        seen ? '1' : '0',
        seen?.version ?? '',
        next === undefined ? '0' : '1',
        next ?? '',
        String(ttlMs ?? 0),
      ]
      return (await asStoreError(evaluate(link, swapScript, [prefix + key], args))) === 1
    },
    async takeTokens(buckets, cost = 1): Promise<BucketResult> {
      checkBuckets(buckets, cost)
      if (buckets.length === 0) return { ok: true, retryAfterMs: 0, refusedBy: undefined }
      const keys = buckets.map((bucket) => prefix + bucket.key)
      const limits = buckets.flatMap((bucket) => [String(bucket.capacity), String(bucket.refillMs)])
      const response = await asStoreError(evaluate(link, takeTokensScript, keys, [String(cost), ...limits]))
      const [ok, wait, index] = Array.isArray(response) ? response.map(Number) : []
      return { ok: ok === 1, retryAfterMs: wait ?? 0, refusedBy: buckets[(index ?? 0) - 1]?.key }
    },
    async count(counters): Promise<CountResult> {
      checkCounters(counters)
      if (counters.length === 0) return { ok: true, sums: [] }
      const keys = counters.map(({ key }) => prefix + key)
      const args = counters.flatMap(({ add, limit, ttlMs }) => [
        String(add),
        limit === undefined ? '' : String(limit),
        String(ttlMs),
      ])
      const response = await asStoreError(evaluate(link, countScript, keys, args))
      const [ok, ...sums] = Array.isArray(response) ? response.map(Number) : []
      return { ok: ok === 1, sums }
    },
    async *scan() {
      for (let cursor = '0'; ; ) {
        const args = ['SCAN', cursor, 'MATCH', `${globEscaped(prefix)}*`, 'COUNT', '500']
        const response = await asStoreError(link.send(prefix, 'write', args))
        const [next, keys] = Array.isArray(response) ? response : []
        if (typeof next !== 'string' || !Array.isArray(keys)) throw new GatehouseError('STORE_DOWN')
        yield keys.map((key) => String(key).slice(prefix.length))
        if (next === '0') return
        cursor = next
      }
    },
    namespace: (more) => view(link, prefix + more),
    async ping() {
      await asStoreError(link.send(undefined, 'read', ['PING']))
    },
    async close() {},
  }
}

/** Treats a rejected command (memory full, missing permission, wrong password) as an outage. */
async function asStoreError(response: Promise<unknown>): Promise<unknown> {
  try {
    return await response
  } catch (error) {
    if (error instanceof GatehouseError) throw error
    const full = error instanceof ReplyError && error.message.startsWith('OOM')
    throw new GatehouseError(full ? 'STORE_FULL' : 'STORE_DOWN', { cause: error })
  }
}

/** Returns the prefix as a pattern that matches only itself. */
function globEscaped(prefix: string): string {
  return prefix.replace(/[\\*?[\]^-]/g, '\\$&')
}

function text(response: unknown): string | undefined {
  return typeof response === 'string' ? response : undefined
}
