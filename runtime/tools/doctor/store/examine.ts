/** Checks the Redis server that stores sessions and logins. Read-only. */
import { inspectRedis, type RedisConfig, type RedisFacts } from '../../../store/index.ts'
import { isLoopbackHost, unbracket } from '../../../net/index.ts'
import { failed, type Finding, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { makeClean } from '../report/text.ts'
import { type Check, walk } from '../report/walk.ts'

export interface RedisOptions {
  /** A redis:// or rediss:// URL, optionally with a user name and a database number, but without a password. */
  readonly url: URL
  readonly password?: string | undefined
  /** PEM. */
  readonly ca?: string | undefined
  readonly timeoutMs: number
}

interface StoreFacts {
  readonly options: RedisOptions
  redis?: RedisFacts
}

const skewMs = 5_000
const fullShare = 0.9

function configOf({ url, password, ca, timeoutMs }: RedisOptions): RedisConfig {
  const db = /^\/\d{1,5}$/.test(url.pathname) ? Number(url.pathname.slice(1)) : 0
  return {
    addr: `${url.hostname}:${url.port || '6379'}`,
    dialTimeoutMs: timeoutMs,
    writeTimeoutMs: timeoutMs,
    readTimeoutMs: timeoutMs,
    ...(db > 0 && { db }),
    ...(url.username !== '' && { username: decodeURIComponent(url.username) }),
    ...(password !== undefined && { password }),
    ...(url.protocol === 'rediss:' && { tls: ca === undefined ? {} : { ca } }),
  }
}

async function checkConnection(facts: StoreFacts): Promise<CheckOutcome> {
  const found = await inspectRedis(configOf(facts.options))
  if (!('reason' in found)) {
    facts.redis = found
    return ok('PING')
  }
  const text = reasonOf(found.reason)
  const isRejected = /WRONGPASS|NOAUTH|invalid (?:username-)?password|NOPERM|without any password/i.test(text)
  return failed(isRejected ? 'redis.credentials' : 'redis.unreachable', text)
}

function reasonOf(reason: unknown): string {
  if (!(reason instanceof Error)) return 'no connection'
  const deeper = reason.cause instanceof Error ? ` (${reason.cause.message})` : ''
  return `${reason.message === '' && 'code' in reason ? String(reason.code) : reason.message}${deeper}`
}

async function checkPlain({ options: { url } }: StoreFacts): Promise<CheckOutcome> {
  if (url.protocol === 'rediss:') return ok('TLS')
  return isLoopbackHost(unbracket(url.hostname))
    ? ok('plain, on loopback')
    : warning('redis.plain', 'redis://')
}

async function checkVersion({ redis }: StoreFacts): Promise<CheckOutcome> {
  if (redis?.version === undefined) return skipped('INFO is not permitted')
  const [major = 0, minor = 0] = redis.version.split('.').map(Number)
  const isOld = major < 6 || (major === 6 && minor < 2)
  return isOld ? failed('redis.version', redis.version) : ok(redis.version)
}

async function checkRole({ redis }: StoreFacts): Promise<CheckOutcome> {
  if (redis?.role === undefined) return skipped('INFO is not permitted')
  return redis.role === 'slave' ? failed('redis.role', 'a replica') : ok('primary')
}

async function checkPolicy({ redis }: StoreFacts): Promise<CheckOutcome> {
  if (redis?.policy === undefined) return skipped('INFO is not permitted')
  if (redis.policy === 'noeviction') return ok('noeviction')
  const seen = `maxmemory-policy ${redis.policy}`
  return redis.policy.startsWith('allkeys-') ? failed('redis.policy', seen) : warning('redis.policy', seen)
}

async function checkMemory({ redis }: StoreFacts): Promise<CheckOutcome> {
  const { usedBytes, maxBytes } = redis ?? {}
  if (usedBytes === undefined || maxBytes === undefined) return skipped('INFO is not permitted')
  if (maxBytes === 0) return ok('no limit')
  const share = `${Math.round((usedBytes / maxBytes) * 100)}% of maxmemory`
  return usedBytes > maxBytes * fullShare ? warning('redis.memory', share) : ok(share)
}

async function checkClock({ redis }: StoreFacts): Promise<CheckOutcome> {
  if (redis?.clock === undefined) return skipped('TIME is not permitted')
  const skew = redis.clock.theirs - redis.clock.ours
  const seen = `${Math.round(Math.abs(skew) / 1000)} s apart`
  return Math.abs(skew) > skewMs ? warning('redis.clock', seen) : ok(seen)
}

const rows = [
  ['redis', [], checkConnection],
  ['redis-tls', ['redis'], checkPlain],
  ['redis-version', ['redis'], checkVersion],
  ['redis-role', ['redis'], checkRole],
  ['redis-policy', ['redis'], checkPolicy],
  ['redis-memory', ['redis'], checkMemory],
  ['redis-clock', ['redis'], checkClock],
] as const

const checks: readonly Check<StoreFacts>[] = rows.map(([id, needs, run]) => ({
  id,
  hop: 'store',
  needs,
  object: ({ options: { url } }) => url.host,
  run,
}))

export function examineRedis(options: RedisOptions): Promise<readonly Finding[]> {
  const { password } = options
  return walk(checks, { facts: { options }, clean: makeClean(password === undefined ? [] : [password]) })
}
