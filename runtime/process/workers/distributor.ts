/**
 * Accepts connections on a port that several processes share, and passes them to the workers in turn.
 *
 * A worker receives the next connection only after it has accepted the previous connection. No connection therefore
 * waits for a busy worker while other workers are idle. If a worker dies before accepting a connection, the connection
 * is passed to another worker. Connections that no worker accepts wait in a bounded queue. When the queue is full, the
 * distributor closes further connections.
 */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { Log } from '../../net/index.ts'

/** Maximum number of waiting connections, like the backlog of a single process. */
const maxWaiting = 511
/** Time for which a closing port waits for workers to accept its connections. */
const handoverMs = 1_000
const lookMs = 10

export interface BindAddress {
  readonly host: string
  /** Port to bind; 0 lets the kernel choose. */
  readonly port: number
}

/** Sends a connection to a worker, which calls `taken` with the same id. */
export type HandOver = (id: number, socket: Socket) => void

export interface ConnectionTaker {
  /** The worker has accepted the connection; this process closes its copy. */
  taken(id: number): void
  /** The worker can no longer receive connections. */
  gone(): void
}

interface Place {
  readonly handOver: HandOver
  /** Connections in transit. */
  pending: { readonly id: number; readonly socket: Socket } | undefined
  isGone: boolean
}

export class Distributor {
  readonly #server: Server
  readonly #waiting: Socket[] = []
  /** Workers without a connection in transit. The worker that has waited longest is first. */
  readonly #free: Place[] = []
  readonly #busy = new Set<Place>()
  #next = 0
  address = ''
  port = 0

  constructor() {
    this.#server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.#accept(socket))
  }

  /** Binds the address. Rejects with the system's error (`code` EADDRINUSE, EACCES, …). */
  async bind({ host, port }: BindAddress, log: Log): Promise<void> {
    this.#server.listen(port, host)
    await once(this.#server, 'listening')
    this.#server.on('error', (error) => log.error('listener failed', { err: error }))
    const bound = this.#server.address()
    if (bound === null || typeof bound === 'string') throw new Error('the port has no network address')
    this.address = bound.address
    this.port = bound.port
  }

  /** Adds a worker that accepts connections from now on. */
  add(handOver: HandOver): ConnectionTaker {
    const place: Place = { handOver, pending: undefined, isGone: false }
    this.#free.push(place)
    this.#distribute()
    return {
      taken: (id) => {
        if (place.pending?.id !== id) return
        // Closes our copy of the descriptor, which the worker owns now.
        place.pending.socket.destroy()
        place.pending = undefined
        this.#busy.delete(place)
        if (!place.isGone) this.#free.push(place)
        this.#distribute()
      },
      gone: () => this.#forget(place),
    }
  }

  #accept(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    if (this.#waiting.length >= maxWaiting) {
      socket.destroy()
      return
    }
    this.#waiting.push(socket)
    this.#distribute()
  }

  #distribute(): void {
    while (this.#waiting.length > 0 && this.#free.length > 0) {
      const place = this.#free.shift()
      const socket = this.#waiting.shift()
      if (!place || !socket) return
      const id = this.#next++
      place.pending = { id, socket }
      this.#busy.add(place)
      place.handOver(id, socket)
    }
  }

  #forget(place: Place): void {
    if (place.isGone) return
    place.isGone = true
    this.#busy.delete(place)
    const at = this.#free.indexOf(place)
    if (at >= 0) this.#free.splice(at, 1)
    // Another worker can take the connection, because reading starts only after acceptance.
    if (place.pending) this.#waiting.unshift(place.pending.socket)
    place.pending = undefined
    this.#distribute()
  }

  /** Stops accepting. Resolves once the workers have received the accepted connections, or shortly afterwards. */
  async close(): Promise<void> {
    this.#server.close()
    const end = performance.now() + handoverMs
    while ((this.#waiting.length > 0 || this.#busy.size > 0) && performance.now() < end)
      await new Promise((resolve) => setTimeout(resolve, lookMs))
    for (const socket of this.#waiting.splice(0)) socket.destroy()
  }
}
