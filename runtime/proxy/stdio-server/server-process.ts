/**
 * The processes of one stdio server: each is a conversation of its own, and one is started ahead, so that
 * no client waits for a start. Where memory counts more, only the first one is.
 *
 * A process that ends at once without having been used says that the command does not work.
 * Source: MCP 2025-11-25 and 2026-07-28, stdio.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Message } from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import type { ServerLink } from '../eras/link.ts'
import { messagesOf } from './messages.ts'
import { type PeerCommand, startPeer, type StdioPeer } from './peer.ts'
import type { ServerSource } from './source.ts'

export interface ProcessesOptions extends PeerCommand {
  readonly log: Log
  /** Gets what the servers write to standard error. */
  readonly onLine: (line: string) => void
  /** Called when a process ends by itself after it could be started, with the reason. */
  readonly onEnded?: (why: string) => void
  readonly now: () => number
  /** False: after the first process none is started ahead. Default true. */
  readonly ahead?: boolean | undefined
}

/** A process that ends sooner than this without having been used is taken for one that cannot start. */
const quickEndMs = 3_000

export class Processes implements ServerSource {
  readonly #options: ProcessesOptions
  readonly #failed = Promise.withResolvers<string>()
  /** All that run, so that none outlives the server in front of them, whoever uses it. */
  readonly #running = new Set<ServerProcess>()
  #spare: ServerProcess | undefined
  #closed = false

  constructor(options: ProcessesOptions) {
    this.#options = options
  }

  /** Resolves with the reason when the server cannot be started at all. */
  get failed(): Promise<string> {
    return this.#failed.promise
  }

  /** A process for whoever asks. `onMessage` gets everything it says. */
  take(onMessage: (message: Message) => void): ServerLink {
    if (this.#closed) throw new GatehouseError('BACKEND_UNREACHABLE', { detail: 'the server is ending' })
    const process = this.#spare ?? this.#startOne()
    this.#spare = undefined
    process.onMessage = onMessage
    const startedAt = this.#options.now()
    void process.ended.then((why) => {
      if (this.#options.ahead === false && this.#cannotStart(process, startedAt)) this.#failed.resolve(why)
      else this.#tellEnd(process, why)
    })
    if (this.#options.ahead !== false) this.#keepSpare()
    return process
  }

  /** Without one ahead, whoever takes a process learns that the command does not work. */
  #cannotStart(process: ServerProcess, startedAt: number): boolean {
    const isQuick = this.#options.now() - startedAt < quickEndMs
    return isQuick && !process.hasSpoken && !process.isClosing && !this.#closed
  }

  #startOne(): ServerProcess {
    const process = new ServerProcess(this.#options)
    this.#running.add(process)
    void process.ended.then(() => this.#running.delete(process))
    return process
  }

  start(): void {
    this.#keepSpare()
  }

  #keepSpare(): void {
    if (this.#closed || this.#spare) return
    const spare = this.#startOne()
    this.#spare = spare
    const startedAt = this.#options.now()
    void spare.ended.then((why) => {
      if (this.#spare !== spare) return
      this.#spare = undefined
      // One that ends later is started again on demand.
      if (!this.#closed && this.#options.now() - startedAt < quickEndMs) this.#failed.resolve(why)
      else this.#tellEnd(spare, why)
    })
  }

  #tellEnd(process: ServerProcess, why: string): void {
    if (!this.#closed && !process.isClosing) this.#options.onEnded?.(why)
  }

  /** Starts no more, and ends the spare one; those in use belong to their users. */
  async close(): Promise<void> {
    this.#closed = true
    this.#failed.resolve('stopped')
    await this.#spare?.close()
  }

  /** Ends those that their users have left. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#running].map((process) => process.close()))
  }
}

class ServerProcess implements ServerLink {
  onMessage: ((message: Message) => void) | undefined
  readonly ended: Promise<string>
  isClosing = false
  hasSpoken = false
  readonly #peer: StdioPeer

  constructor(options: ProcessesOptions) {
    const onLine = messagesOf(options.log, (message) => this.#hand(message))
    this.#peer = startPeer(options, onLine, options.onLine)
    this.ended = this.#peer.ended
  }

  #hand(message: Message): void {
    this.hasSpoken = true
    this.onMessage?.(message)
  }

  send(message: Buffer): void {
    this.#peer.send(message)
  }

  close(): Promise<void> {
    this.isClosing = true
    return this.#peer.close()
  }
}
