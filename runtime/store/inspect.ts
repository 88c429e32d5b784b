/**
 * Reads the facts about a Redis server that must be known before it stores sessions. Does not write anything. Omits
 * facts that require a missing permission.
 */
import { checkRedisConfig, type RedisConfig } from './redis-config.ts'
import { RedisLink } from './redis-link.ts'

export interface RedisFacts {
  /** Version from INFO, for example `7.2.4`. */
  readonly version: string | undefined
  readonly role: string | undefined
  /** Eviction policy from CONFIG GET or INFO. */
  readonly policy: string | undefined
  readonly usedBytes: number | undefined
  /** Memory limit; 0 means no limit. */
  readonly maxBytes: number | undefined
  /** The server's clock in Unix milliseconds, and our clock halfway through the request. */
  readonly clock: { readonly theirs: number; readonly ours: number } | undefined
}

/** Reason why the connection or the login failed. */
export interface RedisFailure {
  readonly reason: unknown
}

/** Throws INVALID_CONFIG for an invalid configuration. */
export async function inspectRedis(config: RedisConfig): Promise<RedisFacts | RedisFailure> {
  checkRedisConfig(config)
  let reason: unknown
  const link = new RedisLink(config, {
    onChange({ cause }) {
      reason = cause
    },
  })
  const ask = async (...args: string[]): Promise<unknown> => link.send(undefined, 'read', args)
  const optional = (...args: string[]) => ask(...args).catch(() => undefined)
  try {
    await ask('PING')
    const info = linesOf(await optional('INFO'))
    const sent = Date.now()
    const time = await optional('TIME')
    const ours = (sent + Date.now()) / 2
    return {
      version: info.get('valkey_version') ?? info.get('redis_version'),
      role: info.get('role'),
      policy: info.get('maxmemory_policy'),
      usedBytes: numberOf(info.get('used_memory')),
      maxBytes: numberOf(info.get('maxmemory')),
      clock: clockOf(time, ours),
    }
  } catch (error) {
    return { reason: reason ?? error }
  } finally {
    link.close()
  }
}

function linesOf(info: unknown): ReadonlyMap<string, string> {
  const text = typeof info === 'string' ? info : ''
  return new Map(
    text.split('\r\n').flatMap((line): [string, string][] => {
      const at = line.indexOf(':')
      return at > 0 ? [[line.slice(0, at), line.slice(at + 1)]] : []
    }),
  )
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

/** TIME: seconds and microseconds. */
function clockOf(time: unknown, ours: number): RedisFacts['clock'] {
  if (!Array.isArray(time)) return undefined
  const [seconds, micros] = time.map(Number)
  if (seconds === undefined || micros === undefined || Number.isNaN(seconds + micros)) return undefined
  return { theirs: seconds * 1000 + micros / 1000, ours }
}
