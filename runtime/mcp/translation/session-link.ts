/**
 * A session-era conversation with a server: `initialize` once, then requests side by side. What the server says meanwhile
 * goes to the request that it belongs to.
 *
 * Over one channel only progress says where it belongs. Server requests and log messages belong to the only request in flight,
 * and a request whose client takes server requests is the only one. Without it, the list of roots is empty, other server requests are refused, and log messages
 * are dropped.
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
import { linkOver, LinkRequester } from './requester.ts'

/** The client's side of one request. */
export interface CallSide {
  /** Raw progress token; undefined: no progress is wanted. */
  readonly progressToken: string | undefined
  readonly logLevel: string | undefined
  send(message: Buffer): void | Promise<void>
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
}

const openMs = 30_000

export interface SessionLinkOptions {
  readonly open: OpenLink
  /** Raw JSON: what is declared to the server. */
  readonly capabilities: Buffer
  readonly info: string
  /** Gets notifications that belong to no request: changed lists, updated resources. */
  readonly onNotification: (message: Message) => void
}

export class SessionLink {
  /** The server's introduction. Rejects when it refuses the session. */
  readonly opened: Promise<SessionServer>
  readonly ended: Promise<string>
  /** Requests that share the link, or the one that has it for itself. */
  users = 0
  exclusive = false
  usedAt = 0
  /** Listeners that need the link to stay. */
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
      this.#requester.failAll(linkOver(why))
      this.#serverRequests.withdraw(linkOver(why))
    })
    this.opened = this.#open()
    // A link whose session was refused is of no use to anybody.
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

  /** Carries a request out. Rejects with BACKEND_UNREACHABLE, or the signal's reason. */
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

  /** The level is the session's; only a request that has the link for itself asks for one. */
  async #setLevel({ capabilities }: SessionServer, level: string | undefined): Promise<void> {
    if (level === undefined || level === this.#level || !capabilities.raw('logging')) return
    this.#level = level
    const id = this.#requester.newId()
    await this.#requester.request(id, 'logging/setLevel', JSON.stringify({ level }))
  }

  #receive(message: Message): void {
    if (this.#requester.take(message)) return
    if (message.kind === 'request') this.#asked(message)
    else if (message.method === 'notifications/progress') this.#progress(message)
    else if (message.method === 'notifications/message') this.#log(message)
    else if (message.method === 'notifications/cancelled') this.#serverRequests.cancelled(message)
    else this.#options.onNotification(message)
  }

  /** The only request in flight: what the server says can belong to no other. */
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

  #asked(message: Message): void {
    const id = this.#serverRequests.admit(message)
    if (id === undefined) return
    const side = this.#only()
    if (side)
      void this.#serverRequests.ask(message, undefined, (request, signal) => side.ask(request, signal))
    else if (message.method === 'roots/list') this.#reply(resultMessage(id, '{"roots":[]}'))
    else this.#serverRequests.refuse(id, notNow)
  }

  #reply(message: Buffer): void {
    if (!this.#over) this.#link.send(message)
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}

export const notNow: GatehouseError = new GatehouseError('METHOD_NOT_FOUND', {
  detail: 'no client takes server requests now',
})
