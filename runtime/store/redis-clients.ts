/**
 * Wraps the three clients of the Redis library in one interface. Loaded on the first connection, because the library is
 * large and most programs use no Redis.
 */
import { createClient, createCluster, createSentinel, ErrorReply } from '@redis/client'
import { backoffMs, type RedisClient, ReplyError } from './redis-client.ts'
import { parseAddr, type RedisConfig, type RedisTlsConfig } from './redis-config.ts'

/** Creates a client that connects when `connect` is called. Error replies are thrown as ReplyError. */
export function makeClient(config: RedisConfig): RedisClient {
  if (config.sentinel) return sentinelClient(config, config.sentinel)
  const address = parseAddr(config.addr ?? '')
  return config.clusterMode ? clusterClient(config, address) : standaloneClient(config, address)
}

function socket(
  config: RedisConfig,
  tls: RedisTlsConfig | undefined,
  more: { host?: string; port?: number } = {},
) {
  const base = {
    ...more,
    connectTimeout: config.dialTimeoutMs ?? 5000,
    reconnectStrategy: (retries: number) => backoffMs(retries),
  }
  if (!tls) return base
  return {
    ...base,
    tls: true as const,
    minVersion: 'TLSv1.2' as const,
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.insecureSkipVerify ? { rejectUnauthorized: false, checkServerIdentity: () => undefined } : {}),
  }
}

/** Client options for a data node. Sends no additional commands on connect, so a minimal ACL is sufficient. */
function node(config: RedisConfig) {
  return {
    ...(config.username === undefined ? {} : { username: config.username }),
    ...(config.password === undefined || config.password === '' ? {} : { password: config.password }),
    ...(config.db ? { database: config.db } : {}),
    commandsQueueMaxLength: 50_000,
    disableClientInfo: true,
    maintNotifications: 'disabled' as const,
  }
}

function standaloneClient(config: RedisConfig, address: { host: string; port: number }): RedisClient {
  const client = createClient({ ...node(config), socket: socket(config, config.tls, address) })
  return {
    connect: () => client.connect(),
    destroy: () => client.destroy(),
    send: (_key, _access, args, timeout) => reply(client.sendCommand([...args], { timeout })),
    isReady: () => client.isReady,
    onError: (listener) => client.on('error', listener),
  }
}

function clusterClient(config: RedisConfig, address: { host: string; port: number }): RedisClient {
  const client = createCluster({
    rootNodes: [{ socket: socket(config, config.tls, address) }],
    defaults: { ...node(config), socket: socket(config, config.tls) },
  })
  return {
    connect: () => client.connect(),
    destroy: () => client.destroy(),
    send: (key, access, args, timeout) =>
      reply(client.sendCommand(key, access === 'read', [...args], { timeout })),
    isReady: () => client.isOpen,
    onError: (listener) => client.on('error', listener),
  }
}

function sentinelClient(config: RedisConfig, sentinel: NonNullable<RedisConfig['sentinel']>): RedisClient {
  const client = createSentinel({
    name: sentinel.masterName,
    sentinelRootNodes: sentinel.addrs.map(parseAddr),
    nodeClientOptions: { ...node(config), socket: socket(config, config.tls) },
    sentinelClientOptions: { disableClientInfo: true, socket: socket(config, config.sentinelTls) },
    scanInterval: 2000,
    passthroughClientErrorEvents: true,
  })
  return {
    connect: () => client.connect(),
    destroy: () => void client.destroy(),
    send: (_key, access, args, timeout) =>
      reply(client.sendCommand(access === 'read', [...args], { timeout })),
    isReady: () => client.isReady,
    onError: (listener) => client.on('error', listener),
  }
}

async function reply(response: Promise<unknown>): Promise<unknown> {
  try {
    return await response
  } catch (error) {
    throw error instanceof ErrorReply ? new ReplyError(error.message) : error
  }
}
