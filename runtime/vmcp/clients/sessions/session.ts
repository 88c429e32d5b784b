/**
 * One client session of the session era: what was negotiated, what is in flight, and the ways to reach the client.
 *
 * Messages that belong to no request wait, bounded, for the client's GET stream. A question goes out on the stream of
 * the operation that caused it, or on the GET stream, and is answered by a later POST.
 * Source: MCP 2025-11-25, lifecycle, transports.
 */
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
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
import type { BackendSession, ClientAbilities, ClientSession } from '../../model/session.ts'
import type { Elsewhere } from './elsewhere.ts'
import { ReplayBudget, type ReplayStream, ReplayStreams } from './replay.ts'

/** Messages of one session that other workers are asked to send, at a time. */
const maxPushing = 32

/** Limits of one session. */
const maxStreams = 4
const maxWaiting = 256
const maxWaitingBytes = 4 * 1024 * 1024
const maxQuestions = 64
export const maxInFlight = 256
export const maxSubscriptions = 1_000
/** Clients of this revision and later take an event without content at the beginning of a stream. */
const primedSince = '2025-11-25'
/** How long a client may take to answer a question. */
export const askTimeoutMs = 10 * 60_000

export interface SessionFacts {
  readonly id: string
  /** Whom the session belongs to (`Caller.key`). */
  readonly owner: string
  readonly protocolVersion: string
  readonly abilities: ClientAbilities
  readonly info: Buffer | undefined
}

/** What is stored of a session beside its facts, and may change while it lives. */
export interface SessionChanges {
  readonly logLevel: string | undefined
  /** URI and backend. */
  readonly subscriptions: readonly [string, string][]
  readonly backendSessions: readonly [string, BackendSession][]
  /** Digests of the lists that the client has seen, by kind. */
  readonly seen: Readonly<Record<string, string>> | undefined
}

/** A request of the client that is not answered yet. */
export interface RequestInFlight {
  /** Raw JSON. */
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
  /** Caller and passed-through headers of the latest request: its token is the freshest. */
  sender: { readonly caller: Caller; readonly headers: Readonly<Record<string, string>> }
  /** Set by `logging/setLevel`; undefined: the backend's own choice. */
  logLevel: string | undefined
  usedAt = 0
  /** When it was last read from the shared storage. */
  readAt = Number.NEGATIVE_INFINITY
  /** When it was opened or restored in this process. */
  openedAt = 0
  /** When the table of sessions last moved it to its end. */
  movedAt = 0
  /** True for a session from another replica. Its subscriptions are renewed here. */
  restored = false
  readonly inFlight = new InFlight<RequestInFlight>()
  /** Subscribed resources and the backend of each. */
  readonly subscriptions = new Map<string, string>()
  /** Sessions that backends keep for this one. */
  readonly backendSessions = new Map<string, BackendSession>()
  /** The copies of this session at other workers; undefined where there is one process. */
  readonly elsewhere: Elsewhere | undefined
  /** Told when what other replicas must know has changed. */
  onChange: (() => void) | undefined
  /** Told when a backend has forgotten its session. */
  onLost: ((backend: string) => void) | undefined
  /** True once it is over in this process. */
  isOver = false
  /** Digests of what the client has seen, by kind. */
  seen: Readonly<Record<string, string>> | undefined
  /** GET streams that are open, and what outlives their connections. */
  readonly #streams = new Map<ServerResponse, ReplayStream | undefined>()
  /** Streams for what the server sends outside of requests. */
  readonly #spoken = new WeakSet<ReplayStream>()
  readonly #replay: ReplayStreams
  readonly #questions = new Map<string, ServerRequest>()
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** Messages on their way to a stream at another worker. */
  #pushing = 0
  #nextQuestion = 1

  constructor(facts: SessionFacts, caller: Caller, budget = new ReplayBudget(), elsewhere?: Elsewhere) {
    this.id = facts.id
    this.facts = facts
    this.sender = { caller, headers: {} }
    this.elsewhere = elsewhere
    this.#replay = new ReplayStreams(budget, elsewhere?.tag)
  }

  get idle(): boolean {
    return this.inFlight.size === 0 && this.#streams.size === 0
  }

  get openStreams(): number {
    return this.#streams.size
  }

  /** A stream that the client can come back to when its connection breaks. */
  openStream(): ReplayStream {
    return this.#replay.open()
  }

  /**
   * Takes a GET stream (headers sent already). One that names the last event it has seen goes on with the stream of that
   * event, where it is known here; every other is a new one. `lasting` false: the stream is its connection and no more.
   */
  addStream(
    res: ServerResponse,
    { lastEventId, lasting = true }: { lastEventId?: string | undefined; lasting?: boolean } = {},
  ): void {
    const found = lastEventId === undefined ? undefined : this.#replay.find(lastEventId)
    if (found && !this.#spoken.has(found.stream)) {
      // The response to a POST goes on here; what is said unasked does not belong on it.
      found.stream.attach(res, found.after)
      return
    }
    if (this.#streams.size >= maxStreams) {
      const [oldest] = this.#streams.keys()
      oldest?.end()
    }
    const stream = found?.stream ?? (lasting ? this.#replay.open() : undefined)
    if (stream) this.#spoken.add(stream)
    this.#streams.set(res, stream)
    res.once('close', () => this.#streams.delete(res))
    stream?.attach(res, found?.after)
    if (stream && !found && this.facts.protocolVersion >= primedSince) stream.prime()
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    for (const message of waiting) this.push(message)
  }

  keepAlive(): void {
    for (const stream of this.#streams.keys()) writeBounded(stream, keepAliveComment)
    this.#replay.evict()
  }

  /** Sends a message on one GET stream, or keeps it until there is one; the oldest make space. */
  push(message: Buffer): void {
    if (this.pushOnStream(message)) return
    if (this.elsewhere && this.#pushing < maxPushing) void this.#pushElsewhere(this.elsewhere, message)
    else this.#keep(message)
  }

  /** As `push`, for what every worker says to its own copy of the session. */
  pushHere(message: Buffer): void {
    if (!this.pushOnStream(message)) this.#keep(message)
  }

  /** False when no GET stream is open here. */
  pushOnStream(message: Buffer): boolean {
    const newest = [...this.#streams].at(-1)
    if (!newest) return false
    const [res, stream] = newest
    return stream ? !res.destroyed && stream.send(message) : writeBounded(res, encodeEvent(message))
  }

  async #pushElsewhere(elsewhere: Elsewhere, message: Buffer): Promise<void> {
    this.#pushing++
    const isSent = await elsewhere.push(this.id, message)
    this.#pushing--
    if (!isSent) this.pushHere(message)
  }

  #keep(message: Buffer): void {
    this.#waiting.push(message)
    this.#waitingBytes += message.length
    while (this.#waiting.length > maxWaiting || this.#waitingBytes > maxWaitingBytes) {
      this.#waitingBytes -= this.#waiting.shift()?.length ?? 0
    }
  }

  deliver(backend: string, method: string, params: Buffer | undefined): void {
    const own = params && withoutReservedMeta(params)
    if (method === 'notifications/message') {
      if (own && passesLevel(own, this.logLevel)) this.push(notificationMessage(method, own))
    } else if (method === updatedMethod) {
      if (own) this.#updated(backend, new JsonObject(own))
    } else if (method === 'notifications/elicitation/complete') this.push(notificationMessage(method, own))
  }

  resume(backend: string, binding: string): BackendSession | undefined {
    const stored = this.backendSessions.get(backend)
    return stored?.binding === binding ? stored : undefined
  }

  backendSessionLost(backend: string): void {
    this.onLost?.(backend)
  }

  /** Takes over what other replicas have done to the session since. */
  adopt({ logLevel, subscriptions, backendSessions, seen }: SessionChanges): void {
    this.logLevel = logLevel
    for (const [uri, backend] of subscriptions) this.subscriptions.set(uri, backend)
    for (const [backend, session] of backendSessions) this.backendSessions.set(backend, session)
    if (seen) this.seen = { ...seen, ...this.seen }
  }

  backendSessionOpened(backend: string, session: BackendSession): void {
    this.backendSessions.set(backend, session)
    this.onChange?.()
  }

  /** Ignores updates from a backend that does not own the resource. */
  #updated(backend: string, params: JsonObject): void {
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

  /** Sends a question with `send` and waits for the POST that responses it. `signal` withdraws it. */
  askBy(send: (message: Buffer) => boolean, request: Ask, signal: AbortSignal): Promise<AskReply> {
    requireAbility(this.facts.abilities, request)
    if (signal.aborted) return Promise.reject(withdrawn())
    if (this.#questions.size >= maxQuestions) {
      return Promise.reject(new GatehouseError('RATE_LIMITED', { detail: 'too many questions at a time' }))
    }
    const number = this.#nextQuestion++
    const id = this.elsewhere ? JSON.stringify(`${this.elsewhere.tag}${number}`) : String(number)
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
            detail: 'the client cannot be asked: it accepts no event stream',
          }),
        )
      }
    })
  }

  /** False when no such request is in flight here. */
  cancelRequest(id: string): boolean {
    const request = this.inFlight.find((one) => one.id === id)
    request?.cancel(new Error('the client cancelled the request'))
    return request !== undefined
  }

  /** Takes the client's response to a question. False when nobody waits for it. */
  response(message: Message): boolean {
    const question = message.id === undefined ? undefined : this.#questions.get(message.id)
    if (!question) return false
    if (message.result) question.resolve({ result: message.result })
    else if (message.error) question.resolve({ error: message.error })
    return true
  }

  /** Ends everything that is in flight and every stream. */
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
