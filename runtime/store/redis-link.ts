/**
 * A connection to Redis in one of three forms: standalone, cluster or Sentinel.
 *
 * Connects in the background and retries forever with increasing delays. A command waits at most the write timeout for
 * the connection, then at most the read timeout for its response. After that, it fails with `STORE_DOWN`. A connection
 * on which commands receive no reply (because the node vanished without closing it) is replaced. Servers that reject
 * the credentials are also retried, so that a rotated password takes effect without a restart.
 *
 * Does not interpret commands. Passwords never appear in errors or logs.
 * Source: docs/reference/specification/external-auth.md#storage, storage.redis; default timeouts dial 5 s, read 3 s,
 * write 3 s.
 */
import { GatehouseError, ModuleError } from '../../schemas/index.ts'
import { withTimeout } from '../net/index.ts'
import { type CommandAccess, type Args, backoffMs, type RedisClient, ReplyError } from './redis-client.ts'
import type { RedisConfig } from './redis-config.ts'

interface LinkChange {
  readonly up: boolean
  /** The reason why the connection was lost. */
  readonly cause: unknown
}

export interface LinkOptions {
  /** Called once when the connection is lost and once when it is restored. */
  readonly onChange?: (change: LinkChange) => void
}

export class RedisLink {
  readonly #config: RedisConfig
  readonly #readMs: number
  readonly #writeMs: number
  readonly #onChange: (change: LinkChange) => void
  readonly #closing = new AbortController()
  #client: RedisClient | undefined
  #connected: Promise<RedisClient>
  #up = true
  #responses = 0

  constructor(config: RedisConfig, options: LinkOptions = {}) {
    this.#config = config
    this.#readMs = config.readTimeoutMs ?? 3000
    this.#writeMs = config.writeTimeoutMs ?? 3000
    this.#onChange = options.onChange ?? (() => {})
    this.#connected = this.#connect()
  }

  /**
   * Sends a command. In a cluster, `key` routes the command. Throws `STORE_DOWN`, or the server's error reply
   * unchanged.
   */
  async send(key: string | undefined, access: CommandAccess, args: Args): Promise<unknown> {
    if (this.#closing.signal.aborted) throw storeDown(new Error('the store is closed'))
    const seen = this.#responses
    let client: RedisClient | undefined
    try {
      client = await this.#whenConnected()
      const timeoutMs = client.isReady() ? this.#readMs : this.#writeMs + this.#readMs
      const response = await inTime(client.send(key, access, args, timeoutMs), timeoutMs)
      this.#responses += 1
      this.#reportUp()
      return response
    } catch (error) {
      if (error instanceof ReplyError && !isTransient(error)) throw error
      this.#reportDown(error)
      // Nothing was received while this command waited, so the peer may have vanished.
      if (client && error instanceof Deadline && seen === this.#responses) this.#replace(client)
      throw storeDown(error)
    }
  }

  close(): void {
    this.#closing.abort()
    this.#client?.destroy()
  }

  async #whenConnected(): Promise<RedisClient> {
    return this.#client ?? inTime(this.#connected, this.#writeMs)
  }

  #replace(client: RedisClient): void {
    if (client !== this.#client) return
    this.#client = undefined
    client.destroy()
    this.#connected = this.#connect()
  }

  async #connect(): Promise<RedisClient> {
    const { makeClient } = await import('./redis-clients.ts')
    for (let tries = 0; ; tries++) {
      if (this.#closing.signal.aborted) return new Promise(() => {})
      const client = makeClient(this.#config)
      client.onError((error) => this.#reportDown(error))
      const stop = (): void => client.destroy()
      this.#closing.signal.addEventListener('abort', stop, { once: true })
      try {
        await client.connect()
        this.#client = client
        return client
      } catch (error) {
        client.destroy()
        this.#reportDown(error)
        await pause(backoffMs(tries), this.#closing.signal)
      } finally {
        this.#closing.signal.removeEventListener('abort', stop)
      }
    }
  }

  #reportUp(): void {
    if (this.#up || this.#closing.signal.aborted) return
    this.#up = true
    this.#onChange({ up: true, cause: undefined })
  }

  #reportDown(cause: unknown): void {
    if (!this.#up || this.#closing.signal.aborted) return
    this.#up = false
    this.#onChange({ up: false, cause })
  }
}

/** Replies that report temporary conditions: failover, loading, a cluster with missing slots. */
function isTransient(error: ReplyError): boolean {
  return /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|NOREPLICAS|UNKILLABLE|MISCONF)\b/.test(
    error.message,
  )
}

function storeDown(cause: unknown): GatehouseError {
  return new GatehouseError('STORE_DOWN', { cause, headers: { 'retry-after': '5' } })
}

class Deadline extends ModuleError {}

function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  return withTimeout(ms, work, () => {
    throw new Deadline(`no response within ${ms} ms`)
  })
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    // Do not keep the process alive just to wait for the store.
    timer.unref()
    signal.addEventListener('abort', end, { once: true })
  })
}
