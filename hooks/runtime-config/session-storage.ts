/**
 * Configures the session store: the resource's own store, otherwise the installation's default, otherwise memory.
 *
 * An environment variable contains the password. Each server has its own key prefix, so several servers can share one
 * Redis instance. An explicit `memory` is respected.
 * Source: docs/reference/specification/virtual-server.md#sessionStorage, "spec.sessionStorage".
 */
import type { RuntimeSessionStorage, SecretRef, SessionStorageConfig } from '../../schemas/index.ts'
import { isFields } from '../base/kube.ts'
import { secretNamesIn } from '../references/secret-names.ts'
import type { Conditions, SyncFailure } from '../sync/conditions.ts'
import type { AnyContext } from '../sync/context.ts'
import type { PodNeeds } from './needs.ts'
import type { HookSettings } from '../base/settings.ts'

const passwordVariable = 'GATEHOUSE_SESSION_REDIS_PASSWORD'

export interface SessionOwner {
  /** Prefix that identifies the kind in store keys: `vmcp` or `proxy`. */
  readonly scope: string
  readonly namespace: string
  readonly name: string
}

/**
 * Returns the Secret with the store's password: the resource's Secret, or the installation's if the resource has no
 * store.
 */
function sessionPassword(
  config: SessionStorageConfig | undefined,
  { defaultRedis }: Pick<HookSettings, 'defaultRedis'>,
): SecretRef | undefined {
  if (config) return config.provider === 'redis' ? config.passwordRef : undefined
  if (defaultRedis?.secretName === undefined) return undefined
  return { name: defaultRedis.secretName, key: defaultRedis.secretKey ?? 'redis-password' }
}

/** Returns the Secrets that a spec's session store uses, for `customize`. The spec may be invalid. */
export function sessionSecretNames(
  sessionStorage: unknown,
  { defaultRedis }: Pick<HookSettings, 'defaultRedis'>,
): readonly (string | undefined)[] {
  return isFields(sessionStorage) ? secretNamesIn(sessionStorage) : [defaultRedis?.secretName]
}

/** Restarts the pods when the password changes, and reports a missing password. */
export function checkSessionPassword(
  context: AnyContext,
  config: SessionStorageConfig | undefined,
  needs: PodNeeds,
): SyncFailure | undefined {
  const password = sessionPassword(config, context.settings)
  if (!password) return undefined
  needs.revision('sessionStorage', context.secretRevision([password]))
  const field = config ? 'spec.sessionStorage.passwordRef' : 'password of the default session store'
  return context.missingSecretsFailure([password], 'SecretNotFound', field)
}

/** Returns undefined if no store is configured. The runtime then keeps sessions in memory. */
export function sessionStoragePart(
  config: SessionStorageConfig | undefined,
  settings: Pick<HookSettings, 'defaultRedis'>,
  owner: SessionOwner,
  needs: PodNeeds,
): RuntimeSessionStorage | undefined {
  if (config?.provider === 'memory') return { provider: 'memory', db: 0 }
  const keyPrefix = `gatehouse:${owner.scope}:${owner.namespace}:${owner.name}:`
  const password = sessionPassword(config, settings)
  if (password) needs.secretEnv(passwordVariable, password)
  if (config) {
    return {
      provider: 'redis',
      ...(config.address !== undefined && { address: config.address }),
      db: config.db,
      keyPrefix: config.keyPrefix || keyPrefix,
    }
  }
  const { defaultRedis } = settings
  return defaultRedis && { provider: 'redis', address: defaultRedis.address, db: 0, keyPrefix }
}

/** Warns when several replicas have no shared session store. `provider` is the resource's own setting. */
export function checkReplicaSessions(
  conditions: Conditions,
  settings: Pick<HookSettings, 'defaultRedis'>,
  provider: 'memory' | 'redis' | undefined,
  replicas: number,
): void {
  const redis = provider === 'redis' || (provider === undefined && settings.defaultRedis !== undefined)
  if (redis)
    conditions.set(
      'SessionStorageWarning',
      'False',
      'SessionStorageConfigured',
      'Sessions are stored in Redis',
    )
  else if (replicas > 1) {
    conditions.set(
      'SessionStorageWarning',
      'True',
      'SessionStorageMissingForReplicas',
      'Replicas do not share sessions; set sessionStorage with provider redis',
    )
  } else {
    conditions.set(
      'SessionStorageWarning',
      'False',
      'SessionStorageWarningNotApplicable',
      'A single replica does not need a shared store',
    )
  }
}
