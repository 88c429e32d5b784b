/** Builds the storage settings of an embedded authorization server. Each server has its own key prefix. */
import type { AuthServerRedis, EmbeddedAuthServerConfig, RedisTls } from '../../schemas/index.ts'
import { definedFields } from '../base/kube.ts'
import type { PodNeeds } from './needs.ts'

/** The server that uses the storage. */
interface StorageTarget {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly clusterDomain: string
  readonly needs: PodNeeds
}

const directory = '/etc/gatehouse/authserver/redis-tls'

export function storagePart(config: EmbeddedAuthServerConfig, target: StorageTarget) {
  const redis = config.storage?.redis
  return config.storage?.type === 'redis' && redis
    ? { type: 'redis' as const, redis: redisPart(redis, target) }
    : undefined
}

function redisPart(redis: AuthServerRedis, target: StorageTarget) {
  const { needs } = target
  const { usernameSecretRef, passwordSecretRef } = redis.aclUserConfig
  return definedFields({
    addr: redis.addr,
    clusterMode: redis.clusterMode,
    sentinelConfig: sentinelPart(redis, target),
    usernameEnv:
      usernameSecretRef && needs.secretEnv('GATEHOUSE_AUTH_SERVER_REDIS_USERNAME', usernameSecretRef),
    passwordEnv: needs.secretEnv('GATEHOUSE_AUTH_SERVER_REDIS_PASSWORD', passwordSecretRef),
    keyPrefix: keyPrefix(redis, target),
    tls: tlsPart(redis.tls, 'master', needs),
    sentinelTls: tlsPart(redis.sentinelTls, 'sentinel', needs),
    dialTimeout: redis.dialTimeout,
    readTimeout: redis.readTimeout,
    writeTimeout: redis.writeTimeout,
  })
}

/**
 * Returns the key prefix. In a Redis Cluster, the prefix is a hash tag, so that all keys of one server share a slot.
 */
function keyPrefix({ clusterMode }: AuthServerRedis, { kind, namespace, name }: StorageTarget): string {
  const prefix = `gatehouse:authserver:${kind.toLowerCase()}:${namespace}:${name}:`
  return clusterMode ? `{${prefix}}` : prefix
}

function sentinelPart({ sentinelConfig }: AuthServerRedis, { namespace, clusterDomain }: StorageTarget) {
  if (!sentinelConfig) return undefined
  const { masterName, db, sentinelAddrs, sentinelService } = sentinelConfig
  const host =
    sentinelService &&
    `${sentinelService.name}.${sentinelService.namespace ?? namespace}.svc.${clusterDomain}`
  return { masterName, db, sentinelAddrs: host ? [`${host}:${sentinelService.port}`] : (sentinelAddrs ?? []) }
}

function tlsPart(tls: RedisTls | undefined, which: string, needs: PodNeeds) {
  if (!tls) return undefined
  const path = `${directory}/${which}`
  const ca = tls.caCertSecretRef
  if (ca) needs.secretFiles(`redis-tls-ca-${which}`, path, ca.name, [{ key: ca.key, path: 'ca.crt' }])
  return definedFields({
    caCertFile: ca && `${path}/ca.crt`,
    insecureSkipVerify: tls.insecureSkipVerify ?? false,
  })
}
