/**
 * A minimal crowd of clients: raw sockets that send requests at a fixed rate independent of the responses, or as fast
 * as responses arrive. Each connection has one request at a time, like HTTP/1.1 clients.
 *
 * Latency counts from the due time of a request, so that delays of the crowd itself are visible.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { bodyOf, type Sent } from '../client.ts'

/** Outcome of one request: the status of its response, or the reason that it had none. */
export interface Outcome {
  readonly status: number
  readonly ms: number
  /** Milliseconds since the start of the crowd. */
  readonly atMs: number
  readonly retryAfter: boolean
}

export interface CrowdOptions {
  readonly url: string
  readonly requests: readonly Sent[]
  /** Maximum number of connections. */
  readonly maxConnections: number
  /** Timeout of a client, which then closes its connection. */
  readonly giveUpMs: number
  /** Connections that were idle for longer are not reused, because the server may be closing them. */
  readonly maxIdleMs?: number
  /** Local address of the connections. */
  readonly localAddress?: string | undefined
}

const connectMs = 5_000
/** All ids have the same number of digits. */
const firstId = 10_000_000
const idText = `"id":${firstId}`
const idStart = '"id":'.length

export class Crowd {
  readonly #options: CrowdOptions
  readonly #host: string
  readonly #port: number
  readonly #bytes: readonly Buffer[]
  readonly #free: Connection[] = []
  readonly #all = new Set<Connection>()
  #next = 0
  #pending = 0
  #began = performance.now()
  outcomes: Outcome[] = []
  /** Number of requests that were due while all connections were busy. */
  unsent = 0
  /** Sends the next request as soon as a response arrives. */
  #isClosedLoop = false

  constructor(options: CrowdOptions) {
    const { hostname, port, pathname } = new URL(options.url)
    this.#options = options
    this.#host = hostname
    this.#port = Number(port)
    this.#bytes = options.requests.map((sent) => bytesOf(sent, `${hostname}:${port}`, pathname))
  }

  /** Opens connections in advance, a few at a time. Rejects when a connection fails. */
  async connect(count: number, atOnce = 64): Promise<void> {
    while (this.#all.size < count) {
      const opened = Array.from({ length: Math.min(atOnce, count - this.#all.size) }, () => this.#open())
      await Promise.all(opened.map((connection) => connection.opened))
      this.#free.push(...opened)
    }
  }

  /** Opens the maximum number of connections, each with one request. Throws when a request fails. */
  async openUsed(atOnce: number): Promise<void> {
    const { maxConnections } = this.#options
    this.#begin()
    while (this.#all.size < maxConnections) {
      const opened = Array.from({ length: Math.min(atOnce, maxConnections - this.#all.size) }, () =>
        this.#open(),
      )
      for (const connection of opened) {
        this.#pending++
        connection.send(this.#nextBytes(), performance.now())
      }
      await this.#ended()
    }
    if (this.outcomes.some(({ status }) => status !== 200)) throw new Error('a request failed')
  }

  get connections(): number {
    return this.#all.size
  }

  /**
   * Sends `rate` requests per second for `seconds`. Resolves when all have ended. With `pauseMs`, it yields the
   * processor between due requests.
   */
  async atRate(rate: number, seconds: number, pauseMs = 0): Promise<readonly Outcome[]> {
    this.#begin()
    let sent = 0
    for (let now = this.#began; now - this.#began < seconds * 1_000; now = performance.now()) {
      const due = ((now - this.#began) / 1_000) * rate
      for (; sent < due; sent++) this.#send(this.#began + (sent / rate) * 1_000)
      await (pauseMs > 0 ? setTimeout(pauseMs) : setImmediate())
    }
    await this.#ended()
    return this.outcomes
  }

  /** Keeps `atOnce` requests in flight for `seconds`. */
  async inFlight(atOnce: number, seconds: number): Promise<readonly Outcome[]> {
    this.#begin()
    this.#isClosedLoop = true
    for (let n = 0; n < atOnce; n++) this.#send()
    await setTimeout(seconds * 1_000)
    this.#isClosedLoop = false
    await this.#ended()
    return this.outcomes
  }

  close(): void {
    for (const connection of this.#all) connection.end()
  }

  #begin(): void {
    this.#began = performance.now()
    this.outcomes = []
    this.unsent = 0
  }

  async #ended(): Promise<void> {
    while (this.#pending > 0) await setTimeout(5)
  }

  #send(dueAt = performance.now()): void {
    const free = this.#takeFree()
    if (!free && this.#all.size >= this.#options.maxConnections) {
      this.unsent++
      return
    }
    this.#pending++
    const connection = free ?? this.#open()
    connection.send(this.#nextBytes(), dueAt)
  }

  /** Takes the most recently used connection. */
  #takeFree(): Connection | undefined {
    const { maxIdleMs = Number.POSITIVE_INFINITY } = this.#options
    const usedSince = performance.now() - maxIdleMs
    for (let free = this.#free.pop(); free; free = this.#free.pop()) {
      if (free.usedAt >= usedSince) return free
      free.end()
    }
    return undefined
  }

  /** Returns the next request with a unique id, because a session rejects an id that is in use. */
  #nextBytes(): Buffer {
    const bytes = this.#bytes[this.#next % this.#bytes.length]
    if (!bytes) throw new Error('no requests')
    const copy = Buffer.from(bytes)
    copy.write(String(firstId + (this.#next++ % firstId)), copy.indexOf(idText) + idStart, 'latin1')
    return copy
  }

  #open(): Connection {
    const { giveUpMs, localAddress } = this.#options
    const socket = connect({
      host: this.#host,
      port: this.#port,
      noDelay: true,
      timeout: connectMs,
      ...(localAddress === undefined ? {} : { localAddress }),
    })
    const connection = new Connection(socket, giveUpMs, (status, dueAt, head) => {
      const now = performance.now()
      this.#pending--
      this.outcomes.push({
        status,
        ms: now - dueAt,
        atMs: now - this.#began,
        retryAfter: head.includes('retry-after:'),
      })
      if (connection.isOpen) this.#free.push(connection)
      else this.#all.delete(connection)
      if (this.#isClosedLoop) this.#send()
    })
    this.#all.add(connection)
    socket.once('close', () => {
      this.#all.delete(connection)
      const index = this.#free.indexOf(connection)
      if (index >= 0) this.#free.splice(index, 1)
    })
    return connection
  }
}

type Ended = (status: number, dueAt: number, head: string) => void

/** Status of requests without a response, or with a JSON-RPC error. */
const noResponse = { gaveUp: 0, cut: 1, error: 2 } as const

class Connection {
  readonly #socket: Socket
  readonly #ended: Ended
  readonly #giveUpMs: number
  #dueAt: number | undefined
  #received = ''
  #timer: NodeJS.Timeout | undefined
  isOpen = true
  /** Time of its last response. */
  usedAt = performance.now()
  readonly opened: Promise<unknown>

  constructor(socket: Socket, giveUpMs: number, ended: Ended) {
    this.#socket = socket
    this.#ended = ended
    this.#giveUpMs = giveUpMs
    this.opened = once(socket, 'connect')
    this.opened.catch(() => {})
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#receive(text))
    socket.on('error', () => {})
    socket.on('close', () => this.#finish(noResponse.cut))
  }

  send(bytes: Buffer, dueAt: number): void {
    this.#dueAt = dueAt
    this.#received = ''
    this.#timer ??= globalThis.setTimeout(() => this.#giveUp(), this.#giveUpMs)
    this.#timer.refresh()
    this.#socket.write(bytes)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#socket.destroy()
  }

  #giveUp(): void {
    if (this.#dueAt === undefined) return
    this.isOpen = false
    this.#socket.destroy()
    this.#finish(noResponse.gaveUp)
  }

  #receive(text: string): void {
    this.#received = this.#received === '' ? text : this.#received + text
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#received.slice(0, end).toLowerCase()
    const length = /content-length: (\d+)/.exec(head)?.[1]
    // A slow response arrives as an event stream.
    const isWhole =
      length === undefined
        ? this.#received.endsWith('\r\n0\r\n\r\n')
        : this.#received.length >= end + 4 + Number(length)
    if (!isWhole) return
    if (head.includes('connection: close')) this.isOpen = false
    const status = Number(head.slice(9, 12))
    const isResult = status !== 200 || this.#received.includes('"result"', end)
    this.#finish(isResult ? status : noResponse.error, head)
  }

  #finish(status: number, head = ''): void {
    const dueAt = this.#dueAt
    if (status === noResponse.cut) {
      this.isOpen = false
      clearTimeout(this.#timer)
    }
    if (dueAt === undefined) return
    this.#dueAt = undefined
    this.usedAt = performance.now()
    this.#ended(status, dueAt, head)
  }
}

function bytesOf(sent: Sent, host: string, path: string): Buffer {
  const body = bodyOf(sent, firstId)
  const headers = Object.entries({ host, ...sent.headers, 'content-length': String(Buffer.byteLength(body)) })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines}\r\n${body}`)
}
