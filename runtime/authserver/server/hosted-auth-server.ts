/** Opens the authorization server from its configuration file, for hosts. */
import { GatehouseError } from '../../../schemas/index.ts'
import {
  type AuthServerConfig,
  type Environment,
  followAssertionPolicies,
  followExchangePolicies,
  followDeclaredClients,
  loadAuthServerConfig,
  type StorageSettings,
} from '../../config/index.ts'
import { type Log, silentLog } from '../../net/index.ts'
import { makeMemoryStore, makeRedisStore, type Store } from '../../store/index.ts'
import { sharedRing } from '../tokens/key-ring.ts'
import { type AuthServer, type AuthServerParts, checkSettings, makeAuthServer } from './auth-server.ts'

export interface HostedAuthServer extends AuthServer {
  readonly config: AuthServerConfig
}

interface HostParts extends Omit<AuthServerParts, 'store' | 'lent'> {
  /**
   * Default: unlimited. A proxy supports one provider (docs/reference/specification/external-auth.md#upstreamProviders,
   * upstreamProviders).
   */
  readonly maxUpstreams?: number
  /** Store shared by the processes of one server. This store supplies the keys that are not configured. */
  readonly shared?: Store | undefined
}

/**
 * Reads the file, opens the store and creates the server. Closing the server closes the store. Throws an INVALID_CONFIG
 * error that lists every error.
 */
export async function openAuthServer(
  path: string,
  env: Environment,
  parts: HostParts = {},
): Promise<HostedAuthServer> {
  const config = readConfig(path, env, parts.maxUpstreams)
  const store = openAuthServerStore(config.storage, parts.log ?? silentLog, parts.shared)
  try {
    const lent = parts.shared && (await sharedRing(parts.shared))
    const readClients = followDeclaredClients(path)
    const readAssertionPolicies = followAssertionPolicies(path)
    const readExchangePolicies = followExchangePolicies(path)
    const server = await makeAuthServer(config, {
      ...parts,
      store,
      lent,
      readClients,
      readAssertionPolicies,
      readExchangePolicies,
    })
    return {
      ...server,
      config,
      async close() {
        await server.close()
        await store.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/**
 * Checks a configuration as `openAuthServer` does, but opens nothing. Throws an INVALID_CONFIG error that lists every
 * error.
 */
export async function checkAuthServer(
  path: string,
  env: Environment,
  { maxUpstreams }: Pick<HostParts, 'maxUpstreams'> = {},
): Promise<AuthServerConfig> {
  const config = readConfig(path, env, maxUpstreams)
  await checkSettings(config)
  return config
}

function readConfig(
  path: string,
  env: Environment,
  maxUpstreams = Number.POSITIVE_INFINITY,
): AuthServerConfig {
  const config = loadAuthServerConfig(path, env)
  if (config.upstreams.length > maxUpstreams) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `upstreamProviders: at most ${maxUpstreams} is supported here, but ${config.upstreams.length} are configured`,
    })
  }
  return config
}

/** Opens the configured store, which connects in the background. Throws INVALID_CONFIG. */
export function openAuthServerStore(storage: StorageSettings, log: Log, shared?: Store): Store {
  if (storage.type === 'memory') return shared?.namespace('records:') ?? makeMemoryStore()
  return makeRedisStore(storage.redis, {
    onChange: ({ up, cause }) =>
      up
        ? log.info('the authorization server’s store is responding again')
        : log.error('the authorization server’s store does not respond', { err: cause }),
  })
}
