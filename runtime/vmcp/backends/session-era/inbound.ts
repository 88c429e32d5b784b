/**
 * Receives messages from a session-era backend and passes each one to the request to which it belongs.
 *
 * Responses are matched by id, and progress is matched by token. A server request or log message on the response stream
 * of a client request belongs to that client request while it is in flight. Other messages do not identify a request;
 * they arrive on a GET stream, over HTTP+SSE, or on a stream after its request has ended. On a connection for one
 * client session, these messages belong to the newest request in flight. Without a request in flight, these messages
 * belong to the session. On a connection for several callers, a message is delivered only if it can belong to just one
 * of the callers. Otherwise, a log message is dropped, the drop is reported, and a server request is answered with an
 * error.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  type Ask,
  type AskReply,
  changedList,
  JsonObject,
  type Message,
  ServerRequests,
  updatedMethod,
} from '../../../mcp/index.ts'
import { abortable, type InFlightEntry, InFlight, type Deadline } from '../../../net/index.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { ConnectionEvents, Relay } from '../connection.ts'

export interface Pending {
  readonly id: string
  readonly relay: Relay | undefined
  readonly deadline: Deadline
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

/**
 * Selects the request in flight for a message that does not identify its request. `newest` applies if all requests are
 * from one client. Otherwise, a function returns true if the message can belong to the only request in flight.
 */
export type Assignment = 'newest' | (() => boolean)

export class Inbound {
  readonly #events: ConnectionEvents
  readonly #assignment: Assignment
  readonly pending = new InFlight<Pending>()
  readonly #questions: ServerRequests<Pending | undefined>
  #hasAbandoned = false

  constructor(events: ConnectionEvents, assignment: Assignment, reply: (message: Buffer) => void) {
    this.#events = events
    this.#assignment = assignment
    this.#questions = new ServerRequests(reply)
  }

  /** True if the backend may still be waiting for the response to a server request. */
  get hasOpenQuestions(): boolean {
    return this.#hasAbandoned || this.#questions.size > 0
  }

  /**
   * Removes an entry from `pending` and withdraws the server requests that belong to it. Returns false if the request
   * was already settled.
   */
  forget(expected: InFlightEntry<Pending>): boolean {
    if (!this.pending.remove(expected)) return false
    if (this.#questions.withdraw(requestEnded, expected.value)) this.#hasAbandoned = true
    return true
  }

  failAll(error: Error): void {
    for (const pending of this.pending.values()) pending.reject(error)
    this.withdrawQuestions(error)
  }

  /** Withdraws all server requests, because the backend can no longer receive the responses. */
  withdrawQuestions(error: Error): void {
    this.#questions.withdraw(error)
  }

  /** Handles a message that arrived on the response stream of the request `on`. */
  handle(message: Message, on: Pending | undefined): void {
    if (message.method === '') this.#response(message, on)
    else if (message.kind === 'request') this.#question(message, on)
    else this.#notification(message, on)
  }

  #response(message: Message, on: Pending | undefined): void {
    const pending = this.#requestWithId(message.id, on)
    if (!pending) return
    const { passed } = message
    if (message.result) pending.resolve({ kind: 'result', result: message.result, ...(passed && { passed }) })
    else if (message.error) pending.resolve({ kind: 'error', error: message.error })
  }

  /** Returns the request with this id. Usually, the message arrived on this request's response stream. */
  #requestWithId(id: string | undefined, on: Pending | undefined): Pending | undefined {
    if (id === undefined) return undefined
    return on?.id === id ? on : this.pending.find((pending) => pending.id === id)
  }

  /**
   * Returns the request to which a message belongs. Returns undefined if the message belongs to no request or could
   * belong to several requests.
   */
  #requestOf(on: Pending | undefined): Pending | undefined {
    if (on) return this.pending.find((pending) => pending === on)
    if (this.#assignment === 'newest') return this.pending.find(hasRelay)
    const [only, another] = this.pending.values().filter(hasRelay)
    return only && !another && this.#assignment() ? only : undefined
  }

  /** True if client requests are in flight and a message cannot be assigned to one of them with certainty. */
  get #isAmbiguous(): boolean {
    return this.#assignment !== 'newest' && this.pending.find(hasRelay) !== undefined
  }

  #question(message: Message, on: Pending | undefined): void {
    const id = this.#questions.admit(message)
    if (id === undefined) return
    const pending = this.#requestOf(on)
    if (!pending && this.#isAmbiguous) {
      this.#events.unassigned(message.method)
      this.#questions.refuse(id, unassignedError())
    } else
      void this.#questions.ask(message, pending, (request, signal) => this.#ask(request, signal, pending))
  }

  async #ask(request: Ask, signal: AbortSignal, pending: Pending | undefined): Promise<AskReply> {
    const resume = pending?.deadline.pause()
    try {
      return await abortable((pending?.relay ?? this.#events).ask(request, signal), signal)
    } finally {
      resume?.()
    }
  }

  #notification(message: Message, on: Pending | undefined): void {
    const { method, params } = message
    const kind = changedList(method)
    if (kind) this.#events.listChanged(kind)
    else if (method === 'notifications/progress') this.#progress(params, on)
    else if (method === 'notifications/message') this.#log(params, this.#requestOf(on))
    else if (method === updatedMethod) {
      if (params) this.#events.resourceUpdated(params)
    } else if (method === 'notifications/cancelled') this.#questions.cancelled(message)
    else this.#events.notification(method, params)
  }

  #progress(params: Buffer | undefined, on: Pending | undefined): void {
    if (!params) return
    const object = new JsonObject(params, { ignoreCase: true })
    const token = object.raw('progressToken')?.toString()
    const relay = this.#requestWithId(token, on)?.relay
    if (relay?.progressToken === undefined) return
    relay.progress(object.with({ progressToken: relay.progressToken }))
  }

  #log(params: Buffer | undefined, pending: Pending | undefined): void {
    if (!params) return
    if (pending?.relay) pending.relay.log(params)
    else if (this.#isAmbiguous) this.#dropLog()
    else this.#events.notification('notifications/message', params)
  }

  /** Drops a log message. Reports the dropped message only if a request in flight asked for log messages. */
  #dropLog(): void {
    if (this.pending.find(({ relay }) => relay?.logLevel !== undefined))
      this.#events.unassigned('notifications/message')
  }
}

function hasRelay({ relay }: Pending): boolean {
  return relay !== undefined
}

/** Returns the error for a server request that cannot be attributed to exactly one caller. */
export function unassignedError(): GatehouseError {
  return new GatehouseError('METHOD_NOT_FOUND', {
    detail: 'the request cannot be attributed to a single client',
  })
}

const requestEnded = new Error('the request has ended')
