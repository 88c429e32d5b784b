/**
 * One name at the relay, with its client's connections and the requests that use them.
 *
 * Idle connections, requests in flight and waiting requests are limited. A connection that does not respond to three
 * pings is dropped, so that a machine without power does not keep a name reserved.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Dispatcher, type Log, makeDispatcher, sendProblem } from '../../net/index.ts'
import type { Upgrade } from '../model/exchange.ts'
import { forward } from './relay-forward.ts'
import type { WebSocketStream } from './websocket.ts'

export interface RelayTunnelOptions {
  readonly name: string
  readonly session: string
  readonly publicUrl: string
  readonly log: Log
  readonly freeAfterMs: number
  readonly pingEveryMs: number
  /** Maximum number of concurrent requests. */
  readonly maxRequests: number
  /** Called once, after `freeAfterMs` without a connection. */
  readonly onFree: () => void
}

interface Waiting {
  readonly serve: (stream: WebSocketStream) => void
  readonly fail: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

const maxIdle = 16
/** How long a request waits for a client connection. */
const waitMs = 5_000
/** Number of unanswered pings after which a connection is dead. */
const deadAfterPings = 3

export class RelayTunnel {
  readonly session: string
  readonly publicUrl: string
  readonly #options: RelayTunnelOptions
  readonly #origin: string
  readonly #dispatcher: Dispatcher
  readonly #idle: WebSocketStream[] = []
  readonly #waiting = new Set<Waiting>()
  readonly #open = new Set<WebSocketStream>()
  readonly #pings: NodeJS.Timeout
  #free: NodeJS.Timeout | undefined
  #active = 0
  #closed = false

  constructor(options: RelayTunnelOptions) {
    this.#options = options
    this.session = options.session
    this.publicUrl = options.publicUrl
    this.#origin = new URL(options.publicUrl).origin.replace(/^https/, 'http')
    this.#dispatcher = makeDispatcher({ origin: this.#origin, dial: () => this.#take(), headersTimeoutMs: 0 })
    this.#pings = setInterval(() => this.#checkConnections(), options.pingEveryMs)
    this.#pings.unref()
    this.#watch()
  }

  /** Forwards one request. */
  handle(req: IncomingMessage, res: ServerResponse, upgrade?: Upgrade): void {
    const { maxRequests, log } = this.#options
    if (this.#active >= maxRequests) {
      const headers = { 'Retry-After': '1', Connection: 'close' }
      sendProblem(
        res,
        new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many concurrent requests', headers }),
      )
      return
    }
    this.#active++
    const startedAt = performance.now()
    void forward(this.#dispatcher, this.#origin, req, res, upgrade).then(() => {
      this.#active--
      log.info('request', {
        method: req.method,
        path: (req.url ?? '').split('?', 1)[0],
        status: upgrade && !res.headersSent ? 101 : res.statusCode,
        durationMs: Math.round((performance.now() - startedAt) * 10) / 10,
      })
    })
  }

  /** Adds a client connection that is ready for use. */
  add(stream: WebSocketStream): void {
    if (this.#closed) {
      stream.destroy()
      return
    }
    this.#open.add(stream)
    clearTimeout(this.#free)
    stream.on('error', () => stream.destroy())
    stream.once('close', () => this.#drop(stream))
    const [next] = this.#waiting
    if (next) this.#serve(next, stream)
    else if (this.#idle.length < maxIdle) this.#idle.push(stream)
    else stream.destroy()
  }

  #drop(stream: WebSocketStream): void {
    this.#open.delete(stream)
    const at = this.#idle.indexOf(stream)
    if (at >= 0) this.#idle.splice(at, 1)
    if (this.#open.size === 0) this.#watch()
  }

  /** Releases the name after a delay, unless the client reconnects. */
  #watch(): void {
    clearTimeout(this.#free)
    if (this.#closed) return
    this.#free = setTimeout(() => {
      void this.close().then(this.#options.onFree)
    }, this.#options.freeAfterMs)
    this.#free.unref()
  }

  #checkConnections(): void {
    const deadline = performance.now() - deadAfterPings * this.#options.pingEveryMs
    for (const stream of this.#open) {
      // The peer may be alive while a slow public client leaves its data unread.
      if (stream.aliveAt < deadline && !stream.held) stream.destroy()
      else stream.ping()
    }
  }

  #take(): Promise<Duplex> {
    const stream = this.#idle.shift()
    if (stream) return Promise.resolve(stream)
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => {
        clearTimeout(waiting.timer)
        this.#waiting.delete(waiting)
        reject(error)
      }
      const timer = setTimeout(() => {
        fail(new Error('the tunnel’s client did not open a connection in time'))
      }, waitMs)
      const waiting: Waiting = { serve: resolve, fail, timer }
      this.#waiting.add(waiting)
    })
  }

  #serve(waiting: Waiting, stream: WebSocketStream): void {
    clearTimeout(waiting.timer)
    this.#waiting.delete(waiting)
    waiting.serve(stream)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#free)
    clearInterval(this.#pings)
    for (const waiting of this.#waiting) waiting.fail(new Error('the tunnel is closing'))
    for (const stream of this.#open) stream.destroy()
    await this.#dispatcher.destroy()
  }
}
