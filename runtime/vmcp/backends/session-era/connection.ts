/**
 * Session-era codec for a backend: sends `initialize` once, then concurrent requests, and passes progress, log
 * messages and questions to the operation that they belong to.
 *
 * Works over any Channel. When the backend has lost the session, the connection opens a new one, once. It sends the
 * failed request again when the request was not executed, or when executing it twice does no harm
 * (mcp/lost-session.ts).
 * Source: MCP 2025-11-25, lifecycle, utilities, client features.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  JsonObject,
  initializeParams,
  type Message,
  notificationMessage,
  protocolError,
  requestMessage,
  sessionParams,
  sessionVersions,
} from '../../../mcp/index.ts'
import { abortable, type AnySignal, type Log, pause, reasonOf, Deadline } from '../../../net/index.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { BackendSession } from '../../model/session.ts'
import {
  type BackendChannel,
  type ChannelEvents,
  ConnectionClosed,
  BackendSessionLost,
  WrongEra,
} from './channel.ts'
import type { Sender } from '../transport/target.ts'
import type { BackendConnection, ConnectionEvents, Request, ServerInfo } from '../connection.ts'
import { splitterOf } from '../connection.ts'
import { rejectionOf, type SentHeaders } from '../transport/backend-answer.ts'
import { isCredentialError } from '../backend-errors.ts'
import { type Assignment, Inbound, type Pending } from './inbound.ts'
import { readServerInfo, resumedServer } from '../server-info.ts'
import { LatestSender } from './latest-sender.ts'

export interface SessionConnectionOptions {
  readonly makeChannel: (events: ChannelEvents, resume?: BackendSession) => BackendChannel
  /** Headers of recent requests to the backend. */
  readonly sent?: SentHeaders | undefined
  /** A session to go on with instead of opening one: the latest that is known. */
  readonly resume?: (() => BackendSession | undefined) | undefined
  /** Told when the backend has opened a session. */
  readonly onOpened?: ((session: OpenedSession) => void) | undefined
  /** Returns the same key for senders whose credentials succeed or fail together. */
  readonly credentialOf: (sender: Sender) => string
  readonly assigns: Assignment
  readonly events: ConnectionEvents
  /** Capabilities declared to the backend: those of the client behind the connection, raw JSON. */
  readonly capabilities: Buffer
  /** Raw JSON of our own `Implementation`. */
  readonly info: string
  readonly openTimeoutMs: number
  readonly log: Log
}

const listenWaitMs = 250
const never: AbortSignal = new AbortController().signal

export type OpenedSession = Omit<BackendSession, 'binding'>

interface Open {
  readonly channel: BackendChannel
  readonly inbound: Inbound
  readonly server: ServerInfo
}

interface Opening {
  readonly credential: string
  readonly open: Promise<Open>
}

export class SessionConnection implements BackendConnection {
  readonly #options: SessionConnectionOptions
  #opening: Opening | undefined
  #open: Open | undefined
  #nextId = 1
  #busy = 0
  #level: string | undefined
  /** The last session that was tried or opened: whatever became of it, it is not gone on with once more. */
  #triedSession: string | undefined
  #hasFailed = false
  readonly #latestSender = new LatestSender()

  constructor(options: SessionConnectionOptions) {
    this.#options = options
  }

  get busy(): number {
    return this.#busy
  }

  /**
   * True when the backend may still work on an earlier request: one was cancelled, timed out or failed, or a question
   * is open. Unsolicited messages can belong to that request, so no other caller may use the connection.
   */
  get isSpent(): boolean {
    return this.#hasFailed || (this.#open?.inbound.hasOpenQuestions ?? false)
  }

  /** Session id that the backend issued, once open. */
  get sessionId(): string | undefined {
    return this.#open?.channel.sessionId
  }

  async open(sender: Sender, signal: AbortSignal): Promise<ServerInfo> {
    this.#latestSender.latest = sender
    return (this.#open ?? (await this.#ensureOpen(sender, signal))).server
  }

  /**
   * Concurrent requests share one opening. If it fails because of one sender's credential, other requests do not fail
   * with it.
   */
  async #ensureOpen(sender: Sender, signal: AnySignal): Promise<Open> {
    const credential = this.#options.credentialOf(sender)
    for (;;) {
      const opening = this.#opening ?? this.#startOpening(sender, credential)
      try {
        return await abortable(opening.open, signal)
      } catch (error) {
        if (opening.credential === credential || signal.aborted || !isCredentialError(error)) throw error
      }
    }
  }

  #startOpening(sender: Sender, credential: string): Opening {
    const opening: Opening = { credential, open: this.#openNow(sender) }
    this.#opening = opening
    void this.#note(opening)
    return opening
  }

  /** Keeps what an opening led to, unless it was given up meanwhile. */
  async #note(opening: Opening): Promise<void> {
    try {
      const open = await opening.open
      if (this.#opening === opening) this.#open = open
    } catch {
      if (this.#opening === opening) this.#opening = undefined
    }
  }

  async #openNow(sender: Sender): Promise<Open> {
    const known = this.#options.resume?.()
    // Good for one attempt: when the backend has forgotten the session, the next opening is a fresh one.
    const resume = known?.sessionId === this.#triedSession ? undefined : known
    this.#triedSession = resume?.sessionId
    const { channel, inbound } = this.#makeChannel(resume)
    const deadline = new Deadline(this.#options.openTimeoutMs, never)
    try {
      const server = resume
        ? resumedServer(resume)
        : await this.#handshake(channel, inbound, sender, deadline)
      // Some backends answer the stream's headers only with its first message; the opening must not hang on them.
      await Promise.race([channel.listen(this.#latestSender), pause(listenWaitMs, deadline)])
      const { sessionId } = channel
      this.#triedSession = sessionId
      if (!resume && sessionId !== undefined) {
        const { protocolVersion, capabilities } = server
        this.#options.onOpened?.({ sessionId, protocolVersion, logging: capabilities.logging })
      }
      return { channel, inbound, server }
    } catch (error) {
      void channel.close(sender, { end: true })
      throw error
    } finally {
      deadline.end()
    }
  }

  #makeChannel(resume: BackendSession | undefined): { channel: BackendChannel; inbound: Inbound } {
    let channel: BackendChannel | undefined
    const inbound = new Inbound(this.#options.events, this.#options.assigns, (message) =>
      this.#sendQuietly(channel, message, this.#latestSender),
    )
    channel = this.#options.makeChannel(
      {
        onMessage: (message) => inbound.handle(message, undefined),
        onGap: () => this.#options.events.gap(),
        onLost: (error) => {
          // A request that is being answered may be answered yet, and was perhaps carried out: it is not sent again.
          if (error instanceof BackendSessionLost) inbound.withdrawQuestions(error)
          else inbound.failAll(error)
          const open = this.#open
          if (open !== undefined && open.channel === channel) this.#lose(open)
        },
      },
      resume,
    )
    return { channel, inbound }
  }

  async #handshake(
    channel: BackendChannel,
    inbound: Inbound,
    sender: Sender,
    deadline: Deadline,
  ): Promise<ServerInfo> {
    const { capabilities, info } = this.#options
    const params = initializeParams(capabilities, info)
    const id = String(this.#nextId++)
    const outcome = await this.#roundTrip(
      channel,
      inbound,
      id,
      requestMessage(id, 'initialize', params),
      sender,
      deadline,
    )
    if (outcome.kind !== 'result') {
      const error = outcome.kind === 'error' ? outcome.error : undefined
      const request = { sent: this.#options.sent, isQuoted: true }
      throw new WrongEra('initialize was refused', undefined, rejectionOf(error, request, channel.sessionId))
    }
    const server = readServerInfo(outcome.result)
    if (!sessionVersions.includes(server.protocolVersion)) {
      throw new GatehouseError('BACKEND_PROTOCOL', {
        cause: new Error('the backend speaks no revision known here'),
      })
    }
    channel.setProtocolVersion(server.protocolVersion)
    const initialized = notificationMessage('notifications/initialized', undefined)
    await channel.send(initialized, { sender, signal: deadline, requestId: undefined, onMessage: () => {} })
    return server
  }

  async request(request: Request): Promise<Outcome> {
    const { method, params, changes, sender, relay, trace } = request
    const deadline = new Deadline(request.timeoutMs, request.signal)
    this.#busy++
    this.#latestSender.latest = sender
    try {
      for (let attempt = 0; ; attempt++) {
        const open = this.#open ?? (await this.#ensureOpen(sender, deadline))
        const { channel, inbound } = open
        let id: string | undefined
        try {
          const logLevel = relay?.logLevel
          if (logLevel !== undefined && logLevel !== this.#level)
            await this.#applyLevel(open, logLevel, sender, deadline)
          id = String(this.#nextId++)
          const progress = relay?.progressToken !== undefined
          const sent = sessionParams({ params, changes, progress, logLevel, trace }, id)
          const message = requestMessage(id, method, sent)
          const outcome = await this.#roundTrip(channel, inbound, id, message, sender, deadline, request)
          if (method === 'tools/call' && outcome.kind === 'result' && !outcome.passed)
            refuseTask(outcome.result)
          return outcome
        } catch (error) {
          if (id !== undefined && deadline.aborted) {
            const cancelled = JSON.stringify({ requestId: Number(id), reason: 'cancelled' })
            this.#sendQuietly(channel, notificationMessage('notifications/cancelled', cancelled), sender)
          }
          if (!(error instanceof BackendSessionLost) || attempt > 0) throw error
          this.#lose(open)
        }
      }
    } catch (error) {
      this.#hasFailed = true
      throw error
    } finally {
      this.#busy--
      deadline.end()
    }
  }

  /** The session is gone: the next request opens another. */
  #lose(open: Open): void {
    if (this.#open !== open) return
    this.#forget()
    open.channel.retire()
    this.#options.events.lost()
  }

  #forget(): void {
    this.#open = undefined
    this.#opening = undefined
    this.#level = undefined
  }

  async #applyLevel(open: Open, level: string, sender: Sender, deadline: Deadline): Promise<void> {
    this.#level = level
    if (!open.server.capabilities.logging) return
    const id = String(this.#nextId++)
    const message = requestMessage(id, 'logging/setLevel', JSON.stringify({ level }))
    await this.#roundTrip(open.channel, open.inbound, id, message, sender, deadline)
  }

  #roundTrip(
    channel: BackendChannel,
    inbound: Inbound,
    id: string,
    message: Buffer,
    sender: Sender,
    deadline: Deadline,
    request?: Request,
  ): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    const isFirst = (): boolean => {
      deadline.removeEventListener('abort', onAbort)
      return inbound.forget(entry)
    }
    const pending: Pending = {
      id,
      relay: request?.relay,
      deadline,
      resolve: (outcome) => isFirst() && resolve(outcome),
      reject: (error) => isFirst() && reject(error),
    }
    const onAbort = (): void => pending.reject(reasonOf(deadline))
    const entry = inbound.pending.add(pending)
    deadline.addEventListener('abort', onAbort)
    channel
      .send(message, {
        sender,
        signal: deadline,
        requestId: id,
        // Without a request of somebody it is initialize or a log level, which are treated alike.
        method: request?.method ?? 'initialize',
        repeatable: request?.repeatable,
        delivery: request?.delivery,
        limit: request?.limit,
        splitterFor: (event) => splitterOf(request?.relay, id, deadline, { replaces: event !== undefined }),
        onMessage: (received: Message) => inbound.handle(received, pending),
      })
      .catch((error: unknown) => pending.reject(error instanceof Error ? error : new Error('send failed')))
    return promise
  }

  notify(method: string, params: Buffer | undefined, sender: Sender): void {
    if (this.#open) this.#sendQuietly(this.#open.channel, notificationMessage(method, params), sender)
  }

  setLogLevel(level: string, sender: Sender): void {
    const open = this.#open
    if (!open || level === this.#level) return
    const deadline = new Deadline(this.#options.openTimeoutMs, never)
    this.#applyLevel(open, level, sender, deadline)
      .catch((error: unknown) => this.#options.log.debug('the log level was not set', { err: error }))
      .finally(() => deadline.end())
  }

  #sendQuietly(channel: BackendChannel | undefined, message: Buffer, sender: Sender): void {
    const signal = AbortSignal.timeout(this.#options.openTimeoutMs)
    channel
      ?.send(message, { sender, signal, requestId: undefined, onMessage: () => {} })
      .catch((error: unknown) => {
        this.#options.log.debug('a message to the backend was not delivered', { err: error })
      })
  }

  async close(sender: Sender, { end }: { readonly end: boolean }): Promise<void> {
    const opening = this.#opening
    this.#forget()
    const open = await opening?.open.catch(() => undefined)
    open?.inbound.failAll(new ConnectionClosed())
    await open?.channel.close(sender, { end })
  }
}

/** A task in place of a result is small. */
const maxTaskBytes = 64 * 1024

/** Throws BACKEND_PROTOCOL when a backend answers a call with a task: nobody asked for one, and nobody would poll it. */
function refuseTask(result: Buffer): void {
  if (result.length > maxTaskBytes || !result.includes('"task"')) return
  const read = new JsonObject(result)
  if (read.raw('task') && !read.raw('content')) throw protocolError('a task was not asked for')
}
