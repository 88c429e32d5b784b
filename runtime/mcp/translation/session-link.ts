/**
 * A session with a session-era server. Sends `initialize` once, followed by concurrent requests. Server messages are
 * routed to the request to which they belong.
 *
 * Only progress notifications identify their request. Server requests and log messages are assigned to the only request
 * in flight. A request from a client that accepts server requests therefore has the link to itself. Unless exactly one
 * request is in flight, the list of roots is empty, other server requests are rejected, and log messages are dropped.
 * Source: MCP 2025-11-25, lifecycle, client features, utilities.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { initializeParams, type SessionServer, sessionServer } from '../eras/introduction.ts'
import { passesLevel } from '../eras/session-settings.ts'
import { type OutgoingParams, sessionParams } from '../eras/params.ts'
import type { Ask, AskReply } from '../eras/questions.ts'
import { ServerRequests } from '../eras/server-requests.ts'
import type { Message } from '../message.ts'
import { paramsOf } from '../param-types.ts'
import { notificationMessage, resultMessage } from '../write.ts'
import type { OpenLink, LinkOutcome, ServerLink } from './link.ts'
import { linkEnded, LinkRequester } from './requester.ts'

/** The client's side of one request. */
export interface CallSide {
  /** Raw progress token. Undefined if the client does not request progress. */
  readonly progressToken: string | undefined
  readonly logLevel: string | undefined
  send(message: Buffer): void | Promise<void>
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
}

const openMs = 30_000

export interface SessionLinkOptions {
  readonly open: OpenLink
  /** The capabilities to declare, as raw JSON. */
  readonly capabilities: Buffer
  readonly info: string
  /** Receives notifications that do not belong to a request: list changes and resource updates. */
  readonly onNotification: (message: Message) => void
}

export class SessionLink {
  /** The server's capabilities, information and instructions. Rejects if the server rejects the session. */
  readonly opened: Promise<SessionServer>
  readonly ended: Promise<string>
  /** Number of requests that use the link. */
  users = 0
  exclusive = false
  usedAt = 0
  /** Number of listeners that keep the link open. */
  pins = 0
  readonly #options: SessionLinkOptions
  readonly #link: ServerLink
  readonly #requester: LinkRequester
  readonly #sides = new Map<string, CallSide>()
  readonly #serverRequests = new ServerRequests((message) => this.#reply(message))
  #level: string | undefined
  #over = false

  constructor(options: SessionLinkOptions) {
    this.#options = options
    this.#link = options.open((message) => this.#receive(message))
    this.#requester = new LinkRequester((message) => this.#link.send(message))
    this.ended = this.#link.ended
    void this.ended.then((why) => {
      this.#over = true
      this.#requester.failAll(linkEnded(why))
      this.#serverRequests.withdraw(linkEnded(why))
    })
    this.opened = this.#open()
    // A link without a session is useless, so close it.
    this.opened.catch(() => void this.close())
  }

  get over(): boolean {
    return this.#over
  }

  async #open(): Promise<SessionServer> {
    const { capabilities, info } = this.#options
    const outcome = await this.#initialize(initializeParams(capabilities, info))
    const server = sessionServer(outcome.result)
    this.#requester.notify('notifications/initialized')
    return server
  }

  async #initialize(params: string): Promise<LinkOutcome> {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(new GatehouseError('BACKEND_TIMEOUT')), openMs)
    timer.unref()
    try {
      return await this.#requester.request(this.#requester.newId(), 'initialize', params, late.signal)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Sends a request. Rejects with BACKEND_UNREACHABLE or the signal's reason. */
  async request(
    method: string,
    outgoing: Omit<OutgoingParams, 'progress'>,
    side: CallSide | undefined,
    signal?: AbortSignal,
  ): Promise<LinkOutcome> {
    const server = await this.opened
    await this.#setLevel(server, side?.logLevel)
    const id = this.#requester.newId()
    if (side) this.#sides.set(id, side)
    try {
      const params = sessionParams({ ...outgoing, progress: side?.progressToken !== undefined }, id)
      return await this.#requester.request(id, method, params, signal)
    } finally {
      this.#sides.delete(id)
    }
  }

  /** Sets the session's log level. Only a request with an exclusive link specifies a level. */
  async #setLevel({ capabilities }: SessionServer, level: string | undefined): Promise<void> {
    if (level === undefined || level === this.#level || !capabilities.raw('logging')) return
    this.#level = level
    const id = this.#requester.newId()
    await this.#requester.request(id, 'logging/setLevel', JSON.stringify({ level }))
  }

  #receive(message: Message): void {
    if (this.#requester.take(message)) return
    if (message.kind === 'request') this.#onRequest(message)
    else if (message.method === 'notifications/progress') this.#progress(message)
    else if (message.method === 'notifications/message') this.#log(message)
    else if (message.method === 'notifications/cancelled') this.#serverRequests.cancelled(message)
    else this.#options.onNotification(message)
  }

  /** Returns the only request in flight. Returns undefined if no request, or more than one request, is in flight. */
  #only(): CallSide | undefined {
    const [side, another] = this.#sides.values()
    return another ? undefined : side
  }

  #progress(message: Message): void {
    const params = paramsOf(message)
    const side = this.#sides.get(params.raw('progressToken')?.toString() ?? '')
    if (side?.progressToken === undefined) return
    void side.send(notificationMessage(message.method, params.with({ progressToken: side.progressToken })))
  }

  #log(message: Message): void {
    const side = this.#only()
    if (!side || side.logLevel === undefined || !message.params) return
    if (passesLevel(message.params, side.logLevel)) void side.send(message.bytes)
  }

  #onRequest(message: Message): void {
    const id = this.#serverRequests.admit(message)
    if (id === undefined) return
    const side = this.#only()
    if (side)
      void this.#serverRequests.ask(message, undefined, (request, signal) => side.ask(request, signal))
    else if (message.method === 'roots/list') this.#reply(resultMessage(id, '{"roots":[]}'))
    else this.#serverRequests.refuse(id, noClientError)
  }

  #reply(message: Buffer): void {
    if (!this.#over) this.#link.send(message)
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}

export const noClientError: GatehouseError = new GatehouseError('METHOD_NOT_FOUND', {
  detail: 'no client accepts server requests at the moment',
})
