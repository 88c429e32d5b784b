/**
 * Where a server keeps its sessions: what the resource says, else what the installation offers, else memory.
 *
 * The password goes to the environment. Each server has a key prefix of its own, so that two servers can share a Redis.
 * An explicit `memory` is honoured. Source: docs/specification/virtual-server.md#sessionStorage, "spec.sessionStorage".
 */
import type { RuntimeSessionStorage, SessionStorageConfig } from '../../schemas/index.ts'
import type { Conditions } from '../sync/conditions.ts'
import type { PodNeeds } from './needs.ts'
import type { HookSettings } from '../settings.ts'

const passwordVariable = 'GATEHOUSE_SESSION_REDIS_PASSWORD'

export interface SessionOwner {
  /** Short word for the kind in keys: `vmcp` or `proxy`. */
  readonly scope: string
  readonly namespace: string
  readonly name: string
}

/** Undefined: nothing was said, and the runtime keeps sessions in memory. */
export function sessionStoragePart(
  config: SessionStorageConfig | undefined,
  settings: Pick<HookSettings, 'defaultRedis'>,
  owner: SessionOwner,
  needs: PodNeeds,
): RuntimeSessionStorage | undefined {
  if (config?.provider === 'memory') return { provider: 'memory', db: 0 }
  const keyPrefix = `gatehouse:${owner.scope}:${owner.namespace}:${owner.name}:`
  if (config) {
    if (config.passwordRef) needs.secretEnv(passwordVariable, config.passwordRef)
    return {
      provider: 'redis',
      ...(config.address !== undefined && { address: config.address }),
      db: config.db,
      keyPrefix: config.keyPrefix || keyPrefix,
    }
  }
  const { defaultRedis } = settings
  if (!defaultRedis) return undefined
  if (defaultRedis.secretName !== undefined) {
    const key = defaultRedis.secretKey ?? 'redis-password'
    needs.secretEnv(passwordVariable, { name: defaultRedis.secretName, key })
  }
  return { provider: 'redis', address: defaultRedis.address, db: 0, keyPrefix }
}

/** Several replicas without a shared session store: a warning, never a refusal. `provider` is what the resource says. */
export function checkReplicaSessions(
  conditions: Conditions,
  settings: Pick<HookSettings, 'defaultRedis'>,
  provider: 'memory' | 'redis' | undefined,
  replicas: number | undefined,
): void {
  const redis = provider === 'redis' || (provider === undefined && settings.defaultRedis !== undefined)
  if (redis)
    conditions.set('SessionStorageWarning', false, 'SessionStorageConfigured', 'Sessions are stored in Redis')
  else if ((replicas ?? 0) > 1) {
    conditions.set(
      'SessionStorageWarning',
      true,
      'SessionStorageMissingForReplicas',
      'Several replicas keep their sessions apart; set sessionStorage with provider redis',
    )
  } else {
    conditions.set(
      'SessionStorageWarning',
      false,
      'SessionStorageWarningNotApplicable',
      'One replica needs no shared store',
    )
  }
}
