/**
 * Implements the session-era protocol for a backend. Sends `initialize` once, followed by concurrent requests. Passes
 * progress, log messages and server requests to the operations to which they belong.
 *
 * A connection works over any channel. If the backend has lost the session, the connection opens a new one, but only
 * once. The connection repeats the failed request if the request was not executed or is safe to execute twice
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
import { type Sender, LatestSender } from '../transport/target.ts'
import type { BackendConnection, ConnectionEvents, Request, ServerInfo } from '../connection.ts'
import { makeSplitter } from '../connection.ts'
import { explainRpcError, type SentHeaders } from '../transport/backend-answer.ts'
import { isCredentialError } from '../backend-errors.ts'
import { type Assignment, Inbound, type Pending } from './inbound.ts'
import { readServerInfo, resumedServer } from '../server-info.ts'

export interface SessionConnectionOptions {
  readonly makeChannel: (events: ChannelEvents, resume?: BackendSession) => BackendChannel
  /** Headers of recent requests to the backend. */
  readonly sentHeaders?: SentHeaders | undefined
  /** Returns the latest known session. The connection resumes this session instead of opening a new one. */
  readonly resume?: (() => BackendSession | undefined) | undefined
  /** Called once the backend has opened a session. */
  readonly onOpened?: ((session: OpenedSession) => void) | undefined
  /** Returns equal keys for two senders if their credentials succeed or fail together. */
  readonly credentialOf: (sender: Sender) => string
  readonly assignment: Assignment
  readonly events: ConnectionEvents
  /** The client's capabilities as raw JSON. The connection declares these capabilities to the backend. */
  readonly capabilities: Buffer
  /** Raw JSON of Gatehouse's `Implementation`. */
  readonly info: string
  readonly openTimeoutMs: number
  readonly log: Log
}

const listenWaitMs = 250
const neverAborts: AbortSignal = new AbortController().signal

export type OpenedSession = Omit<BackendSession, 'binding'>

interface OpenChannel {
  readonly channel: BackendChannel
  readonly inbound: Inbound
  readonly server: ServerInfo
}

interface Opening {
  readonly credential: string
  readonly open: Promise<OpenChannel>
}

export class SessionConnection implements BackendConnection {
  readonly #options: SessionConnectionOptions
  #opening: Opening | undefined
  #open: OpenChannel | undefined
  #nextId = 1
  #busy = 0
  #level: string | undefined
  /** The session that was last resumed or opened. The connection does not resume this session again. */
  #triedSession: string | undefined
  #hasFailed = false
  readonly #latestSender = new LatestSender()

  constructor(options: SessionConnectionOptions) {
    this.#options = options
  }

  get inFlightCount(): number {
    return this.#busy
  }

  /**
   * True if the backend may still be working on an earlier request. That request was cancelled, timed out or failed, or
   * the backend is still waiting for the client's answer. Unsolicited messages can belong to that request, so no other
   * caller may use the connection.
   */
  get isSpent(): boolean {
    return this.#hasFailed || (this.#open?.inbound.hasOpenQuestions ?? false)
  }

  /** Session id that the backend issued. Undefined until the session is open. */
  get sessionId(): string | undefined {
    return this.#open?.channel.sessionId
  }

  async open(sender: Sender, signal: AbortSignal): Promise<ServerInfo> {
    this.#latestSender.latest = sender
    return (this.#open ?? (await this.#ensureOpen(sender, signal))).server
  }

  /**
   * Concurrent requests share one attempt to open the session. If the attempt fails because of one sender's credential,
   * other senders' requests are not affected.
   */
  async #ensureOpen(sender: Sender, signal: AnySignal): Promise<OpenChannel> {
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
    void this.#storeOpening(opening)
    return opening
  }

  /** Stores the opened session, unless the attempt was abandoned in the meantime. */
  async #storeOpening(opening: Opening): Promise<void> {
    try {
      const open = await opening.open
      if (this.#opening === opening) this.#open = open
    } catch {
      if (this.#opening === opening) this.#opening = undefined
    }
  }

  async #openNow(sender: Sender): Promise<OpenChannel> {
    const known = this.#options.resume?.()
    // Resume a session only once. If the backend has lost the session, the next attempt opens a new one.
    const resume = known?.sessionId === this.#triedSession ? undefined : known
    this.#triedSession = resume?.sessionId
    const { channel, inbound } = this.#makeChannel(resume)
    const deadline = new Deadline(this.#options.openTimeoutMs, neverAborts)
    try {
      const server = resume
        ? resumedServer(resume)
        : await this.#handshake(channel, inbound, sender, deadline)
      // Some backends send the stream's headers only with the first message. Do not wait for the headers indefinitely.
      await Promise.race([channel.listen(this.#latestSender), pause(listenWaitMs, deadline)])
      const { sessionId } = channel
      this.#triedSession = sessionId
      if (!resume && sessionId !== undefined) {
        const { protocolVersion, capabilities, extensions } = server
        this.#options.onOpened?.({
          sessionId,
          protocolVersion,
          logging: capabilities.logging,
          ...(extensions.size > 0 && { extensions: Object.fromEntries(extensions) }),
        })
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
    const inbound = new Inbound(this.#options.events, this.#options.assignment, (message) =>
      this.#sendQuietly(channel, message, this.#latestSender),
    )
    channel = this.#options.makeChannel(
      {
        onMessage: (message) => inbound.handle(message, undefined),
        onGap: () => this.#options.events.announcementsLost(),
        onLost: (error) => {
          // A request in flight is not repeated, because it may have been executed and may still be answered.
          if (error instanceof BackendSessionLost) inbound.withdrawQuestions(error)
          else inbound.failAll(error)
          const open = this.#open
          if (open !== undefined && open.channel === channel) this.#discard(open)
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
      const request = { sentHeaders: this.#options.sentHeaders, isQuoted: true }
      throw new WrongEra(
        'the backend rejected initialize',
        undefined,
        explainRpcError(error, request, channel.sessionId),
      )
    }
    const server = readServerInfo(outcome.result)
    if (!sessionVersions.includes(server.protocolVersion)) {
      throw new GatehouseError('BACKEND_PROTOCOL', {
        cause: new Error('the backend negotiated an unsupported protocol revision'),
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
          if (method !== 'tools/call' || outcome.kind !== 'result' || outcome.passed) return outcome
          if (!isTask(outcome.result)) return outcome
          if (request.acceptsTask) return { kind: 'task', result: outcome.result }
          throw protocolError('the backend returned a task that was not requested')
        } catch (error) {
          if (id !== undefined && deadline.aborted) {
            const cancelled = JSON.stringify({ requestId: Number(id), reason: 'cancelled' })
            this.#sendQuietly(channel, notificationMessage('notifications/cancelled', cancelled), sender)
          }
          if (!(error instanceof BackendSessionLost) || attempt > 0) throw error
          this.#discard(open)
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

  /** Discards a lost session. The next request opens a new session. */
  #discard(open: OpenChannel): void {
    if (this.#open !== open) return
    this.#reset()
    open.channel.retire()
    this.#options.events.sessionLost()
  }

  #reset(): void {
    this.#open = undefined
    this.#opening = undefined
    this.#level = undefined
  }

  async #applyLevel(open: OpenChannel, level: string, sender: Sender, deadline: Deadline): Promise<void> {
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
    const claimEntry = (): boolean => {
      deadline.removeEventListener('abort', onAbort)
      return inbound.forget(entry)
    }
    const pending: Pending = {
      id,
      relay: request?.relay,
      deadline,
      resolve: (outcome) => claimEntry() && resolve(outcome),
      reject: (error) => claimEntry() && reject(error),
    }
    const onAbort = (): void => pending.reject(reasonOf(deadline))
    const entry = inbound.pending.add(pending)
    deadline.addEventListener('abort', onAbort)
    channel
      .send(message, {
        sender,
        signal: deadline,
        requestId: id,
        // Without `request`, the message is `initialize` or a change of the log level. Both are treated alike.
        method: request?.method ?? 'initialize',
        repeatable: request?.repeatable,
        delivery: request?.delivery,
        limit: request?.limit,
        splitterFor: (event) => makeSplitter(request?.relay, id, deadline, { replaces: event !== undefined }),
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
    const deadline = new Deadline(this.#options.openTimeoutMs, neverAborts)
    this.#applyLevel(open, level, sender, deadline)
      .catch((error: unknown) => this.#options.log.debug('failed to set the log level', { err: error }))
      .finally(() => deadline.end())
  }

  #sendQuietly(channel: BackendChannel | undefined, message: Buffer, sender: Sender): void {
    const signal = AbortSignal.timeout(this.#options.openTimeoutMs)
    channel
      ?.send(message, { sender, signal, requestId: undefined, onMessage: () => {} })
      .catch((error: unknown) => {
        this.#options.log.debug('failed to send a message to the backend', { err: error })
      })
  }

  async close(sender: Sender, { end }: { readonly end: boolean }): Promise<void> {
    const opening = this.#opening
    this.#reset()
    const open = await opening?.open.catch(() => undefined)
    open?.inbound.failAll(new ConnectionClosed())
    await open?.channel.close(sender, { end })
  }
}

/** Maximum size of a task that is returned instead of a result. */
const maxTaskBytes = 64 * 1024

/** True if a backend returned a task instead of a tool result. */
function isTask(result: Buffer): boolean {
  if (result.length > maxTaskBytes || !result.includes('"task"')) return false
  const read = new JsonObject(result)
  return read.raw('task') !== undefined && !read.raw('content')
}
