/**
 * One name at the relay: the idle connections of its client, and the forwarder that uses them as its sockets.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Dispatcher, type Log, makeDispatcher } from '../../net/index.ts'
import type { Upgrade } from '../exchange.ts'
import { makeHandler } from '../server.ts'
import { pingEveryMs } from './relay-protocol.ts'
import type { WebSocketStream } from './websocket.ts'

export interface RelayTunnelOptions {
  readonly name: string
  readonly session: string
  readonly publicUrl: string
  readonly log: Log
  readonly freeAfterMs: number
  /** Called once, when the last connection has been gone for `freeAfterMs`. */
  readonly onFree: () => void
}

const maxIdle = 16
/** How long a request waits for a connection of the client. */
const waitMs = 5_000

export class RelayTunnel {
  readonly session: string
  readonly publicUrl: string
  readonly handle: (req: IncomingMessage, res: ServerResponse, upgrade?: Upgrade) => void
  readonly #options: RelayTunnelOptions
  readonly #dispatcher: Dispatcher
  readonly #idle: WebSocketStream[] = []
  readonly #waiting: ((stream: WebSocketStream) => void)[] = []
  readonly #open = new Set<WebSocketStream>()
  readonly #pings: NodeJS.Timeout
  #free: NodeJS.Timeout | undefined

  constructor(options: RelayTunnelOptions) {
    this.#options = options
    this.session = options.session
    this.publicUrl = options.publicUrl
    const { host, origin } = new URL(options.publicUrl)
    const inner = origin.replace(/^https/, 'http')
    this.#dispatcher = makeDispatcher({ origin: inner, dial: () => this.#take(), headersTimeoutMs: 0 })
    this.handle = makeHandler(
      {
        target: { origin: inner, authority: host, protocol: 'http:', query: '', loopback: false },
        dispatcher: this.#dispatcher,
        host: '0.0.0.0',
        port: 0,
        log: options.log,
        checkOrigin: false,
        builtInPaths: false,
        headersTimeoutMs: 0,
      },
      0,
    )
    this.#pings = setInterval(() => this.#idle.forEach((stream) => stream.ping()), pingEveryMs)
    this.#pings.unref()
    this.#watch()
  }

  /** A connection of the client is ready for use. */
  add(stream: WebSocketStream): void {
    this.#open.add(stream)
    clearTimeout(this.#free)
    stream.on('error', () => stream.destroy())
    stream.once('close', () => this.#drop(stream))
    const next = this.#waiting.shift()
    if (next) next(stream)
    else if (this.#idle.length < maxIdle) this.#idle.push(stream)
    else stream.destroy()
  }

  #drop(stream: WebSocketStream): void {
    this.#open.delete(stream)
    const at = this.#idle.indexOf(stream)
    if (at >= 0) this.#idle.splice(at, 1)
    if (this.#open.size === 0) this.#watch()
  }

  #watch(): void {
    clearTimeout(this.#free)
    this.#free = setTimeout(() => void this.close().then(this.#options.onFree), this.#options.freeAfterMs)
    this.#free.unref()
  }

  #take(): Promise<Duplex> {
    const stream = this.#idle.shift()
    if (stream) return Promise.resolve(stream)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const at = this.#waiting.indexOf(serve)
        if (at >= 0) this.#waiting.splice(at, 1)
        reject(new Error('the client of the tunnel opened no connection in time'))
      }, waitMs)
      const serve = (given: WebSocketStream): void => {
        clearTimeout(timer)
        resolve(given)
      }
      this.#waiting.push(serve)
    })
  }

  async close(): Promise<void> {
    clearTimeout(this.#free)
    clearInterval(this.#pings)
    for (const stream of this.#open) stream.destroy()
    await this.#dispatcher.destroy()
  }
}
