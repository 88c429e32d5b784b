/**
 * Where a server keeps its sessions: what the resource says, else what the installation offers, else memory.
 *
 * The password goes to the environment. Each server has a key prefix of its own, so that two servers can share a Redis.
 * An explicit `memory` is honoured. Source: docs/reference/specification/virtual-server.md#sessionStorage, "spec.sessionStorage".
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
  /** Short word for the kind in keys: `vmcp` or `proxy`. */
  readonly scope: string
  readonly namespace: string
  readonly name: string
}

/** The Secret with the store's password: what the resource names, else the installation's for resources that name no store. */
function sessionPassword(
  config: SessionStorageConfig | undefined,
  { defaultRedis }: Pick<HookSettings, 'defaultRedis'>,
): SecretRef | undefined {
  if (config) return config.provider === 'redis' ? config.passwordRef : undefined
  if (defaultRedis?.secretName === undefined) return undefined
  return { name: defaultRedis.secretName, key: defaultRedis.secretKey ?? 'redis-password' }
}

/** Names of Secrets that a spec's session store needs, for `customize`: of a spec that nobody has checked yet. */
export function sessionSecretNames(
  sessionStorage: unknown,
  { defaultRedis }: Pick<HookSettings, 'defaultRedis'>,
): readonly (string | undefined)[] {
  return isFields(sessionStorage) ? secretNamesIn(sessionStorage) : [defaultRedis?.secretName]
}

/** Rolls the pods when the password changes, and says when it is not there. */
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

/** Undefined: nothing was said, and the runtime keeps sessions in memory. */
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

/** Several replicas without a shared session store: a warning, never a refusal. `provider` is what the resource says. */
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
      'Several replicas keep their sessions apart; set sessionStorage with provider redis',
    )
  } else {
    conditions.set(
      'SessionStorageWarning',
      'False',
      'SessionStorageWarningNotApplicable',
      'One replica needs no shared store',
    )
  }
}
