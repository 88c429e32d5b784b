/**
 * One session-era client session, with the negotiated facts, the requests in flight, and the streams to the client.
 *
 * A bounded number of messages that do not belong to a request wait for the client's GET stream. A server request, such
 * as an elicitation, is sent on the stream of the operation that caused it, or on the GET stream. A later POST contains
 * the client's response.
 * Source: MCP 2025-11-25, lifecycle, transports.
 */
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  assumedSessionVersion,
  encodeEvent,
  JsonObject,
  keepAliveComment,
  type Message,
  notificationMessage,
  passesLevel,
  requestMessage,
  requireAbility,
  updatedMethod,
  withoutReservedMeta,
} from '../../../mcp/index.ts'
import { type Caller, InFlight } from '../../../net/index.ts'
import { writeBounded } from '../stream.ts'
import type { Ask, AskReply } from '../../../mcp/index.ts'
import type { BackendSession, ClientAbilities, ClientSession, OperationClient } from '../../model/session.ts'
import { enabledAbilities } from '../../model/client.ts'
import type { ExtensionSet } from '../../model/extensions.ts'
import type { OtherWorkers } from './other-workers.ts'
import { ReplayBudget, type ReplayStream, ReplayStreams } from './replay.ts'

/** Maximum number of a session's messages that other workers are sending at the same time. */
const maxPushing = 32

const taskStatusMethod = 'notifications/tasks/status'

/** Limits for one session. */
const maxStreams = 4
const maxWaiting = 256
const maxWaitingBytes = 4 * 1024 * 1024
const maxQuestions = 64
export const maxInFlight = 256
export const maxSubscriptions = 1_000
/**
 * Revision that introduced an empty event at the beginning of a stream. Clients with this or a later revision accept
 * the empty event.
 */
const primedSince = '2025-11-25'
/** Time limit for the client's response to a server request, in milliseconds. */
export const askTimeoutMs = 10 * 60_000

export interface SessionFacts {
  readonly id: string
  /** Owner of the session (`Caller.key`). */
  readonly owner: string
  readonly protocolVersion: string
  readonly abilities: ClientAbilities
  readonly info: Buffer | undefined
}

/** The stored part of a session. This part may change while the session is open. */
export interface SessionChanges {
  readonly logLevel: string | undefined
  /** Pairs of a resource URI and its backend. */
  readonly subscriptions: readonly [string, string][]
  readonly backendSessions: readonly [string, BackendSession][]
  /** Digests of the lists that the client has seen, keyed by kind. */
  readonly seen: Readonly<Record<string, string>> | undefined
}

/** A pending request from the client. */
export interface RequestInFlight {
  /** Raw JSON of the request id. */
  readonly id: string
  cancel(reason: Error): void
}

interface ServerRequest {
  resolve(reply: AskReply): void
  reject(error: Error): void
}

export class ServerSession implements ClientSession {
  readonly id: string
  readonly facts: SessionFacts
  /** The client, with the caller and the headers of its latest request. This request contains the newest token. */
  client: OperationClient
  /** Log level that the client set with `logging/setLevel`. Undefined if each backend uses its default level. */
  logLevel: string | undefined
  usedAt = 0
  /** Time of the last read from the shared store. */
  readAt = Number.NEGATIVE_INFINITY
  /** Stored text of the record that this session last applied. Undefined after a save, and without a shared store. */
  storedText: string | undefined
  /** Time when the session was opened or restored in this process. */
  openedAt = 0
  /** Time when the session table last marked this session as most recently used. */
  movedAt = 0
  /** True for a session from another replica. This replica then renews the session's subscriptions. */
  isRestored = false
  readonly inFlight = new InFlight<RequestInFlight>()
  /** Subscribed resources and their backends. */
  readonly subscriptions = new Map<string, string>()
  /** Backend sessions that belong to this session. */
  readonly backendSessions = new Map<string, BackendSession>()
  /** Copies of this session in other workers. Undefined for a single process. */
  readonly otherWorkers: OtherWorkers | undefined
  /** Called when the stored part of the session has changed. */
  onChange: (() => void) | undefined
  /** Called when a backend has lost its session for this client session. */
  onLost: ((backend: string) => void) | undefined
  /** Returns the params of a backend's status notification for this client. Undefined for unknown tasks. */
  taskStatusFrom: ((backend: string, params: JsonObject) => Buffer | undefined) | undefined
  /** Returns true for a notification of an extension that the configuration allows. */
  allowsNotification: ((method: string, backend: string) => boolean) | undefined
  /** True once the session has ended in this process. */
  isOver = false
  /** Digests of the lists that the client has seen, keyed by kind. */
  seen: Readonly<Record<string, string>> | undefined
  /** Open GET connections and their resumable streams. */
  readonly #streams = new Map<ServerResponse, ReplayStream | undefined>()
  /** Resumable streams for messages that do not belong to a request. */
  readonly #unsolicitedStreams = new WeakSet<ReplayStream>()
  readonly #replay: ReplayStreams
  readonly #questions = new Map<string, ServerRequest>()
  #waitingMessages: Buffer[] = []
  #waitingBytes = 0
  /** Number of messages that other workers are currently sending. */
  #pushesInFlight = 0
  #nextQuestion = 1
  #extensions: ExtensionSet | undefined

  constructor(facts: SessionFacts, caller: Caller, budget = new ReplayBudget(), otherWorkers?: OtherWorkers) {
    this.id = facts.id
    this.facts = facts
    this.client = {
      era: 'session',
      protocolVersion: facts.protocolVersion || assumedSessionVersion,
      caller,
      headers: {},
      abilities: facts.abilities,
      info: facts.info,
      session: this,
    }
    this.otherWorkers = otherWorkers
    this.#replay = new ReplayStreams(budget, otherWorkers?.tag)
  }

  /** Removes extensions that a reload has disabled from the client's abilities. */
  useExtensions(extensions: ExtensionSet): void {
    if (this.#extensions === extensions) return
    this.#extensions = extensions
    this.client = { ...this.client, abilities: enabledAbilities(this.facts.abilities, extensions) }
  }

  get isIdle(): boolean {
    return this.inFlight.size === 0 && this.#streams.size === 0
  }

  get openStreams(): number {
    return this.#streams.size
  }

  /** Opens a stream that the client can resume if its connection breaks. */
  openStream(): ReplayStream {
    return this.#replay.open()
  }

  /**
   * Adds a GET stream. The stream's headers must already be sent. With a known `lastEventId`, continues the stream that
   * contains this event. Otherwise, opens a new stream. The client can resume the stream only if `isResumable` is true.
   */
  addStream(
    res: ServerResponse,
    { lastEventId, isResumable = true }: { lastEventId?: string | undefined; isResumable?: boolean } = {},
  ): void {
    const found = lastEventId === undefined ? undefined : this.#replay.find(lastEventId)
    if (found && !this.#unsolicitedStreams.has(found.stream)) {
      // The client expects the response to a POST on this stream. Messages that do not belong to a request must not
      // appear on this stream.
      found.stream.attach(res, found.after)
      return
    }
    if (this.#streams.size >= maxStreams) {
      const [oldest] = this.#streams.keys()
      oldest?.end()
    }
    const stream = found?.stream ?? (isResumable ? this.#replay.open() : undefined)
    if (stream) this.#unsolicitedStreams.add(stream)
    this.#streams.set(res, stream)
    res.once('close', () => this.#streams.delete(res))
    stream?.attach(res, found?.after)
    if (stream && !found && this.facts.protocolVersion >= primedSince) stream.sendEmptyEvent()
    const waiting = this.#waitingMessages
    this.#waitingMessages = []
    this.#waitingBytes = 0
    for (const message of waiting) this.push(message)
  }

  keepAlive(): void {
    for (const stream of this.#streams.keys()) writeBounded(stream, keepAliveComment)
    this.#replay.evict()
  }

  /**
   * Sends a message on one GET stream. Without an open stream, keeps the message until a stream opens. Drops the oldest
   * messages if too many are waiting.
   */
  push(message: Buffer): void {
    if (this.pushOnStream(message)) return
    if (this.otherWorkers && this.#pushesInFlight < maxPushing)
      void this.#pushThroughWorkers(this.otherWorkers, message)
    else this.#keep(message)
  }

  /** Like `push`, but uses only this worker's streams. Used for messages that every worker sends to its own copy. */
  pushHere(message: Buffer): void {
    if (!this.pushOnStream(message)) this.#keep(message)
  }

  /** Sends a message on the newest GET stream. Returns false if this process has no open stream. */
  pushOnStream(message: Buffer): boolean {
    const newest = [...this.#streams].at(-1)
    if (!newest) return false
    const [res, stream] = newest
    return stream ? !res.destroyed && stream.send(message) : writeBounded(res, encodeEvent(message))
  }

  async #pushThroughWorkers(otherWorkers: OtherWorkers, message: Buffer): Promise<void> {
    this.#pushesInFlight++
    const isSent = await otherWorkers.push(this.id, message)
    this.#pushesInFlight--
    if (!isSent) this.pushHere(message)
  }

  #keep(message: Buffer): void {
    this.#waitingMessages.push(message)
    this.#waitingBytes += message.length
    while (this.#waitingMessages.length > maxWaiting || this.#waitingBytes > maxWaitingBytes) {
      this.#waitingBytes -= this.#waitingMessages.shift()?.length ?? 0
    }
  }

  deliver(backend: string, method: string, params: Buffer | undefined): void {
    const allowedParams = params && withoutReservedMeta(params)
    if (method === 'notifications/message') {
      if (allowedParams && passesLevel(allowedParams, this.logLevel))
        this.push(notificationMessage(method, allowedParams))
    } else if (method === updatedMethod) {
      if (allowedParams) this.#forwardUpdate(backend, new JsonObject(allowedParams))
    } else if (method === 'notifications/elicitation/complete')
      this.push(notificationMessage(method, allowedParams))
    else if (method === taskStatusMethod) {
      if (allowedParams) this.#forwardTaskStatus(backend, new JsonObject(allowedParams))
    } else if (this.allowsNotification?.(method, backend))
      this.push(notificationMessage(method, allowedParams))
  }

  resume(backend: string, binding: string): BackendSession | undefined {
    const stored = this.backendSessions.get(backend)
    return stored?.binding === binding ? stored : undefined
  }

  backendSessionLost(backend: string): void {
    this.onLost?.(backend)
  }

  /** Applies changes that other replicas have made to the session. */
  applyChanges({ logLevel, subscriptions, backendSessions, seen }: SessionChanges): void {
    this.logLevel = logLevel
    for (const [uri, backend] of subscriptions) this.subscriptions.set(uri, backend)
    for (const [backend, session] of backendSessions) this.backendSessions.set(backend, session)
    if (seen) this.seen = { ...seen, ...this.seen }
  }

  backendSessionOpened(backend: string, session: BackendSession): void {
    this.backendSessions.set(backend, session)
    this.onChange?.()
  }

  /** Ignores tasks for which the client has no id. Gatehouse's own tasks already have the client's id. */
  #forwardTaskStatus(backend: string, params: JsonObject): void {
    const shown = backend === '' ? params.bytes : this.taskStatusFrom?.(backend, params)
    if (shown) this.push(notificationMessage(taskStatusMethod, shown))
  }

  /** Ignores updates from a backend that does not own the resource. */
  #forwardUpdate(backend: string, params: JsonObject): void {
    if (this.subscriptions.get(params.text('uri') ?? '') !== backend) return
    this.push(notificationMessage(updatedMethod, params.bytes))
  }

  ask(request: Ask, signal: AbortSignal): Promise<AskReply> {
    return this.askBy(
      (message) => {
        this.push(message)
        return true
      },
      request,
      signal,
    )
  }

  /**
   * Sends a server request with `send` and waits for the POST that contains the response. `signal` withdraws the
   * request.
   */
  askBy(send: (message: Buffer) => boolean, request: Ask, signal: AbortSignal): Promise<AskReply> {
    requireAbility(this.facts.abilities, request)
    if (signal.aborted) return Promise.reject(withdrawn())
    if (this.#questions.size >= maxQuestions) {
      return Promise.reject(new GatehouseError('RATE_LIMITED', { detail: 'too many questions at once' }))
    }
    const number = this.#nextQuestion++
    const id = this.otherWorkers ? JSON.stringify(`${this.otherWorkers.tag}${number}`) : String(number)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => fail(new GatehouseError('BACKEND_TIMEOUT', { detail: 'the client did not answer in time' })),
        askTimeoutMs,
      )
      timer.unref()
      const settle = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        this.#questions.delete(id)
      }
      const fail = (error: Error): void => {
        settle()
        reject(error)
      }
      const onAbort = (): void => {
        send(
          notificationMessage(
            'notifications/cancelled',
            `{"requestId":${id},"reason":"the question was withdrawn"}`,
          ),
        )
        fail(withdrawn())
      }
      this.#questions.set(id, {
        resolve: (reply) => {
          settle()
          resolve(reply)
        },
        reject: fail,
      })
      signal.addEventListener('abort', onAbort, { once: true })
      const params = request.params && withoutReservedMeta(request.params)
      if (!send(requestMessage(id, request.method, params))) {
        fail(
          new GatehouseError('BACKEND_UNAVAILABLE', {
            detail: 'the client cannot be asked: it has no open event stream',
          }),
        )
      }
    })
  }

  /** Cancels a request in flight. Returns false if this process does not handle the request. */
  cancelRequest(id: string): boolean {
    const request = this.inFlight.find((one) => one.id === id)
    request?.cancel(new Error('the client cancelled the request'))
    return request !== undefined
  }

  /** Handles the client's response to a server request. Returns false if the request is unknown. */
  handleResponse(message: Message): boolean {
    const question = message.id === undefined ? undefined : this.#questions.get(message.id)
    if (!question) return false
    if (message.result) question.resolve({ result: message.result })
    else if (message.error) question.resolve({ error: message.error })
    return true
  }

  /** Cancels all client and server requests, and ends every stream. */
  end(reason: Error): void {
    this.isOver = true
    for (const request of this.inFlight.values()) request.cancel(reason)
    for (const question of this.#questions.values()) question.reject(reason)
    this.#replay.close()
    for (const stream of this.#streams.keys()) stream.end()
  }
}

function withdrawn(): GatehouseError {
  return new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'the question was withdrawn' })
}
