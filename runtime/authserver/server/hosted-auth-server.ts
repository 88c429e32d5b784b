/** For hosts: from the file to a running server, and back. */
import { GatehouseError } from '../../../schemas/index.ts'
import { type AuthServerConfig, type Environment, loadAuthServerConfig } from '../../config/index.ts'
import { silentLog } from '../../net/index.ts'
import { type AuthServer, type AuthServerParts, checkSettings, makeAuthServer } from './auth-server.ts'
import type { Store } from '../../store/index.ts'
import { openAuthServerStore } from '../storage/open.ts'
import { sharedRing } from '../tokens/shared-ring.ts'

export interface HostedAuthServer extends AuthServer {
  /** What the host itself must know: issuer, audiences, disableUpstreamTokenInjection, … */
  readonly config: AuthServerConfig
}

export interface HostParts extends Omit<AuthServerParts, 'store' | 'lent'> {
  /** Proxies in front of one server support one upstream (docs/specification/external-auth.md#upstreamProviders, upstreamProviders). Default: any number. */
  readonly maxUpstreams?: number
  /** What processes share that are one server; keys that are not configured are made once for all of them. */
  readonly shared?: Store | undefined
}

/**
 * Reads the file, opens the store and makes the server; closing it closes the store too. Throws INVALID_CONFIG naming
 * every error.
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
    const server = await makeAuthServer(config, { ...parts, store, lent })
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

/** What `openAuthServer` would refuse, found without opening anything. Throws INVALID_CONFIG naming every error. */
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
      detail: `upstreamProviders: at most ${maxUpstreams} is supported here, ${config.upstreams.length} are configured`,
    })
  }
  return config
}
