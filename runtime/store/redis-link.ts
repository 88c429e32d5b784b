/**
 * One connection to Redis in any of its three forms: standalone, cluster, Sentinel.
 *
 * Connects in the background and for ever, with growing pauses; a command waits for the connection at most the write
 * timeout and for its response at most the read timeout, then fails with `STORE_DOWN`. A connection that swallows
 * commands (a node that vanished without closing) is replaced. Servers that refuse the credentials are retried as
 * well: a rotated password heals without a restart.
 *
 * Does not know what the commands mean. Passwords never reach an error or a log.
 * Source: docs/specification/external-auth.md#storage, storage.redis; default timeouts dial 5 s, read 3 s, write 3 s.
 */
import { createClient, createCluster, createSentinel, ErrorReply } from '@redis/client'
import { GatehouseError, ModuleError } from '../../schemas/index.ts'

export interface RedisTls {
  /** CA certificates, PEM. Absent: the system's roots. */
  readonly ca?: string
  readonly insecureSkipVerify?: boolean
}

export interface RedisConfig {
  /** host:port; one of `addr` and `sentinel`. IPv6 hosts in brackets. */
  readonly addr?: string
  /** Speak the cluster protocol; needs `addr`. */
  readonly clusterMode?: boolean
  readonly sentinel?: { readonly masterName: string; readonly addrs: readonly string[] }
  /** Database number; not in cluster mode. Default 0. */
  readonly db?: number
  /** Absent: password-only AUTH, or none without a password either. */
  readonly username?: string
  readonly password?: string
  /** Presence enables TLS to master and cluster nodes. */
  readonly tls?: RedisTls
  /** Presence enables TLS to the Sentinels. */
  readonly sentinelTls?: RedisTls
  /** Default 5000. */
  readonly dialTimeoutMs?: number
  /** Default 3000. */
  readonly readTimeoutMs?: number
  /** Default 3000. */
  readonly writeTimeoutMs?: number
}

export interface LinkOptions {
  /** Told once when the connection is lost and once when it is back. */
  readonly onChange?: (up: boolean, cause: unknown) => void
}

type Args = readonly string[]

/** What the three client classes have in common, as far as it is used. */
interface Client {
  connect(): Promise<unknown>
  destroy(): void
  send(key: string | undefined, readonly: boolean, args: Args, timeoutMs: number): Promise<unknown>
  /** Whether a command would be written at once. */
  ready(): boolean
  onError(listener: (error: unknown) => void): void
}

const backoffMs = (tries: number): number =>
  Math.min(2000, 50 * 2 ** Math.min(tries, 6)) * (0.5 + Math.random() / 2)

export class RedisLink {
  readonly #config: RedisConfig
  readonly #readMs: number
  readonly #writeMs: number
  readonly #onChange: (up: boolean, cause: unknown) => void
  readonly #closing = new AbortController()
  #client: Client | undefined
  #connected: Promise<Client>
  #up = true
  #responses = 0

  constructor(config: RedisConfig, options: LinkOptions = {}) {
    this.#config = config
    this.#readMs = config.readTimeoutMs ?? 3000
    this.#writeMs = config.writeTimeoutMs ?? 3000
    this.#onChange = options.onChange ?? (() => {})
    this.#connected = this.#connect()
  }

  /** Sends one command. `key` routes it in a cluster. Throws `STORE_DOWN`; error replies of the server are thrown as is. */
  async send(key: string | undefined, readonly: boolean, args: Args): Promise<unknown> {
    if (this.#closing.signal.aborted) throw down(new Error('the store is closed'))
    const seen = this.#responses
    let client: Client | undefined
    try {
      client = await this.#whenConnected()
      const timeoutMs = client.ready() ? this.#readMs : this.#writeMs + this.#readMs
      const response = await deadline(client.send(key, readonly, args, timeoutMs), timeoutMs)
      this.#responses += 1
      this.#report(true, undefined)
      return response
    } catch (error) {
      if (error instanceof ErrorReply && !transient(error)) throw error
      this.#report(false, error)
      // Nothing at all came back while this command waited: the peer may be gone without a trace.
      if (client && error instanceof Deadline && seen === this.#responses) this.#replace(client)
      throw down(error)
    }
  }

  close(): void {
    this.#closing.abort()
    this.#client?.destroy()
  }

  async #whenConnected(): Promise<Client> {
    return this.#client ?? deadline(this.#connected, this.#writeMs)
  }

  #replace(client: Client): void {
    if (client !== this.#client) return
    this.#client = undefined
    client.destroy()
    this.#connected = this.#connect()
  }

  async #connect(): Promise<Client> {
    for (let tries = 0; ; tries++) {
      const client = makeClient(this.#config)
      client.onError((error) => this.#report(false, error))
      const stop = (): void => client.destroy()
      this.#closing.signal.addEventListener('abort', stop, { once: true })
      try {
        await client.connect()
        this.#client = client
        return client
      } catch (error) {
        client.destroy()
        if (this.#closing.signal.aborted) return new Promise(() => {})
        this.#report(false, error)
        await pause(backoffMs(tries), this.#closing.signal)
      } finally {
        this.#closing.signal.removeEventListener('abort', stop)
      }
    }
  }

  #report(up: boolean, cause: unknown): void {
    if (up === this.#up || this.#closing.signal.aborted) return
    this.#up = up
    this.#onChange(up, cause)
  }
}

/** Replies that say "not now" rather than "never": failover, loading, a cluster without its slots. */
function transient(error: ErrorReply): boolean {
  return /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|NOREPLICAS|UNKILLABLE|MISCONF)\b/.test(
    error.message,
  )
}

function down(cause: unknown): GatehouseError {
  return new GatehouseError('STORE_DOWN', { cause, headers: { 'retry-after': '5' } })
}

class Deadline extends ModuleError {}

async function deadline<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Deadline(`no response within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms)
    // A process that only waits for its store to come back may end.
    timer.unref()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
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

function parseAddr(addr: string): { host: string; port: number } {
  const split = splitAddr(addr)
  if (!split) throw new GatehouseError('INVALID_CONFIG', { detail: `redis: ${addrError(addr)}` })
  return split
}

/** Refuses a combination that the documents exclude. Throws INVALID_CONFIG naming every error. */
export function checkRedisConfig(config: RedisConfig): void {
  const violations: string[] = []
  if ((config.addr === undefined) === (config.sentinel === undefined)) {
    violations.push('exactly one of addr and sentinelConfig is required')
  }
  if (config.clusterMode && config.addr === undefined) violations.push('clusterMode requires addr')
  if (config.clusterMode && config.db) violations.push('db cannot be used with clusterMode')
  if (config.sentinelTls && !config.sentinel) violations.push('sentinelTls requires sentinelConfig')
  if (config.sentinel && config.sentinel.addrs.length === 0)
    violations.push('sentinelConfig needs an address')
  if (config.username !== undefined && config.password === undefined)
    violations.push('username needs a password')
  for (const addr of [
    ...(config.addr === undefined ? [] : [config.addr]),
    ...(config.sentinel?.addrs ?? []),
  ]) {
    if (!splitAddr(addr)) violations.push(addrError(addr))
  }
  if (violations.length > 0)
    throw new GatehouseError('INVALID_CONFIG', { detail: `redis: ${violations.join('; ')}` })
}

function makeClient(config: RedisConfig): Client {
  if (config.sentinel) return sentinelClient(config, config.sentinel)
  const address = parseAddr(config.addr ?? '')
  return config.clusterMode ? clusterClient(config, address) : standaloneClient(config, address)
}

function socket(config: RedisConfig, tls: RedisTls | undefined, more: { host?: string; port?: number } = {}) {
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

/** Options of a data node; no extra chatter on connect, so that a minimal ACL suffices. */
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

function standaloneClient(config: RedisConfig, address: { host: string; port: number }): Client {
  const client = createClient({ ...node(config), socket: socket(config, config.tls, address) })
  return {
    connect: () => client.connect(),
    destroy: () => client.destroy(),
    send: (_key, _readonly, args, timeout) => client.sendCommand([...args], { timeout }),
    ready: () => client.isReady,
    onError: (listener) => client.on('error', listener),
  }
}

function clusterClient(config: RedisConfig, address: { host: string; port: number }): Client {
  const client = createCluster({
    rootNodes: [{ socket: socket(config, config.tls, address) }],
    defaults: { ...node(config), socket: socket(config, config.tls) },
  })
  return {
    connect: () => client.connect(),
    destroy: () => client.destroy(),
    send: (key, readonly, args, timeout) => client.sendCommand(key, readonly, [...args], { timeout }),
    ready: () => client.isOpen,
    onError: (listener) => client.on('error', listener),
  }
}

function sentinelClient(config: RedisConfig, sentinel: NonNullable<RedisConfig['sentinel']>): Client {
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
    send: (_key, readonly, args, timeout) => client.sendCommand(readonly, [...args], { timeout }),
    ready: () => client.isReady,
    onError: (listener) => client.on('error', listener),
  }
}
