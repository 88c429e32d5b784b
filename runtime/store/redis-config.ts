/** Redis connection settings, their validation and address parsing. */
import { GatehouseError } from '../../schemas/index.ts'

export interface RedisTlsConfig {
  /** CA certificates, PEM. Defaults to the system's trust anchors. */
  readonly ca?: string
  readonly insecureSkipVerify?: boolean
}

export interface RedisConfig {
  /** Address as host:port, with IPv6 hosts in brackets. Exactly one of `addr` and `sentinel` is set. */
  readonly addr?: string
  /** Uses the cluster protocol; requires `addr`. */
  readonly clusterMode?: boolean
  readonly sentinel?: { readonly masterName: string; readonly addrs: readonly string[] }
  /** Database number; not in cluster mode. Defaults to 0. */
  readonly db?: number
  /**
   * User name. If only a password is set, the client authenticates with the password alone. If neither is set, it does
   * not authenticate.
   */
  readonly username?: string
  readonly password?: string
  /** Enables TLS for connections to the master and cluster nodes. */
  readonly tls?: RedisTlsConfig
  /** Enables TLS for connections to the Sentinels. */
  readonly sentinelTls?: RedisTlsConfig
  /** Connection timeout in milliseconds. Defaults to 5000. */
  readonly dialTimeoutMs?: number
  /** Read timeout in milliseconds. Defaults to 3000. */
  readonly readTimeoutMs?: number
  /** Write timeout in milliseconds. Defaults to 3000. */
  readonly writeTimeoutMs?: number
}

/** Splits host:port and [v6]:port. */
function splitAddr(addr: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/@\s]+)):(\d{1,5})$/.exec(addr)
  const port = Number(match?.[3])
  const host = match?.[1] ?? match?.[2]
  return host && port >= 1 && port <= 65535 ? { host, port } : undefined
}

function addrError(addr: string): string {
  return `an address must be host:port, got "${addr}"`
}

/** Throws INVALID_CONFIG. */
export function parseAddr(addr: string): { host: string; port: number } {
  const split = splitAddr(addr)
  if (!split) throw new GatehouseError('INVALID_CONFIG', { detail: `redis: ${addrError(addr)}` })
  return split
}

/** Throws an INVALID_CONFIG error that lists every error that `redisViolations` finds. */
export function checkRedisConfig(config: RedisConfig): void {
  const violations = redisViolations(config)
  if (violations.length > 0)
    throw new GatehouseError('INVALID_CONFIG', { detail: `redis: ${violations.join('; ')}` })
}

/** Returns invalid addresses and forbidden combinations of settings, one line each. */
export function redisViolations(config: RedisConfig): readonly string[] {
  const violations: string[] = []
  if ((config.addr === undefined) === (config.sentinel === undefined)) {
    violations.push('exactly one of addr and sentinelConfig is required')
  }
  if (config.clusterMode && config.addr === undefined) violations.push('clusterMode requires addr')
  if (config.clusterMode && config.db) violations.push('db cannot be used with clusterMode')
  if (config.sentinelTls && !config.sentinel) violations.push('sentinelTls requires sentinelConfig')
  if (config.sentinel && config.sentinel.addrs.length === 0)
    violations.push('sentinelConfig requires an address')
  if (config.username !== undefined && config.password === undefined)
    violations.push('username requires a password')
  for (const addr of [
    ...(config.addr === undefined ? [] : [config.addr]),
    ...(config.sentinel?.addrs ?? []),
  ]) {
    if (!splitAddr(addr)) violations.push(addrError(addr))
  }
  return violations
}
