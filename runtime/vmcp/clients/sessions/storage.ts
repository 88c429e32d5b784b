/**
 * Opens the store in which sessions outlive this process. The store is Redis, if Redis is configured, or the primary
 * process.
 *
 * Values are sealed if the replicas share key material, because a backend's session id is as sensitive as a password.
 * If the environment does not provide a key for request state, this store contains the key.
 * Source: docs/reference/specification/virtual-server.md#sessionStorage, config.sessionStorage.
 */
import { randomBytes } from 'node:crypto'
import { stateKeys, type VmcpConfig, vmcpEnvironment } from '../../../config/index.ts'
import type { Events } from '../../../observe/index.ts'
import { makeRedisStore, type RedisStoreConfig, sealStore, type Store } from '../../../store/index.ts'
import { type SessionRecords, sessionRecords } from './records.ts'

/**
 * The key prefix continues with the server's name and a colon. Two servers without a configured prefix therefore do not
 * share keys.
 */
const defaultKeyPrefix = 'gatehouse:vmcp:session:'
const requestStateKey = 'request-state-key'

/**
 * Identifies this server in the values of a store that several servers share. In a cluster, the value consists of the
 * resource's namespace and name. Outside a cluster, the value consists of the group and the name. The value is the same
 * for all replicas of a server.
 */
export function serverScope(
  { name, groupRef }: Pick<VmcpConfig, 'name' | 'groupRef'>,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const scope = env[vmcpEnvironment.namespace] || groupRef
  return [scope, name].map(encodeURIComponent).join(':')
}

export interface SessionStorage {
  readonly store: Store
  /** Returns this server's stored sessions, which expire after `ttlMs`. */
  records(ttlMs: number, now: () => number): SessionRecords
  /** True if only the workers of one primary process use the store. */
  readonly isWorkerStore?: boolean
  /** Returns key material that all replicas share. Rejects with STORE_DOWN. */
  sharedSecret(): Promise<string>
  close(): Promise<void>
}

/**
 * Opens the session storage and connects in the background. `workers` is the store that the workers of one primary
 * process share. Returns undefined if sessions stay in this process's memory.
 */
export function openSessionStorage(
  config: VmcpConfig,
  env: Readonly<Record<string, string | undefined>>,
  events: Events,
  workers?: Store,
): SessionStorage | undefined {
  const settings = sessionRedisSettings(config, env)
  const server = serverScope(config, env)
  if (!settings) return workers && makeWorkerStorage(workers, server)
  const plain = makeRedisStore(settings, {
    onChange: ({ up, cause }) => events.emit('session_storage', { up, err: cause }),
  })
  const keys = stateKeys((name) => env[name]).map((key) => Buffer.from(key))
  const [secret] = keys
  const store = secret ? sealStore(plain, () => keys) : plain
  return {
    store,
    records: (ttlMs, now) => sessionRecords(store, { server, ttlMs, now }),
    sharedSecret: async () => secret?.toString() ?? readOrCreateSecret(store),
    close: () => plain.close(),
  }
}

/** Stores sessions in the primary process. The sessions never leave this machine, so they are not sealed. */
function makeWorkerStorage(shared: Store, server: string): SessionStorage {
  const store = shared.namespace('sessions:')
  return {
    store,
    records: (ttlMs, now) => sessionRecords(store, { server, ttlMs, now }),
    isWorkerStore: true,
    sharedSecret: () => readOrCreateSecret(store),
    close: async () => {},
  }
}

async function readOrCreateSecret(store: Store): Promise<string> {
  await store.set(requestStateKey, randomBytes(32).toString('base64url'), { onlyIf: 'absent' })
  const found = await store.get(requestStateKey)
  if (found === undefined) throw new Error('the key for request state disappeared from the store')
  return found
}

/**
 * Returns the Redis settings for sessions, including the prefix of every key. Returns undefined if Redis is not
 * configured.
 */
export function sessionRedisSettings(
  config: VmcpConfig,
  env: Readonly<Record<string, string | undefined>>,
): RedisStoreConfig | undefined {
  const { sessionStorage } = config
  if (sessionStorage?.provider !== 'redis') return undefined
  const { address, db, keyPrefix } = sessionStorage
  const password = env[vmcpEnvironment.redisPassword]
  return {
    ...(address === undefined ? {} : { addr: address }),
    db,
    keyPrefix: withColon(keyPrefix || `${defaultKeyPrefix}${serverScope(config, env)}`),
    ...(password === undefined || password === '' ? {} : { password }),
  }
}

function withColon(prefix: string): string {
  return prefix.endsWith(':') ? prefix : `${prefix}:`
}
