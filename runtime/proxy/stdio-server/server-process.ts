/**
 * The processes of one stdio server: each carries one conversation, and one is started ahead so that no client waits for
 * a start. Where memory counts more, only the first one is.
 *
 * When the last process has ended and none has ever answered, the command does not work. Otherwise a failed start
 * concerns its own client, and the next start waits for a growing pause.
 * Source: MCP 2025-11-25 and 2026-07-28, stdio.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Message } from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import { visibleText } from '../../observe/index.ts'
import type { ServerLink } from '../eras/link.ts'
import { messagesOf } from './messages.ts'
import { type PeerCommand, startPeer, type StdioPeer } from './peer.ts'
import type { ServerSource } from './source.ts'

export interface ProcessesOptions extends PeerCommand {
  readonly log: Log
  /** Gets what the servers write to standard error, and lines on standard output that are not messages. */
  readonly onLine: (line: string) => void
  /** Called when a process ends on its own after the server was found to work: the reason, and its last lines of output. */
  readonly onEnded?: (why: string, output: readonly string[]) => void
  readonly now: () => number
  /** False: after the first process none is started ahead. Default true. */
  readonly ahead?: boolean | undefined
  /** True: the last lines that a server printed are part of the reason for its end, which clients see. Default false. */
  readonly showOutput?: boolean | undefined
}

/** A process that ends sooner than this without having been asked anything cannot start. Later, it was only idle. */
const quickEndMs = 3_000
/** Pauses before the next start, by the number of starts in a row that failed. */
const restartPauseMs = [0, 500, 1_000, 2_000, 4_000, 8_000, 15_000] as const
const shownLines = 5
const maxShownLine = 300

export class Processes implements ServerSource {
  readonly #options: ProcessesOptions
  readonly #failed = Promise.withResolvers<string>()
  /** All that run, so that none outlives the server in front of them. */
  readonly #running = new Set<ServerProcess>()
  #spare: ServerProcess | undefined
  #closed = false
  /** A process has sent a message: the command works. */
  #hasSpoken = false
  /** Starts in a row that failed, and the last of them. */
  #failures = 0
  #lastFailure = { at: 0, why: '' }

  constructor(options: ProcessesOptions) {
    this.#options = options
  }

  /** Resolves with the reason when the server cannot be started at all. */
  get failed(): Promise<string> {
    return this.#failed.promise
  }

  /** When the first process was started, while it has not answered what it was asked; undefined otherwise. */
  get startingSince(): number | undefined {
    if (this.#hasSpoken) return undefined
    for (const { isAsked, startedAt } of this.#running) if (isAsked) return startedAt
    return undefined
  }

  /** A process for one conversation. `onMessage` gets all its messages. Throws while a failed start is held back. */
  take(onMessage: (message: Message) => void): ServerLink {
    if (this.#closed) throw new GatehouseError('BACKEND_UNREACHABLE', { detail: 'the server is ending' })
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
      log.warn('a process of the stdio server ended on its own', { why, answered: process.hasSpoken })
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

  /** Throws BACKEND_UNAVAILABLE when the last start failed a moment ago. */
  #holdBack(): void {
    const { at, why } = this.#lastFailure
    const pauseMs = restartPauseMs[Math.min(this.#failures, restartPauseMs.length - 1)] ?? 0
    const waitMs = at + pauseMs - this.#options.now()
    if (this.#failures === 0 || waitMs <= 0) return
    throw new GatehouseError('BACKEND_UNAVAILABLE', {
      detail: `the server ended before it answered (${why}); it is started again in ${Math.ceil(waitMs / 1000)} s at the earliest`,
    })
  }

  start(): void {
    this.#keepSpare()
  }

  #keepSpare(): void {
    if (!this.#closed) this.#spare ??= this.#startOne()
  }

  /** Starts no more, and ends the spare one; processes in use belong to their users. */
  async close(): Promise<void> {
    this.#closed = true
    this.#failed.resolve('stopped')
    await this.#spare?.close()
  }

  /** Ends the processes that their users have left. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#running].map((process) => process.close()))
  }
}

class ServerProcess implements ServerLink {
  onMessage: ((message: Message) => void) | undefined
  /** The exit code or signal, or which stream the server has closed. */
  readonly exited: Promise<string>
  /** The same for clients. */
  readonly ended: Promise<string>
  readonly startedAt: number
  isClosing = false
  isAsked = false
  hasSpoken = false
  readonly #peer: StdioPeer
  readonly #onSpoken: () => void
  /** Its last lines of output for people. */
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
