/**
 * One stdio server's processes. Each process serves one conversation. A spare process is started in advance, so that no
 * client waits for a process to start. With `ahead: false`, which saves memory, only the first process is started in
 * advance.
 *
 * If the last process has ended and none has ever responded, the command is considered broken. Otherwise a failed start
 * only affects its own client, and the next start is delayed by a growing pause.
 * Source: MCP 2025-11-25 and 2026-07-28, stdio.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Message, OpenLink, ServerLink } from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import { visibleText } from '../../observe/index.ts'
import { messagesOf } from './messages.ts'
import { type PeerCommand, startPeer, type StdioPeer } from './peer.ts'

/** Provides conversations with the server: one process each, or one shared process. */
export interface ServerSource {
  /** Opens a conversation. */
  readonly take: OpenLink
  /** Resolves with the reason when the server will never be available. */
  readonly failed: Promise<string>
  /**
   * Start time of a server that has received a message but not responded yet, in milliseconds since the epoch;
   * undefined otherwise.
   */
  readonly startingSince?: number | undefined
  /** True once the server has sent a message. */
  readonly hasSpoken?: boolean
  /** Starts the server in advance. */
  start(): void
  /** Stops opening conversations. */
  close(): Promise<void>
  /** Ends conversations that their clients have abandoned. */
  closeAll(): Promise<void>
}

export interface ProcessesOptions extends PeerCommand {
  readonly log: Log
  /** Receives the servers' standard error, and lines on standard output that are not messages. */
  readonly onLine: (line: string) => void
  /**
   * Called with the reason and the last lines of output when a process ends on its own, if the server has worked
   * before.
   */
  readonly onEnded?: (why: string, output: readonly string[]) => void
  readonly now: () => number
  /** False to start only the first process in advance. Default true. */
  readonly ahead?: boolean | undefined
  /** True to append a server's last lines of output to the reason that clients see when it ends. Default false. */
  readonly showOutput?: boolean | undefined
}

/**
 * A process that ends sooner than this without receiving a message failed to start. A process that ends later is
 * considered to have been idle.
 */
const quickEndMs = 3_000
/** Pauses before the next start, indexed by the number of consecutive failed starts. */
const restartPauseMs = [0, 500, 1_000, 2_000, 4_000, 8_000, 15_000] as const
const shownLines = 5
const maxShownLine = 300

export class Processes implements ServerSource {
  readonly #options: ProcessesOptions
  readonly #failed = Promise.withResolvers<string>()
  /** All running processes, so that none outlives this process. */
  readonly #running = new Set<ServerProcess>()
  #spare: ServerProcess | undefined
  #closed = false
  /** True once a process has sent a message, which proves that the command works. */
  #hasSpoken = false
  /** Number of consecutive failed starts, and the last failure. */
  #failures = 0
  #lastFailure = { at: 0, why: '' }

  constructor(options: ProcessesOptions) {
    this.#options = options
  }

  /** Resolves with the reason when the server cannot be started at all. */
  get failed(): Promise<string> {
    return this.#failed.promise
  }

  get hasSpoken(): boolean {
    return this.#hasSpoken
  }

  /** Start time of the first process that has received a message, until any process responds; undefined otherwise. */
  get startingSince(): number | undefined {
    if (this.#hasSpoken) return undefined
    for (const { isAsked, startedAt } of this.#running) if (isAsked) return startedAt
    return undefined
  }

  /**
   * Returns a process for one conversation. Calls `onMessage` with each message from the process. Throws during the
   * pause after a failed start.
   */
  take(onMessage: (message: Message) => void): ServerLink {
    if (this.#closed)
      throw new GatehouseError('BACKEND_UNREACHABLE', { detail: 'the server is shutting down' })
    const process = this.#spare ?? this.#startOne()
    this.#spare = undefined
    process.onMessage = onMessage
    if (this.#options.ahead !== false && this.#failures === 0) this.#keepSpare()
    return process
  }

  #startOne(): ServerProcess {
    this.#holdBack()
    const { now, log } = this.#options
    const process = new ServerProcess(this.#options, () => {
      this.#hasSpoken = true
      this.#failures = 0
    })
    this.#running.add(process)
    void process.exited.then((why) => {
      this.#running.delete(process)
      if (this.#spare === process) this.#spare = undefined
      if (this.#closed || process.isClosing) return
      log.warn('a stdio server process ended on its own', { why, answered: process.hasSpoken })
      const isFailedStart = !process.hasSpoken && (process.isAsked || now() - process.startedAt < quickEndMs)
      if (isFailedStart) {
        this.#failures++
        this.#lastFailure = { at: now(), why }
      }
      if (isFailedStart && !this.#hasSpoken && this.#running.size === 0) this.#failed.resolve(why)
      else this.#options.onEnded?.(why, process.output)
    })
    return process
  }

  /** Throws BACKEND_UNAVAILABLE during the pause after a failed start. */
  #holdBack(): void {
    const { at, why } = this.#lastFailure
    const pauseMs = restartPauseMs[Math.min(this.#failures, restartPauseMs.length - 1)] ?? 0
    const waitMs = at + pauseMs - this.#options.now()
    if (this.#failures === 0 || waitMs <= 0) return
    throw new GatehouseError('BACKEND_UNAVAILABLE', {
      detail: `the server stopped before it responded (${why}); it can be started again in ${Math.ceil(waitMs / 1000)} s`,
    })
  }

  start(): void {
    this.#keepSpare()
  }

  #keepSpare(): void {
    if (!this.#closed) this.#spare ??= this.#startOne()
  }

  /** Starts no more processes and ends the spare process. Processes in use are closed by their callers. */
  async close(): Promise<void> {
    this.#closed = true
    this.#failed.resolve('stopped')
    await this.#spare?.close()
  }

  /** Ends all processes that are still running. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#running].map((process) => process.close()))
  }
}

class ServerProcess implements ServerLink {
  onMessage: ((message: Message) => void) | undefined
  /** Resolves with the exit code, the signal, or the stream that the server has closed. */
  readonly exited: Promise<string>
  /** Resolves with the failure reason to show to clients; it may contain program output. */
  readonly ended: Promise<string>
  readonly startedAt: number
  isClosing = false
  isAsked = false
  hasSpoken = false
  readonly #peer: StdioPeer
  readonly #onSpoken: () => void
  /** The last lines of the server's log output. */
  output: readonly string[] = []

  constructor(options: ProcessesOptions, onSpoken: () => void) {
    this.#onSpoken = onSpoken
    this.startedAt = options.now()
    const onText = (line: string): void => {
      if (line.trim() !== '')
        this.output = [...this.output.slice(1 - shownLines), line.slice(0, maxShownLine)]
      options.onLine(line)
    }
    const onLine = messagesOf(options.log, { onMessage: (message) => this.#receive(message), onText })
    this.#peer = startPeer(options, onLine, onText)
    this.exited = this.#peer.ended
    this.ended = this.exited.then((why) => (options.showOutput === true ? this.#withOutput(why) : why))
  }

  #receive(message: Message): void {
    if (!this.hasSpoken) this.#onSpoken()
    this.hasSpoken = true
    this.onMessage?.(message)
  }

  #withOutput(why: string): string {
    return this.output.length === 0 ? why : `${why}; it printed: ${visibleText(this.output.join(' | '))}`
  }

  send(message: Buffer): void {
    this.isAsked = true
    this.#peer.send(message)
  }

  close(): Promise<void> {
    this.isClosing = true
    return this.#peer.close()
  }
}
