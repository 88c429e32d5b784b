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

/** Maximum time in milliseconds, and maximum number of commands, for which one signal is used. */
const sharedMs = 100
const maxShared = 256

/**
 * Signals that drop commands that a client has not written in time. The library's own timeout creates a signal with a
 * timer for each command, which costs as much as the rest of the command. Here, the commands of a tenth of a second
 * share a signal, so an unwritten command may be dropped a tenth of a second early.
 */
class WriteLimits {
  #signal: AbortSignal | undefined
  #timeoutMs = 0
  #until = 0
  #left = 0

  /** Returns the options of a command that must be written within `timeoutMs`. */
  optionsFor(timeoutMs: number): { readonly timeout: 0; readonly abortSignal: AbortSignal } {
    return { timeout: 0, abortSignal: this.#signalFor(timeoutMs) }
  }

  #signalFor(timeoutMs: number): AbortSignal {
    const now = performance.now()
    if (this.#signal && timeoutMs === this.#timeoutMs && now < this.#until && this.#left-- > 0)
      return this.#signal
    const signal = AbortSignal.timeout(timeoutMs)
    this.#signal = signal
    this.#timeoutMs = timeoutMs
    this.#until = now + Math.min(sharedMs, timeoutMs / 10)
    this.#left = maxShared
    return signal
  }
}

function standaloneClient(config: RedisConfig, address: { host: string; port: number }): RedisClient {
  const limits = new WriteLimits()
  const client = createClient({ ...node(config), socket: socket(config, config.tls, address) })
  return {
    connect: () => client.connect(),
    destroy: () => client.destroy(),
    send: (_key, _access, args, timeoutMs) =>
      reply(client.sendCommand([...args], limits.optionsFor(timeoutMs))),
    isReady: () => client.isReady,
    onError: (listener) => client.on('error', listener),
  }
}

function clusterClient(config: RedisConfig, address: { host: string; port: number }): RedisClient {
  const limits = new WriteLimits()
  const client = createCluster({
    rootNodes: [{ socket: socket(config, config.tls, address) }],
    defaults: { ...node(config), socket: socket(config, config.tls) },
  })
  return {
    connect: () => client.connect(),
    destroy: () => client.destroy(),
    send: (key, access, args, timeoutMs) =>
      reply(client.sendCommand(key, access === 'read', [...args], limits.optionsFor(timeoutMs))),
    isReady: () => client.isOpen,
    onError: (listener) => client.on('error', listener),
  }
}

function sentinelClient(config: RedisConfig, sentinel: NonNullable<RedisConfig['sentinel']>): RedisClient {
  const limits = new WriteLimits()
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
    send: (_key, access, args, timeoutMs) =>
      reply(client.sendCommand(access === 'read', [...args], limits.optionsFor(timeoutMs))),
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
